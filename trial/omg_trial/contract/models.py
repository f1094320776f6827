"""The models of one trial: calls and answers, with its own names, sizes and ranges."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import pydantic
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from typing_extensions import TypedDict

from omg_cmdp.contexts import context_to_json
from omg_cmdp.oracles.feature_map import Category, Number
from omg_trial.contract import calls
from omg_trial.contract.answers import Decided
from omg_trial.contract.calls import STRICT, WHOLE, Call, Refusal
from omg_trial.trial_file import kinds
from omg_trial.trial_file.trial import Trial

LONGEST_TEXT = 100
AnyModel = TypeVar("AnyModel", bound=BaseModel)


class Contract:
    """The calls and answers of one trial, with its own names of states and actions, its horizon, its columns.

    Parameters
    ----------
    trial : Trial
        Names, sizes and ranges of the models are taken from it.

    Examples
    --------
    >>> from omg_trial.trial_file import EXAMPLE, Trial
    >>> Contract(Trial.parse(EXAMPLE)).parse("decide", {"episode": 3, "step": 0, "state": "took it"})
    (Decide(step=0, state='took it', action=None, available=True, device_time=None, allowance=None), 3)
    """

    def __init__(self, trial: Trial) -> None:
        low, high = trial.reward_range
        state, action = Literal[trial.states], Literal[trial.actions]
        step = Annotated[int, Field(ge=0, lt=trial.space.horizon), WHOLE]
        reward, context = Annotated[float, Field(ge=low, le=high)] | None, _context_type(trial)
        kinds: list[type[Call]] = [
            _narrow(calls.Open, context=context),
            _narrow(calls.Decide, step=step, state=state, action=action | None),
            _narrow(calls.Report, step=step, reward=reward, next_state=state | None),
            *(calls.Close, calls.Enrol, calls.Withdraw, calls.Erase, calls.Learn, calls.RollBack, calls.Publish),
            calls.Acknowledge,
            *(_narrow(call, action=action | None) for call in (calls.Pause, calls.Resume, calls.Stop)),
        ]
        self.calls = {call.name: call for call in kinds}
        self.policy, self.decided = _narrow(calls.AskPolicy, context=context), _narrow(Decided, action=action | None)

    def parse(self, name: str, fields: Mapping[str, Any]) -> tuple[Call, int | str | None]:
        """Return a call by its name, and the episode or person that it is about; `Refusal` names what is wrong."""
        if name not in self.calls:
            raise Refusal(404, f"there is no call {name!r:.60}; there are {', '.join(self.calls)}")
        # Over HTTP the path names the episode or the person; here it is a field like the others.
        rest, model = dict(fields), self.calls[name]
        target = None if model.target is None else read_target(model.target, rest.pop(model.target, None))
        return read_fields(model, rest), target


def read_fields(model: type[AnyModel], fields: Mapping[str, Any]) -> AnyModel:
    """Return the checked fields of a call; `Refusal` names the first that is wrong."""
    try:
        return model.model_validate(fields)
    except pydantic.ValidationError as error:
        raise Refusal(422, describe_problem(error.errors())) from None


def read_target(kind: str, value: Any, *, in_path: bool = False) -> int | str:
    """Return the episode, person or incident that a call is about; in a path a number is a text."""
    try:
        found: int | str = _TARGETS[kind].validate_python(value, strict=not in_path)
    except pydantic.ValidationError as error:
        raise Refusal(404 if in_path else 422, describe_problem([{**error.errors()[0], "loc": (kind,)}])) from None
    return found


def context_text(trial: Trial, context: Any) -> str:
    """Return a checked context as the JSON text that the log has: a label, or all columns of the trial file.

    Parameters
    ----------
    trial : Trial
        The trial, whose file says what a context is.
    context : Any
        A checked one: a label, or a dictionary by column. A missing column is null in the text.

    >>> from types import SimpleNamespace
    >>> context_text(SimpleNamespace(features=None), "alone")
    '"alone"'
    """
    if trial.features is None:
        return context_to_json(context)
    return context_to_json({each.column: context.get(each.column) for each in trial.features.columns})


def call_content(trial: Trial, call: Call, target: int | str | None) -> list[Any]:
    """Return all that makes a call this one: its name, and its fields with the episode or person that it is about.

    Parameters
    ----------
    trial : Trial
        The trial, whose file says what a context is. A column that is null counts like one that was left out.
    call : Call
        A checked call.
    target : int, str or None
        The episode or the person, if the call is about one.

    >>> from omg_trial.trial_file import EXAMPLE
    >>> call_content(Trial.parse(EXAMPLE), calls.Close(), 3)
    ['close', {'episode': 3, 'cause': 'finished'}]
    """
    about: dict[str, Any] = {} if call.target is None else {call.target: target}
    fields = {**about, **call.model_dump()}
    if "context" in fields:
        fields["context"] = context_text(trial, fields["context"])
    if isinstance(call, calls.Enrol) and (taken := sorted(call.taken_away)):
        fields["taken_away"] = taken
    return [call.name, fields]


def describe_problem(errors: Sequence[Any], skip: int = 0) -> str:
    """Return the first problem of a call: its field and the rule. Values may be a person's data: they are left out.

    Parameters
    ----------
    errors : sequence
        What pydantic found: dictionaries with "loc" and "msg".
    skip : int
        How many leading parts of the place are not the app's; 0 by default.

    >>> describe_problem([{"loc": ("body", "step"), "msg": "Input should be at least 0"}], skip=1)
    '`step`: Input should be at least 0'
    """
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"][skip:]) or "body"
    known = first.get("ctx", {}).get("pattern") or first.get("type")
    return f"`{field:.60}`: {_RULES.get(known) or first['msg'].removeprefix('Value error, ')}"


_RULES = {
    calls.NAME: calls.NAME_RULE,
    kinds.DAY: kinds.DAY_RULE,
    "missing": "this field is required",
    "extra_forbidden": "there is no such field",
}
"""What pydantic would say as a pattern, or in words of its own."""
_TARGETS = {name: pydantic.TypeAdapter[Any](kind) for name, kind in calls.TARGETS.items()}


def _narrow(model: type[AnyModel], **types: Any) -> type[AnyModel]:
    """Return the model with a trial's own types of some fields; their defaults and descriptions stay."""
    fields: Any = {}
    for name, kind in types.items():
        field = copy.copy(model.model_fields[name])
        field.metadata = []  # the limits of the new type only
        fields[name] = kind, field
    return pydantic.create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _context_type(trial: Trial) -> Any:
    """Return the type of a context: a label, or a record of columns of which some are known."""
    if trial.features is None:
        return Literal[trial.labels]
    columns = {str(each.column): _column_type(each) for each in trial.features.columns}
    record = TypedDict("Context", columns, total=False)  # type: ignore[misc]
    record.__pydantic_config__ = STRICT  # type: ignore[attr-defined]

    def check(context: dict[str, Any]) -> dict[str, Any]:
        if all(value is None for value in context.values()):
            raise ValueError(f"give at least one of the columns {', '.join(columns)}")
        return context

    return Annotated[record, AfterValidator(check)]


def _entry(value: Any) -> Any:
    """Check an entry of a record. A text where a number belongs is no reason to refuse a person: it counts as missing.

    The check "support" then turns yellow.
    """
    if isinstance(value, str):
        fine = len(value) <= LONGEST_TEXT and (value.isprintable() or not value)  # no ends of lines, no half characters
    else:
        # JSON has no largest integer; one that no float holds would be in the log, and in no table, for ever.
        fine = value is None or (type(value) in (int, bool, float) and abs(value) <= sys.float_info.max)
    if not fine:
        raise ValueError(f"give a finite number, a text of at most {LONGEST_TEXT} printable characters, or null")
    return value


_ENTRY_SCHEMA = {"type": ["number", "string", "boolean", "null"], "maxLength": LONGEST_TEXT}
Entry = Annotated[Any, AfterValidator(_entry), WithJsonSchema(_ENTRY_SCHEMA)]


def _column_type(column: Number | Category) -> Any:
    if isinstance(column, Category):
        rule = f"One of {', '.join(map(str, column.labels))}; others count as unknown."
    else:
        rule = f"A number from {column.low:g} to {column.high:g}; beyond that it counts as the nearest."
    return Annotated[Entry, Field(description=rule)]
