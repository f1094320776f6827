"""The calls that an app can make, before a trial narrows their types, and why a call may be refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from omg_trial.trial_file import kinds

CAUSES = Literal["finished", "dropped out", "overdue", "other"]

KEY = re.compile(r"[\x21-\x7e]{1,200}")
KEY_RULE = "1 to 200 visible ASCII characters without spaces"


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A call that is refused, and changes nothing; `status` is that of HTTP."""

    counted: ClassVar[str | None] = None
    """The name under which a check counts it, beside its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class OutsideConsent(Refusal):
    """A decision on a day on which nothing may be decided for the person."""

    counted = "consent"


class OlderLog(Refusal):
    """The caller has seen an event that the log does not have."""

    counted = "older log"

    def __init__(self, seen: str, head: str) -> None:
        number, last = (mark.partition(":")[0] for mark in (seen, head))
        found = "has another one" if int(number) <= int(last) else f"ends with event {last}"
        advice = "perhaps an older backup was restored, or this is another database; nothing was done"
        super().__init__(409, f"the caller has seen event {number}, but the log {found}: {advice}")
        self.head = head


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""In JSON 1.0 is an integer too. It stands after the limits of a type, which OpenAPI would not have otherwise."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,99}$"
NAME_RULE = "use up to 100 letters, digits and . _ : @ + - without spaces, and begin with a letter or a digit"
Person = Annotated[str, Field(pattern=NAME, examples=["p-017"])]
Occasion = Annotated[str, Field(pattern=NAME, examples=["2026-11-02"])]
Episode = Annotated[int, Field(ge=1, le=2**53), WHOLE]
Step = Annotated[int, Field(ge=0), WHOLE]
Count = Annotated[int, Field(ge=0, le=10**9), WHOLE]
Note = Annotated[str, Field(min_length=1, max_length=2000, examples=["The app's team has a mend; out tomorrow."])]
Cause = Annotated[str, Field(min_length=1, max_length=500), kinds.Printable]
Zone = Annotated[kinds.Zone, Field(max_length=60, examples=["Europe/Berlin"])]
TARGETS: dict[str, Any] = {"episode": Episode, "incident": Episode, "person": Person}
"""What a call can be about, if that is no field of it: over HTTP the path names it."""
STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)
"""The text below a field is its description in the OpenAPI document."""


class Call(BaseModel):
    """A request of an app. The path of HTTP names an episode or a person; the fields are the body.

    >>> from omg_trial.contract.calls import Decide
    >>> Decide(step=0, state="took it").name
    'decide'
    """

    model_config = STRICT
    name: ClassVar[str]
    """That of its class, in words."""
    target: ClassVar[Literal["episode", "person", "incident"] | None] = None
    """What the call is about, if that is no field of it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = re.sub("(?<!^)(?=[A-Z])", " ", cls.__name__).lower()


class KeyedCall(NamedTuple):
    """A call that was checked, with the key that makes it one call, however often it is sent."""

    call: Call
    """What is asked."""
    target: int | str | None
    """The episode or the person that the call is about, if that is no field of it."""
    key: str
    """The text that makes repeated requests one call."""
    seen: str | None = None
    """The `mark` of the last event that the caller knows of."""
    actor: str | None = None
    """The name of the caller's token; None for the service itself. It is no part of the call: tokens are replaced."""
    bound: str | None = None
    """The only person that the caller may call about, as it is their phone; None for any."""


class Answer(NamedTuple):
    """A JSON text, and the `mark` of the event that holds it."""

    text: str
    """The answer, as JSON."""
    mark: str
    """Number and hash of the event."""
    warning: str | None = None
    """A line for the service's own log, the first time only: that an episode has opened without a fresh plan."""


class Open(Call):
    """Begin an episode for a person."""

    person: Person
    occasion: Occasion | None = None
    """Name of the decision point, such as a date. It exists once for each person, for ever: the same name has the same
    episode. Without one, the next after those in which something was decided."""
    context: Any
    """What is known of the person: by column of the trial file, or one of its labels."""
    available: bool = True
    """Whether anything may be drawn in the episode."""
    device_time: kinds.MomentText | None = None
    """The time by the clock of the device."""


