"""The calls of a trial and their answers: one set of pydantic models, made from the trial file.

They parse what arrives, are the types of what goes on inside, and are the OpenAPI document. A call is checked once,
where it enters: by FastAPI over HTTP, or by `Contract.parse` for a caller in this process.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import pydantic
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from omg_cmdp.contexts import context_to_json
from omg_cmdp.oracles.feature_map import Category, Number
from omg_trial.trial_file.trial import Trial

CAUSES = Literal["finished", "dropped out", "overdue", "other"]
LONGEST_TEXT = 100
AnyModel = TypeVar("AnyModel", bound=BaseModel)


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A call that is refused, and changes nothing; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class OlderLog(Refusal):
    """The caller has seen an event that the log does not have."""

    def __init__(self, seen: str, head: str) -> None:
        number, last = (mark.partition(":")[0] for mark in (seen, head))
        found = "has another one" if int(number) <= int(last) else f"ends with event {last}"
        advice = "perhaps an older backup was restored, or this is another database; nothing was done"
        super().__init__(409, f"the caller has seen event {number}, but the log {found}: {advice}")
        self.head = head


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _entry(value: Any) -> Any:
    """Check an entry of a record. A text where a number belongs is no reason to refuse a person: it counts as missing.

    The check "support" then turns yellow.
    """
    if isinstance(value, str):
        fine = len(value) <= LONGEST_TEXT and not any("\ud800" <= each <= "\udfff" for each in value)
    else:
        fine = value is None or type(value) in (int, bool) or (type(value) is float and math.isfinite(value))
    if not fine:
        raise ValueError(f"give a finite number, a text of at most {LONGEST_TEXT} characters, or null")
    return value


Whole = Annotated[int, BeforeValidator(_whole)]
"""An integer; in JSON 1.0 is one too."""
_ENTRY_SCHEMA = {"type": ["number", "string", "boolean", "null"], "maxLength": LONGEST_TEXT}
Entry = Annotated[Any, AfterValidator(_entry), WithJsonSchema(_ENTRY_SCHEMA)]
Person = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,99}$", examples=["p-017"])]
Episode = Annotated[Whole, Field(ge=1, le=2**53)]
Step = Annotated[Whole, Field(ge=0, examples=[0])]
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Call(BaseModel):
    """What an app asks for. The path of HTTP names an episode or a person; the fields are the body."""

    model_config = _STRICT
    name: ClassVar[str]
    target: ClassVar[Literal["episode", "person"] | None] = None
    """What the call is about, if that is no field of it."""


class Open(Call):
    """Begin an episode for a person."""

    name = "open"
    person: Person
    context: Any = Field(description="What is known of the person: by column of the trial file, or one of its labels.")


class Decide(Call):
    """Ask for the action of a step; with `action` the app says that it has acted already, without a network."""

    name, target = "decide", "episode"
    step: Step
    state: str
    action: str | None = None


class Report(Call):
    """Say what came of a step: its reward, the next state, or both; a correction has a higher `revision`."""

    name, target = "report", "episode"
    step: Step
    reward: float | None = None
    next_state: str | None = None
    revision: Whole = Field(0, ge=0, le=10**9)

    @pydantic.model_validator(mode="after")
    def _says_something(self) -> Report:
        if self.reward is None and self.next_state is None:
            raise ValueError("give `reward`, `next_state` or both")
        return self


class Close(Call):
    """End an episode."""

    name, target = "close", "episode"
    cause: CAUSES = "finished"


class Withdraw(Call):
    """Take a person out of the trial. The body is empty."""

    name, target = "withdraw", "person"


class Learn(Call):
    """Begin to learn from all closed episodes. The body is empty."""

    name = "learn"


class RollBack(Call):
    """Use an earlier version of the model."""

    name = "roll back"
    version: Whole = Field(ge=0, le=10**9)


class AskPolicy(BaseModel):
    """Ask for the policy of a context, without an episode and without a person: nothing happens."""

    model_config = _STRICT
    context: Any = Field(description="As in the call that opens an episode.")


class PolicyAnswer(BaseModel):
    """A whole policy (H, S, A), and why it is this one."""

    version: int = Field(description="Version of the model in use.")
    source: str = Field(description="plan, last plan or fixed: see the guide on fallbacks.")
    cause: str | None = Field(description="Why it is not a fresh plan; null if it is.")
    certificate: float | None = Field(description="The plan is at most this far from the best; null without a plan.")
    policy: list[list[list[float]]]


class Opened(PolicyAnswer):
    """An episode: its number, and its whole policy."""

    episode: int
    event: int
    horizon: int
    states: list[str]
    actions: list[str]
    drawn: list[list[str]] | None = Field(
        description="The action of every step and state, as a decision would answer it: an app without a network may "
        "act by it and tell later. null if limits, a window or replanning can change it."
    )


class Fallback(BaseModel):
    """Why a decision is not simply the plan's: another source of the policy, or rules that changed it."""

    source: str
    cause: str | None
    rules: list[str]


