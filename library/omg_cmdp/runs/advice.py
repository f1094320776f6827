"""What an agent would do for a context: how likely each action is, what comes next, by how much, and how sure it is.

With Q̂ the action values of the best policy of the agent's model, the best action of a step and state has the largest
Q̂, and the runner-up the next one. What would change the choice: if the runner-up were worth Q̂(best) - Q̂(runner-up)
more. How sure the agent is: the share of models drawn from its oracles in whose best policy the best action is chosen.
With budgets, rewards are those after charges, at the prices of the plan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.base import ModelAgent
from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.mdp.bellman import best_response, policy_values
from omg_cmdp.mdp.occupancy import flow
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.misfit.judgement import sentence
from omg_cmdp.planning.decision import Decision, state_policy
from omg_cmdp.planning.solution import Status
from omg_cmdp.runs.display import advice_text
from omg_cmdp.runs.pictures import draw_advice
from omg_cmdp.theory.ceiling.ceiling import RegretCeiling
from omg_cmdp.validation import UNEXPECTED, FloatArray, IntArray, instance_of, listed, seed_number

if TYPE_CHECKING:
    import pandas

DRAWS = 100
MOST_DRAWN = 10**7
"""Entries in the tables of all draws; where fewer than `FEWEST` draws fit, none are made."""
FEWEST = 10
DIGITS = 6
"""Digits of the numbers in a record."""

_TEXTS = ("context", "misfit")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Advice:
    """The choices of an agent for a context in K steps and N states, of A actions. `advise` makes it.

    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> agent = omg.OMG(omg.Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> Advice.of_record(advise(agent, None).record()).policy.shape
    (1, 1, 2)
    """

    context: Context
    """The context that was asked about."""
    steps: IntArray
    """(K,), counted from 0."""
    states: IntArray
    """(N,)."""
    policy: FloatArray
    """The policy that the agent plays, exploration included, (K, N, A)."""
    best: IntArray
    """The best action in its model, (K, N); without a model, the most likely one."""
    runner_up: IntArray
    """The second-best action, (K, N)."""
    visits: FloatArray | None = None
    """The probability of being in the state at the step, in its model, (K, N); None without a model."""
    lead: FloatArray | None = None
    """The value of the best action less that of the runner-up, in units of reward, (K, N); None without a model."""
    sure: FloatArray | None = None
    """The share of drawn models in which the best action is the best, (K, N); None if none can be drawn."""
    at_most: FloatArray | None = None
    """The most that this policy loses in any plausible model, in units of reward, (); None without a ceiling."""
    settled: FloatArray | None = None
    """1 where all plausible models agree on an action, else 0, (K, N); None without a ceiling."""
    prices: FloatArray | None = None
    """What one unit more of each budget would add to the plan, in units of reward, (J,); None if no budget is kept."""
    misfit: str | None = None
    """The sentence of `agent.misfit()`, if the data contradict the class of an oracle: then do not trust `sure`."""

    def table(self, state_names: Sequence[str] = (), action_names: Sequence[str] = ()) -> pandas.DataFrame:
        """Return a data frame with a row for each step and state; without names they have numbers."""
        import pandas

        step, state = (each.reshape(-1) for each in np.meshgrid(self.steps, self.states, indexing="ij"))
        best, second = self.best.reshape(-1), self.runner_up.reshape(-1)
        columns = {
            "step": step,
            "state": _named("state_names", state_names, state),
            "action": _named("action_names", action_names, best),
            "probability": np.take_along_axis(self.policy, self.best[..., None], axis=2).reshape(-1),
            "runner_up": _named("action_names", action_names, second),
        }
        numbers = {"lead": self.lead, "sure": self.sure, "visits": self.visits}
        return pandas.DataFrame(
            columns | {name: np.nan if table is None else table.reshape(-1) for name, table in numbers.items()}
        )

    def __repr__(self) -> str:
        return advice_text(self)

    def plot(self, state_names: Sequence[str] = (), action_names: Sequence[str] = ()) -> Any:
        """Return a figure of matplotlib: how likely each action is, by step, in the states visited most.

        Parameters
        ----------
        state_names, action_names : sequence of str, default ()
            The names of all states and actions; by default they have numbers.
        """
        return draw_advice(self, state_names, action_names)

    def record(self) -> dict[str, Any]:
        """Return everything as plain data, rounded to six digits."""
        arrays = {name: each for name, each in vars(self).items() if name not in _TEXTS}
        plain = {name: None if each is None else each.round(DIGITS).tolist() for name, each in arrays.items()}
        return {"context": context_to_json(self.context), **plain, "misfit": self.misfit}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Advice:
        """Return what `record` was made of, rounded."""
        try:
            arrays: dict[str, Any] = {
                name: None if each is None else np.array(each) for name, each in record.items() if name not in _TEXTS
            }
            return cls(context=context_from_json(record["context"]), misfit=record.get("misfit"), **arrays)
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`record` must be that of an Advice, got {error!r}") from error


def advise(
    agent: Agent,
    context: Context,
    *,
    steps: Iterable[int] | None = None,
    states: Iterable[int] | None = None,
    seed: int = 0,
    ceiling: RegretCeiling | None = None,
) -> Advice:
    """Return what `agent` would do for `context` now. Nothing is learned or changed.

    Parameters
    ----------
    agent : Agent
        The agent that is asked.
    context : vector, record or label
        The context.
    steps : iterable of int, optional
        Steps, counted from 0; by default all.
    states : iterable of int, optional
        States; by default those in which there is something to choose.
    seed : int, default 0
        The seed of the models drawn, 100 of them, or fewer if they are large.
    ceiling : RegretCeiling, optional
        A ceiling that has seen the agent's episodes. With it the advice also says what the policy loses at most, and
        what is settled.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1}
    >>> agent = omg.OMG(omg.Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> for reward in (1.0, 1.0, 1.0):
    ...     agent.update(omg.Trajectory(context=None, states=[0, 0], actions=[1], rewards=[reward]))
    >>> advise(agent, None).table(action_names=("wait", "act"))[["step", "state", "action", "runner_up"]]
       step  state action runner_up
    0     0      0    act      wait
    """
    instance_of("agent", agent, Agent)
    space = agent.space
    at = _chosen("steps", steps, np.arange(space.horizon), "a step below the horizon")
    where = _chosen("states", states, choices(space), "a state with two admissible actions")
    generator = np.random.default_rng(seed_number(seed))
    decision = agent.decide(context)
    model = decision.model or agent.model(context)
    cells = np.ix_(at, where)
    told = {} if ceiling is None else _judged(ceiling, context, decision, cells)
    if model is None:
        order = np.argsort(-decision.policy[cells], axis=-1, kind="stable")
        policy, (best, second) = decision.policy, np.moveaxis(order[..., :2], -1, 0)
        return Advice(
            context=context, steps=at, states=where, policy=policy[cells], best=best, runner_up=second, **told
        )
    charges = _charges(decision)
    # Where no policy keeps the budgets, prices are a proof of that, and say nothing of rewards.
    worth = None if decision.status is Status.INFEASIBLE else decision.prices
    rewards, policy = model.reward_steps - charges, state_policy(model, decision)
    best, second, lead = _two_best(model, best_response(model, rewards)[0], rewards)
    low, high = agent.reward_range or (0.0, 1.0)
    drawn = _drawn_actions(agent, context, generator, charges) if isinstance(agent, ModelAgent) else None
    return Advice(
        context=context,
        steps=at,
        states=where,
        policy=policy[cells],
        best=best[cells],
        runner_up=second[cells],
        visits=flow(model, policy)[0].sum(axis=2)[cells],
        lead=(high - low) * lead[cells],
        sure=None if drawn is None else (drawn == best).mean(axis=0)[cells],
        prices=None if worth is None else (high - low) * worth,
        misfit=sentence(agent.misfit()),
        **told,
    )


def _charges(decision: Decision) -> FloatArray:
    """Return what is taken from rewards for the budgets, (K, S, A); 0 without any."""
    if decision.limits is None or decision.prices is None or decision.status is Status.INFEASIBLE:
        return np.zeros((1, 1, 1))
    charged = decision.limits.charges(decision.prices)
    return np.zeros((1, 1, 1)) if charged is None else charged


def _judged(ceiling: RegretCeiling, context: Context, decision: Decision, cells: tuple[Any, ...]) -> dict[str, Any]:
    """Return what the policy loses at most, and where plausible models agree."""
    instance_of("ceiling", ceiling, RegretCeiling)
    lost = ceiling.loss(context, decision.policy)
    finite = np.isfinite(lost.most)
    return {
        "at_most": np.array(lost.most) if finite else None,
        "settled": (lost.plausible.sum(axis=2) == 1)[cells] * 1.0,
    }


def choices(space: Space) -> IntArray:
    """Return the states in which there is something to choose."""
    return np.flatnonzero(space.admissible.sum(axis=1) > 1)


def _two_best(model: TabularMDP, own: FloatArray, rewards: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the actions of the optimum `own` for `rewards`, the second-best ones, and the leads, (H, S) each."""
    _, values = policy_values(model, own, rewards)
    best = own.argmax(axis=2)
    others = np.where(model.admissible & (own == 0.0), values, -np.inf)
    second = others.argmax(axis=2)
    first_values, second_values = (np.take_along_axis(values, a[..., None], axis=2)[..., 0] for a in (best, second))
    return best, second, np.maximum(first_values - second_values, 0.0)


def _drawn_actions(
    agent: ModelAgent, context: Context, generator: np.random.Generator, charges: FloatArray
) -> IntArray | None:
    """Return the best actions in models drawn from the oracles, (draws, H, S); None if the models are too large."""
    space = agent.space
    count = min(DRAWS, MOST_DRAWN // (space.horizon * space.states**2 * space.actions))
    if count < FEWEST:
        return None
    rewards = agent.reward_oracle.draws(context, count, generator)
    transitions = agent.dynamics_oracle.draws(context, count, generator)
    drawn = (space.mdp(transitions=p, rewards=f) for p, f in zip(transitions, rewards, strict=True))
    return np.array([best_response(each, each.reward_steps - charges)[0].argmax(axis=2) for each in drawn])


def _chosen(name: str, given: Iterable[int] | None, allowed: IntArray, rule: str) -> IntArray:
    """Return the entries of `given`, each among those allowed; by default all of these."""
    if given is None:
        return allowed
    entries, known = listed(name, given), set(allowed.tolist())
    whole = all(isinstance(each, (int, np.integer)) and type(each) is not bool for each in entries)
    if not entries or not whole or not known.issuperset(entries):
        raise ValueError(f"`{name}` must list at least one number, each {rule}, got {entries!r:.60}")
    return np.array(entries, dtype=np.int64)


def _named(argument: str, names: Sequence[str], numbers: IntArray) -> Any:
    """Return the names of `numbers`, or these if there are no names."""
    known = listed(argument, names)
    if known and len(known) <= numbers.max(initial=-1):
        raise ValueError(f"`{argument}` must name all of 0..{numbers.max()}, got {len(known)} names")
    return [known[number] for number in numbers] if known else numbers
