"""How an action is chosen: a policy and where it comes from, the rules of the trial, the draw. Nothing is changed here.

*Why did a decision fall back?* Every episode and every decision has a `source` (`PolicySource`) and, unless that is
"plan", a `cause`: in the answer, in the events "opened" and "decided", in the exported table, on the page of a person
and in what `omg-trial replay` prints. `choose_policy` is the only function that sets them.
"""

from __future__ import annotations

import datetime
import enum
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray
from omg_trial.contract.calls import Decide
from omg_trial.episodes import Allowance, Record
from omg_trial.keys.marks import alias_of, keyed_hash
from omg_trial.log.events import canonical
from omg_trial.people.participants import CONTROL, LEARNING, Halt, Participant, WeekAccount, week_of
from omg_trial.rules import Adjusted, apply_rules, moment
from omg_trial.state import State
from omg_trial.trial_file.trial import Trial


class PolicySource(enum.StrEnum):
    """Where a policy comes from, the best first. The next one is used only if the one before it fails."""

    PLAN = "plan"
    """A certified plan for this context, made now with the model in use."""
    LAST_PLAN = "last plan"
    """The newest plan for the same context among the last plans of all people, with whatever model was in use then.

    Each person's last plan is kept until they withdraw. Contexts are compared as texts: 71 and 71.0 are two."""
    FIXED = "fixed"
    """The probabilities of `actions.fallback` in the trial file."""
    CONTROL = "control"
    """The same probabilities, because the person is in the control group: no other source is tried."""


class DecisionInputs(NamedTuple):
    """Everything that an answer depends on, besides the call."""

    trial: Trial
    state: State
    agent: ModelAgent
    now: datetime.datetime

    @property
    def number(self) -> int:
        """Number of the event that the call becomes."""
        return self.state.number + 1


class ChosenPolicy(NamedTuple):
    """A policy (H, S, A), where it comes from, and why not from a better source."""

    source: PolicySource
    cause: str | None
    policy: FloatArray
    certificate: float | None = None
    gamma: float | None = None


class UncertifiedPlanError(ValueError):
    """The planner stopped without a finite certificate."""


def make_plan(trial: Trial, agent: ModelAgent, context: str) -> ChosenPolicy:
    """Return the plan for a context, with the trial's floor; an error if no plan is certified."""
    decision = agent.decide(trial.context(context))
    if not math.isfinite(decision.certificate):
        raise UncertifiedPlanError
    policy = trial.floor.policy(decision.policy) if trial.floor.probability else decision.policy
    certificate, gamma = float(decision.certificate), float(decision.gamma)
    return ChosenPolicy(PolicySource.PLAN, None, np.asarray(policy), certificate, gamma)


def choose_policy(at: DecisionInputs, context: str, arm: str = LEARNING) -> ChosenPolicy:
    """Return the policy from the best source that works: a plan, else the last plan, else the fixed probabilities.

    `cause` is "no certified plan: " and the kind of error with which planning failed:

    - UncertifiedPlanError: the planner ran, but could not prove how good its plan is;
    - ArithmeticError and its kinds, ValueError: the model's tables are not finite, or not an MDP;
    - MemoryError: the machine had no memory left;
    - any other kind: a defect of an oracle or of the planner.

    The text of the error is left out, because it may repeat a person's context. Planning for that context again by
    `POST /v1/policy` shows whether the model in use still fails.
    """
    if arm == CONTROL:
        return ChosenPolicy(PolicySource.CONTROL, None, at.trial.fixed_policy())
    try:
        return make_plan(at.trial, at.agent, context)
    except Exception as error:  # whatever an oracle or the planner may raise: there is always an answer
        cause = f"no certified plan: {type(error).__name__}"
    last = at.state.last_plan(context)
    if last is not None:
        return ChosenPolicy(PolicySource.LAST_PLAN, cause, np.array(last.policy))
    return ChosenPolicy(PolicySource.FIXED, cause, at.trial.fixed_policy())


def draw_ahead(
    at: DecisionInputs, person: str, occasion: str, policy: FloatArray, *, allowed: bool = False
) -> list[list[str]] | None:
    """Return the action of every step and state, (H, S), as `decide_step` would: for an app without a network.

    None if no app acts without one, so that nobody knows a draw before it is logged, or if a step may be decided in
    another way; not if the policy is that of an allowance.
    """
    if not at.trial.offline or (at.trial.steps_may_differ and not allowed):
        return None
    numbers = [uniform(at.state.secret, person, occasion, step) for step in range(len(policy))]
    return [
        [at.trial.actions[draw_index(row, number)] for row in rows]
        for rows, number in zip(policy, numbers, strict=True)
    ]


def grant_allowance(
    at: DecisionInputs, person: Participant, name: str, occasion: str, policy: FloatArray
) -> Allowance | None:
    """Return probabilities for all steps and states that keep the limits of the week on every path, until it ends.

    Limits depend on what the week has had, and so on states that nobody knows when an episode opens. An allowance
    assumes the worst of them. After each step it counts, for every action, the largest probability that any state would
    give it, and every action that any state would draw. Whatever states follow, the week has then had at most what was
    counted: the hard limit holds, and by the bound of `people.budgets` so does the expected number.

    None unless the trial `grants_allowances`.
    """
    if not at.trial.grants_allowances:
        return None
    local = person.local(at.now)
    account, found = person.account(week_of(local)), []
    for step, rows in enumerate(policy):
        made = [apply_rules(at.trial, row, state, local, account, {}) for state, row in enumerate(rows)]
        number = uniform(at.state.secret, name, occasion, step)
        largest = np.max([each.chances for each in made], axis=0)
        account = account.after(None, largest.tolist())
        account = account._replace(taken=(*account.taken, *{draw_index(each.chances, number) for each in made}))
        found.append(made)
    monday = local.date() + datetime.timedelta(days=7 - local.weekday())
    end = datetime.datetime.combine(monday, datetime.time(), tzinfo=local.tzinfo).astimezone(datetime.UTC)
    return Allowance(
        until=end.isoformat(),
        policy=[[each.chances.tolist() for each in made] for made in found],
        rules=[[list(each.rules) for each in made] for made in found],
        closed=[[list(each.closed) for each in made] for made in found],
        week=week_of(local),
    )


