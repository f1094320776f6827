"""Snapshots: a state as bytes, so that a start need not fold all events. With them or without, it is the same state."""

from __future__ import annotations

import gc
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.persistence import pack_arrays, part_of, unpack_arrays
from omg_cmdp.validation import FloatArray
from omg_trial.episodes import Example, KeptPlan, Record, StepDecision, StepOutcome
from omg_trial.learning import model_digest
from omg_trial.log.events import canonical
from omg_trial.log.store import EventStore, Snapshot
from omg_trial.state import Change, Incident, State, Version
from omg_trial.trial_file.trial import Trial

FORMAT = 3
_TEXT, _POLICIES = "state.json", "policies"


def pack_state(state: State, agent: ModelAgent) -> Snapshot:
    """Return the state, and what its agent has learned, as bytes."""
    learned = {f"model/{name}": array for name, array in agent.state().items()}
    with _without_collections():
        packed = canonical(_pack(state, model_digest(agent))).encode()
    text = np.frombuffer(zlib.compress(packed, 1), dtype=np.uint8)
    policies = np.array([plan.policy for plan in state.plans.values()])
    return Snapshot(state.number, state.hash, pack_arrays({_TEXT: text, _POLICIES: policies, **learned}))


def restore_state(trial: Trial, store: EventStore) -> tuple[State, dict[str, NDArray[Any]] | None]:
    """Return the state of the store's snapshot, and the arrays of its agent; a fresh state if none fits."""
    snapshot = store.snapshot()
    if snapshot is None:
        return State(trial.missing_reward), None
    try:
        with _without_collections():
            packed = unpack_arrays(snapshot.content)
            content = json.loads(zlib.decompress(packed[_TEXT].tobytes()))
            arrays = part_of(packed, "model")
            state = _unpack(content, packed[_POLICIES], trial.missing_reward)
        agent = trial.agent()
        agent.load_state(arrays)
        fits = content["format"] == FORMAT and content["model"] == model_digest(agent) and state.trial == trial.digest
        if not fits or (state.number, state.hash) != (snapshot.number, snapshot.hash):
            raise ValueError("of another state")
    except (KeyError, TypeError, ValueError, zlib.error):
        return State(trial.missing_reward), None
    return state, arrays


def _pack(state: State, model: str) -> dict[str, Any]:
    examples: dict[Example, int] = {}
    versions = [
        [
            version.number,
            version.model,
            version.time,
            [examples.setdefault(each, len(examples)) for each in version.dataset],
        ]
        for version in state.versions
    ]
    return {
        "format": FORMAT,
        "model": model,
        "head": [state.number, state.hash, state.time],
        "trial": [state.trial, state.secret],
        "records": [_pack_record(record) for record in state.episodes.values()],
        "withdrawn": sorted(state.withdrawn),
        "plans": [[person, plan.episode, plan.context] for person, plan in state.plans.items()],
        "examples": list(examples),
        "versions": versions,
        "latest": state.latest,
        "changes": state.changes,
        "incidents": state.incidents,
        "closed_since": state.closed_since,
        "stale": state.stale,
    }


def _pack_record(record: Record) -> dict[str, Any]:
    fields = dict(vars(record))
    fields["policy"] = None if record.policy is None else record.policy.tolist()
    fields["choices"] = [[step, *choice] for step, choice in record.choices.items()]
    fields["outcomes"] = [[step, *outcome] for step, outcome in record.outcomes.items()]
    return fields


def _unpack(content: dict[str, Any], policies: FloatArray, missing_reward: float | None) -> State:
    state = State(missing_reward)
    state.number, state.hash, state.time = content["head"]
    state.trial, state.secret = content["trial"]
    for fields in content["records"]:
        policy, choices, outcomes = fields.pop("policy"), fields.pop("choices"), fields.pop("outcomes")
        record = Record(policy=None if policy is None else np.array(policy), **fields)
        record.choices = {step: _choice(rest) for step, *rest in choices}
        record.outcomes = {step: StepOutcome._make([*rest, (one, other)]) for step, *rest, (one, other) in outcomes}
        state.restore(record)
    state.withdrawn = set(content["withdrawn"])
    state.plans = {
        person: KeptPlan(episode, context, policy)
        for (person, episode, context), policy in zip(content["plans"], policies, strict=True)
    }
    examples = [
        Example(episode, person, context, tuple(states), tuple(actions), tuple(rewards))
        for episode, person, context, states, actions, rewards in content["examples"]
    ]
    state.versions = [
        Version(number, tuple(examples[place] for place in places), model, time)
        for number, model, time, places in content["versions"]
    ]
    state.latest = content["latest"]
    state.changes = [Change(*each) for each in content["changes"]]
    state.incidents = [Incident(*each) for each in content["incidents"]]
    state.closed_since, state.stale = content["closed_since"], content["stale"]
    return state


def _choice(fields: list[Any]) -> StepDecision:
    return StepDecision._make([*fields[:-1], tuple(fields[-1])])


@contextmanager
def _without_collections() -> Iterator[None]:
    """Do not look for garbage among millions of objects while they are made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
