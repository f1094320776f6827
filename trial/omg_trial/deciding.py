"""How an action is chosen: the ladder of policies, the rules, the draw. Nothing is changed here."""

from __future__ import annotations

import datetime
import math
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import context_from_json
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray
from omg_trial.calls import Decide
from omg_trial.chance import uniform
from omg_trial.episodes import Record
from omg_trial.rules import ruled
from omg_trial.state import State
from omg_trial.study.trial import Trial


class Situation(NamedTuple):
    """What an answer depends on, besides the call."""

    trial: Trial
    state: State
    agent: ModelAgent
    now: datetime.datetime


class Rung(NamedTuple):
    """A policy (H, S, A), and where on the ladder it stands."""

    name: str
    cause: str | None
    """Why no higher one."""
    policy: FloatArray
    certificate: float | None = None
    gamma: float | None = None


def planned(trial: Trial, agent: ModelAgent, context: str) -> Rung:
    """Return the plan for a context, with the study's floor; an error if none is certified."""
    decision = agent.decide(context_from_json(context))
    if not math.isfinite(decision.certificate):
        raise ValueError("a plan has no certificate")
    policy = trial.floor.policy(decision.policy) if trial.floor.probability else decision.policy
    return Rung("plan", None, np.asarray(policy), float(decision.certificate), float(decision.gamma))


def highest_rung(at: Situation, context: str) -> Rung:
    """Return the highest rung of the ladder that holds: plan, last plan, fixed."""
    try:
        return planned(at.trial, at.agent, context)
    except (ArithmeticError, MemoryError, ValueError) as error:
        cause = f"no certified plan: {type(error).__name__}"
    last = at.state.last_plan(context)
    if last is not None:
        return Rung("last plan", cause, last.policy)
    return Rung("fixed", cause, at.trial.fixed_policy())


def steps_may_differ(trial: Trial) -> bool:
    """Return whether a step may be decided in another way than by the policy that its episode began with."""
    return bool(trial.replan or trial.window or trial.limits.most or trial.limits.least)


def drawn_actions(at: Situation, person: str, episode: int, policy: FloatArray) -> list[list[str]] | None:
    """Return the action of every step and state, (H, S), as `decided` would: for an app without a network.

    None if a step may be decided in another way.
    """
    if steps_may_differ(at.trial):
        return None
    numbers = [uniform(at.state.secret, person, episode, step) for step in range(len(policy))]
    return [
        [at.trial.actions[draw_index(row, number)] for row in rows]
        for rows, number in zip(policy, numbers, strict=True)
    ]


def decided(at: Situation, record: Record, call: Decide) -> dict[str, Any]:
    """Return the decision of a step: the action, all probabilities, and what they come from."""
    assert record.policy is not None
    rung, version = Rung(record.rung, None, record.policy), record.version
    if at.trial.replan:
        rung, version = highest_rung(at, record.context), at.state.version.number
    earlier = at.state.choices_of(record.person) if steps_may_differ(at.trial) else []
    chances, rules = ruled(at.trial, rung.policy[call.step, call.state], call.state, at.now, earlier)
    drawn = draw_index(chances, uniform(at.state.secret, record.person, record.number, call.step))
    deviates = call.action is not None and call.action != drawn
    return {
        "episode": call.episode,
        "step": call.step,
        "state": call.state,
        "action": drawn if call.action is None else call.action,
        "drawn": drawn,
        "probability": None if deviates else float(chances[drawn]),
        "probabilities": chances.tolist(),
        "version": version,
        "rung": rung.name,
        "cause": rung.cause,
        "rules": rules,
    }
