"""The bodies of calls and answers, for OpenAPI: the kinds of their fields. What a study allows is in `calls.py`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from omg_trial.calls import PERSON


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
"""An integer; in JSON 1.0 is one too."""


class Body(BaseModel):
    """Fields of their own kind, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenBody(Body):
    """Begin an episode for a person."""

    person: str = Field(pattern=f"^{PERSON}$", examples=["p-017"])
    context: dict[str, Any] | str = Field(examples=[{"age": 70, "lives": "alone"}])


class DecideBody(Body):
    """Ask for the action of a step; `action` only if the app has acted already, without a network."""

    step: Whole = Field(ge=0, examples=[0])
    state: str = Field(max_length=200, examples=["took it"])
    action: str | None = Field(None, max_length=200)


class ReportBody(Body):
    """Say what came of a step; a correction has a higher `revision`."""

    step: Whole = Field(ge=0, examples=[0])
    reward: float | None = Field(None, examples=[1.0])
    next_state: str | None = Field(None, max_length=200, examples=["took it"])
    revision: Whole = Field(0, ge=0, le=10**9)


class CloseBody(Body):
    """End an episode."""

    cause: str = Field("finished", max_length=200, examples=["finished"])


class EmptyBody(Body):
    """Nothing."""


class RollBackBody(Body):
    """Use an earlier version of the model."""

    version: Whole = Field(ge=0)


class PolicyBody(Body):
    """Ask for the policy of a context, without an episode."""

    context: dict[str, Any] | str = Field(examples=[{"age": 70, "lives": "alone"}])


class Opened(BaseModel):
    """An episode: its number, and the whole policy (H, S, A)."""

    episode: int
    event: int
    version: int
    rung: str
    cause: str | None
    certificate: float | None
    horizon: int
    states: list[str]
    actions: list[str]
    policy: list[list[list[float]]]
    drawn: list[list[str]] | None = Field(
        description="The action of every step and state, as a decision would answer it: an app without a network may "
        "act by it and tell later. null if limits, a window or replanning can change it."
    )


class Fallback(BaseModel):
    """Why a decision is not simply the plan's."""

    rung: str
    cause: str | None
    rules: list[str]


class Decided(BaseModel):
    """What to do, and how likely that was."""

    episode: int
    event: int
    step: int
    action: str
    probability: float | None
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


class Learning(BaseModel):
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
    study: str
    version: int
    event: int
    hash: str


class Error(BaseModel):
    """Why a call was refused; nothing has changed."""

    error: str
