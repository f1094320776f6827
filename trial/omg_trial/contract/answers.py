"""The answers of the service: every field that leaves it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class DescribedModel(BaseModel):
    """A model in which the text below a field is its description in the OpenAPI document."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class InLog(DescribedModel):
    """The answer of a call that was kept, and the number of its event."""

    event: int


class OfEpisode(InLog):
    """The same, of a call about an episode."""

    episode: int


class PolicyAnswer(DescribedModel):
    """A whole policy (H, S, A), and why it is this one."""

    version: int
    """Version of the model in use."""
    source: str
    """plan, last plan, fixed or control: see the guide on fallbacks."""
    cause: str | None
    """Why it is not a fresh plan; null if it is."""
    certificate: float | None
    """A bound on γ·(L(q*) - L(q)): how far the plan's objective L, which includes the barrier, is from its optimum, in
    units of 1/γ. null without a plan."""
    policy: list[list[list[float]]]


class Allowed(DescribedModel):
    """Leave to act without a network although the week has limits; `policy` and `drawn` keep them on every path."""

    until: str
    signature: str
    """To be sent with every decision that was made without a network."""


class Opened(PolicyAnswer, OfEpisode):
    """An episode: its number, and its whole policy."""

    horizon: int
    states: list[str]
    actions: list[str]
    drawn: list[list[str]] | None
    """The action of every step and state, as a decision would answer it: an app without a network may act by it and
    tell later. null unless the trial file says `offline`, or if a rule or replanning can change it."""
    allowance: Allowed | None
    """null if the week has no limits, or no app acts without a network."""


class Fallback(BaseModel):
    """The reason why a decision is not simply the plan's: another source of the policy, or rules that changed it."""

    source: str
    cause: str | None
    rules: list[str]


class Decided(OfEpisode):
    """The action to take, and its probability."""

    step: int
    action: str | None
    """null if nothing is to be done, as the person is not available."""
    probability: float | None
    """null if the app did something else than what was drawn, or nothing was drawn."""
    available: bool
    """Whether there was something to draw."""
    version: int
    fallback: Fallback | None


class Reported(OfEpisode):
    """An outcome that was kept."""

    step: int
    revision: int


class Closed(OfEpisode):
    """An episode that has ended."""

    cause: str


class Withdrawn(InLog):
    """A person who was taken out."""

    withdrawn: bool


class Erased(InLog):
    """A person whose key was destroyed."""

    erased: bool


class Enrolled(InLog):
    """A person who takes part."""

    enrolled: bool


class Steered(InLog):
    """A pause, a stop, or the end of a pause."""

    done: str


class Noted(BaseModel):
    """A check that is not green."""

    check: str
    severity: str
    message: str


class Published(InLog):
    """The version that is in use now, and the checks that were not green at that time."""

    version: int
    findings: list[Noted]


class LearningStarted(InLog):
    """Learning that has begun; a version follows when its checks have passed."""

    learning: int


class RolledBack(InLog):
    """The version that is in use again."""

    version: int


class Acknowledged(InLog):
    """An incident that somebody looks after."""

    incident: int
    note: str


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