class Decide(Call):
    """Ask for the action of a step; with `action` the app says that it has acted already, without a network."""

    target = "episode"
    step: Step
    state: str
    action: str | None = None
    available: bool = True
    """Whether the person can be asked to do something now; if not, nothing is drawn."""
    device_time: kinds.MomentText | None = None
    """The time by the clock of the device."""
    allowance: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """The allowance's signature."""

    @model_validator(mode="after")
    def _was_available(self) -> Decide:
        if self.action is not None and not self.available:
            raise ValueError("`action` is for what was drawn: leave it out for somebody who was not available")
        return self


class Report(Call):
    """Say what came of a step: its reward, the next state, or both; a correction has a higher `revision`."""

    target = "episode"
    step: Step
    reward: float | None = None
    next_state: str | None = None
    revision: Count = 0

    @model_validator(mode="after")
    def _says_something(self) -> Report:
        if self.reward is None and self.next_state is None:
            raise ValueError("give `reward`, `next_state` or both")
        return self


class Close(Call):
    """End an episode."""

    target = "episode"
    cause: CAUSES = "finished"


class Withdraw(Call):
    """Take a person out of the trial; nobody has to give a reason for that."""

    target = "person"
    cause: Cause | None = None


class Erase(Call):
    """Take a person out of the trial, and destroy the key of their name and contexts."""

    target = "person"
    cause: Cause
    """Why. It stays in the log: do not name the person."""


class Look(Call):
    """Note that somebody has looked at a person, or at all. The service makes this call itself."""

    what: str
    person: Person | None = None


DATES = {"consent_from", "consent_to", "end"}
"""What is known of a person by days."""


class Enrol(Call):
    """Take a person in, or change zone, consent and end of one who is there. Days are by the person's own clock.

    What is not named stays as it was; null takes a date away.
    """

    person: Person
    arm: Literal["learning", "control"] | None = None
    """Drawn if it is null; otherwise the trial file must say that arms are given."""
    zone: Zone | None = None
    """That of the trial file if it was never given."""
    consent_from: kinds.DayText | None = None
    consent_to: kinds.DayText | None = None
    end: kinds.DayText | None = None
    """The last day on which anything is decided."""

    @model_validator(mode="after")
    def _goes_forward(self) -> Enrol:
        if self.consent_from is not None and self.consent_to is not None and self.consent_from > self.consent_to:
            raise ValueError("`consent_to` must not be before `consent_from`")
        return self

    @property
    def taken_away(self) -> set[str]:
        """Dates that are null; one that is left out stays as it was."""
        return {name for name in DATES & self.model_fields_set if getattr(self, name) is None}


class Pause(Call):
    """Pause a person, an action, or, if neither is named, the whole trial."""

    person: Person | None = None
    action: str | None = None
    cause: Cause

    @model_validator(mode="after")
    def _names_one(self) -> Pause:
        if self.person is not None and self.action is not None:
            raise ValueError("name a person or an action, or neither for the whole trial")
        return self


class Resume(Pause):
    """End a pause."""


class Stop(Pause):
    """Stop a person, an action, or the whole trial, for good."""


class Publish(Call):
    """Use the model that waits."""

    version: Count
    cause: Cause


class Learn(Call):
    """Begin to learn from all closed episodes. The body is empty."""


class RollBack(Call):
    """Use an earlier version of the model."""

    version: Count
    cause: Cause | None = None


class Acknowledge(Call):
    """Say that somebody looks after an incident, with a note for those who read of it later."""

    target = "incident"
    note: Note


class AskPolicy(BaseModel):
    """Ask for the policy of a context, without an episode and without a person: nothing happens."""

    model_config = STRICT
    context: Any
    """As in the call that opens an episode."""