def decided_at(at: DecisionInputs, record: Record, call: Decide) -> datetime.datetime:
    """Return the time to whose day and week a decision belongs: of what an app did without a network, when it did so.

    That was not before the episode was opened, whatever the device says: no week of the past has room for it.
    """
    if call.action is None or call.device_time is None:
        return at.now
    return min(at.now, max(moment(record.opened), moment(call.device_time)))


def decide_step(at: DecisionInputs, record: Record, call: Decide) -> dict[str, Any]:
    """Return the decision of a step: the action, all probabilities, and what they come from."""
    assert record.policy is not None
    person, acted, when = at.state.people[record.person], call.action is not None, decided_at(at, record, call)
    local, state = person.local(when), at.trial.states.index(call.state)
    drift = None if acted or call.device_time is None else (moment(call.device_time) - at.now).total_seconds()
    about = {
        "episode": record.number,
        "step": call.step,
        "state": state,
        "acted": acted,
        "local": local.isoformat(timespec="seconds"),
        "device_time": call.device_time,
        "allowance": call.allowance,
        "drift": drift,
    }
    source, cause, version, row = record.source, record.cause, record.version, record.policy[call.step][state]
    halt = None if acted else at.state.halted or person.paused
    if halt is not None or not (call.available and record.available):
        rule, done = ("unavailable", at.trial.unavailable) if halt is None else (halt.kind, at.trial.paused)
        none = dict.fromkeys(("drawn", "probability", "probabilities"))
        how = {"version": version, "source": source, "cause": cause, "rules": [rule], "closed": []}
        return {**about, **none, **how, "action": done, "available": False}
    if at.trial.replan:  # the newest model, whatever the episode began with
        chosen, version = choose_policy(at, record.context, record.arm), at.state.version.number
        source, cause, row = chosen.source, chosen.cause, chosen.policy[call.step, state].tolist()
    # An app that has acted without a network has not heard of an action that was closed meanwhile.
    halted = {} if acted else at.state.halted_actions
    # What an app has done without a network, it has done by the allowance, whatever has become of its week.
    if record.allowance is not None and record.allowance.holds(
        when, record.allowance.week if acted else week_of(local)
    ):
        made = _allowed(at.trial, record.allowance, call.step, state, local, halted)
    else:
        account = person.account(week_of(local))
        made = apply_rules(at.trial, np.array(row), state, local, account, halted)
    # Drawn even if the app has acted already: the log then shows whether it followed the draw.
    drawn = draw_index(made.chances, uniform(at.state.secret, record.person, record.occasion, call.step))
    done = drawn if call.action is None else at.trial.actions.index(call.action)
    return {
        **about,
        "action": done,
        "drawn": drawn,
        "probability": float(made.chances[drawn]) if done == drawn else None,
        "probabilities": made.chances.tolist(),
        "version": version,
        "source": source,
        "cause": cause,
        "rules": made.rules,
        "closed": made.closed,
        "available": made.available,
    }


def _allowed(
    trial: Trial, allowance: Allowance, step: int, state: int, local: datetime.datetime, halted: Mapping[int, Halt]
) -> Adjusted:
    """Return the probabilities that an allowance has for a step: the same with a network and without.

    Where an action that it wants is `halted`, other actions are drawn than the allowance has counted; so none is that
    has a hard limit, and the later steps of the allowance keep it all the same.
    """
    row, closed = np.array(allowance.policy[step][state]), allowance.closed[step][state]
    if any(row[action] for action in halted):
        closing = {**dict.fromkeys(trial.limits.most, next(iter(halted.values()))), **halted}
        counted = WeekAccount(drawn=trial.limits.decisions_per_week or 0)  # `row` is within the budgets of the week
        return apply_rules(trial, row, state, local, counted, closing)
    available = not closed or int(trial.space.admissible[state].sum()) > len(closed) + 1
    return Adjusted(row, tuple(allowance.rules[step][state]), tuple(closed), available)


def draw_arm(at: DecisionInputs, person: str) -> str:
    """Return the arm of somebody who is enrolled: a draw of its own, by the secret and the person alone."""
    return CONTROL if uniform(at.state.secret, person, "#arm", 0) < at.trial.people.control else LEARNING


def uniform(secret: str, person: str, occasion: str, step: int) -> float:
    """Return the number in [0, 1) of one step, from which its action is drawn.

    It is the first 53 bits of the HMAC-SHA-256 of the person's alias, occasion and step under the trial's secret: it
    depends on no other person, on no order of calls, on no clock, and not on how often the occasion was opened.

    >>> uniform("a", "p1", "day 1", 0) == uniform("a", "p1", "day 1", 0) != uniform("a", "p1", "day 1", 1)
    True
    """
    mark = keyed_hash(secret, canonical([alias_of(secret, person), occasion, step]))
    return float(int.from_bytes(mark[:8], "big") >> 11) * 2.0**-53