class Decided(BaseModel):
    """What to do, and how likely that was."""

    episode: int
    event: int
    step: int
    action: str
    probability: float | None = Field(description="null if the app did something else than what was drawn.")
    version: int
    fallback: Fallback | None


class Reported(BaseModel):
    """An outcome that was kept."""

    episode: int
    event: int
    step: int
    revision: int


class Closed(BaseModel):
    """An episode that has ended."""

    episode: int
    event: int
    cause: str


class Withdrawn(BaseModel):
    """A person who was taken out."""

    withdrawn: bool
    event: int


class LearningStarted(BaseModel):
    """Learning that has begun; a version follows when its checks have passed."""

    learning: int
    event: int


class RolledBack(BaseModel):
    """The version that is in use again."""

    version: int
    event: int


class Health(BaseModel):
    """Whether the service answers, and where its log is."""

    status: str
    trial: str
    version: int
    event: int
    hash: str


class ErrorAnswer(BaseModel):
    """Why a call was refused; nothing has changed."""

    error: str


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
    (Decide(step=0, state='took it', action=None), 3)
    """

    def __init__(self, trial: Trial) -> None:
        low, high = trial.reward_range
        state, action = Literal[trial.states], Literal[trial.actions]
        step = Annotated[Step, Field(lt=trial.space.horizon)]
        reward, context = Annotated[float, Field(ge=low, le=high)] | None, _context_type(trial)
        calls: list[type[Call]] = [
            _narrow(Open, context=context),
            _narrow(Decide, step=step, state=state, action=action | None),
            _narrow(Report, step=step, reward=reward, next_state=state | None),
            *(Close, Withdraw, Learn, RollBack),
        ]
        self.calls = {call.name: call for call in calls}
        self.policy, self.decided = _narrow(AskPolicy, context=context), _narrow(Decided, action=action)

    def parse(self, name: str, fields: Mapping[str, Any]) -> tuple[Call, int | str | None]:
        """Return a call by its name, and the episode or person that it is about; `Refusal` names what is wrong."""
        if name not in self.calls:
            raise Refusal(404, f"there is no call {name!r:.60}; there are {', '.join(self.calls)}")
        rest, model, target = dict(fields), self.calls[name], None
        try:
            if (about := model.target) is not None:
                named = {key: rest.pop(key) for key in [about] if key in rest}
                target = _TARGETS[about].model_validate(named).model_dump()[about]
            return model.model_validate(rest), target
        except pydantic.ValidationError as error:
            raise Refusal(422, describe_problem(error.errors())) from None


def context_text(trial: Trial, context: Any) -> str:
    """Return a checked context as the JSON text that the log has: a label, or all columns of the trial file."""
    if trial.features is None:
        return context_to_json(context)
    return context_to_json({each.column: context.get(each.column) for each in trial.features.columns})


def describe_problem(errors: Sequence[Any], skip: int = 0) -> str:
    """Return the first problem of a call: its field and the rule. Values may be a person's data: they are not told."""
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"][skip:]) or "body"
    return f"`{field:.60}`: {first['msg'].removeprefix('Value error, ')}"


_TARGETS: dict[str, type[BaseModel]] = {
    "episode": pydantic.create_model("OfEpisode", __config__=_STRICT, episode=(Episode, ...)),
    "person": pydantic.create_model("OfPerson", __config__=_STRICT, person=(Person, ...)),
}


def _narrow(model: type[AnyModel], **types: Any) -> type[AnyModel]:
    """Return the model with a trial's own types of some fields; their defaults and descriptions stay."""
    fields: Any = {name: (kind, copy.copy(model.model_fields[name])) for name, kind in types.items()}
    return pydantic.create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _context_type(trial: Trial) -> Any:
    """Return the type of a context: a label, or a record of columns of which some are known."""
    if trial.features is None:
        return Literal[trial.labels]
    columns = {str(each.column): _column_type(each) for each in trial.features.columns}
    record = TypedDict("Context", columns, total=False)  # type: ignore[misc]
    record.__pydantic_config__ = _STRICT  # type: ignore[attr-defined]

    def check(context: dict[str, Any]) -> dict[str, Any]:
        if all(value is None for value in context.values()):
            raise ValueError(f"give at least one of the columns {', '.join(columns)}")
        return context

    return Annotated[record, AfterValidator(check)]


def _column_type(column: Number | Category) -> Any:
    if isinstance(column, Category):
        rule = f"One of {', '.join(map(str, column.labels))}; others count as unknown."
    else:
        rule = f"A number from {column.low:g} to {column.high:g}; beyond that it counts as the nearest."
    return Annotated[Entry, Field(description=rule)]
