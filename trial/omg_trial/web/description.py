"""The OpenAPI document of a study: its own names of states and actions, its horizon, its columns."""

from __future__ import annotations

from typing import Any

from omg_cmdp.oracles.feature_map import Number
from omg_trial.calls import CAUSES
from omg_trial.study.trial import Trial


def describe(document: dict[str, Any], trial: Trial) -> dict[str, Any]:
    """Return the document with what `calls.parse` accepts in this study."""
    schemas = document["components"]["schemas"]
    states, actions = {"type": "string", "enum": list(trial.states)}, {"type": "string", "enum": list(trial.actions)}
    low, high = trial.reward_range
    for name in ("DecideBody", "ReportBody"):
        schemas[name]["properties"]["step"] |= {"maximum": trial.space.horizon - 1}
    schemas["DecideBody"]["properties"]["state"] |= states
    schemas["DecideBody"]["properties"]["action"] = _or_null(actions)
    schemas["ReportBody"]["properties"]["next_state"] = _or_null(states)
    schemas["ReportBody"]["properties"]["reward"] = _or_null({"type": "number", "minimum": low, "maximum": high})
    schemas["ReportBody"]["anyOf"] = [
        {"required": ["reward"], "properties": {"reward": {"type": "number"}}},
        {"required": ["next_state"], "properties": {"next_state": {"type": "string"}}},
    ]
    schemas["CloseBody"]["properties"]["cause"] |= {"enum": list(CAUSES)}
    for name in ("OpenBody", "PolicyBody"):
        schemas[name]["properties"]["context"] = _context(trial)
    schemas["Decided"]["properties"]["action"] |= actions
    document["info"] |= {"title": f"omg-cmdp: {trial.name}"}
    return document


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}], "default": None}


def _context(trial: Trial) -> dict[str, Any]:
    if trial.features is None:
        return {"type": "string", "enum": list(trial.labels)}
    known: dict[str, Any] = {}
    for column in trial.features.columns:
        kind: dict[str, Any] = (
            {"type": "number"} if isinstance(column, Number) else {"type": "string", "maxLength": 100}
        )
        known[str(column.column)] = {"anyOf": [kind, {"type": "null"}]}
    some = [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in known]
    return {"type": "object", "properties": known, "additionalProperties": False, "anyOf": some}
