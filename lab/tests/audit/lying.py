"""What a lie is: an honest agent decides, and one thing about the decision is changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

import omg_cmdp as omg
from omg_lab.audit import Audit

EPISODES, GAMMA = 12, 30.0
SHAPE = {"states": 3, "actions": 3, "horizon": 3}
COSTS = np.tile([0.0, 0.5, 1.0], (1, 3, 1))


class World(omg.ContextualMDP):
    """Three states, three actions, three steps, four contexts; classes of four functions, and the first is true."""

    def __init__(self, seed: int) -> None:
        rng, self.space, self.contexts = np.random.default_rng(seed), omg.Space(**SHAPE), tuple("abcd")
        self.reward_functions = {c: rng.uniform(0.3, 0.7, (4, 3, 3)) for c in self.contexts}
        self.transition_functions = {c: rng.dirichlet(np.ones(3), (4, 3, 3)) for c in self.contexts}

    def mdp(self, context):
        return self.space.mdp(
            transitions=self.transition_functions[context][0], rewards=self.reward_functions[context][0]
        )


class Idle:
    """An oracle that never learns, keeps its account, and says of itself that nothing could be better."""

    loss, episodes = 0.0, 0

    def __init__(self, prediction, functions=None) -> None:
        self.prediction, self._functions = prediction, functions

    def predict(self, context):
        return self.prediction.copy()

    def uncertainty(self, context):
        return np.zeros((3, 3))

    def regret_bound(self, episodes, horizon):
        return 1.0

    def best_loss(self):
        return self.loss

    def distances(self, context, truth, used):
        """What audits once asked for, and believed."""
        return np.zeros(1)

    def functions(self, context):
        return None if self._functions is None else np.asarray(self._functions(self, context))

    def update(self, context, states, actions, outcomes):
        self.loss, self.episodes = self.loss + self.cost(self.prediction[states, actions], outcomes), self.episodes + 1


class IdleRewards(Idle, omg.RewardOracle):
    """It always predicts 1."""

    def __init__(self, functions=None) -> None:
        super().__init__(np.ones((3, 3)), functions)

    def cost(self, means, rewards):
        return float(((means - rewards) ** 2).sum())


class IdleDynamics(Idle, omg.DynamicsOracle):
    """It always predicts that anything may follow."""

    def __init__(self, functions=None) -> None:
        super().__init__(np.full((3, 3, 3), 1.0 / 3.0), functions)

    def cost(self, rows, next_states):
        return -float(np.log(rows[np.arange(len(rows)), next_states] + 1e-150).sum())


def finite(rewards, dynamics):
    """Return honest oracles of finite classes."""
    return omg.oracles.FiniteRewards(rewards, horizon=3), omg.oracles.FiniteDynamics(dynamics, horizon=3)


class Liar(omg.Agent):
    """An agent of which `lie(self, context, decision)` changes what is said; `oracles` are made of two classes."""

    def __init__(
        self, lie, world: World, episodes: int, seed: int, gamma=GAMMA, held=slice(None), oracles=finite, budgets=None
    ) -> None:
        world.costs, world.budgets = (COSTS, budgets) if budgets else (None, None)
        self.space, self.world, self.seen, self.seed, self._lie = world.space, world, 0, seed, lie
        functions = world.reward_functions, world.transition_functions
        rewards, dynamics = ({c: tables[held] for c, tables in each.items()} for each in functions)
        self.reward_oracle, self.dynamics_oracle = oracles(rewards, dynamics)
        limits = {"costs": world.costs, "budgets": budgets}
        self.honest = omg.OMG(self.space, self.reward_oracle, self.dynamics_oracle, gamma, episodes=episodes, **limits)
        self.noise = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[0])
        self.kept = {}

    def decide(self, context):
        return self._lie(self, context, self.honest.decide(context))

    def policy(self, context):
        return self.decide(context).policy

    def update(self, trajectory):
        self.seen += 1
        self.honest.update(trajectory)
        for array, after in self.kept.pop("after", ()):
            array[...] = after


@dataclasses.dataclass(frozen=True)
class Lie:
    """What is said, and which rows it turns red, or leaves unproven, in any world."""

    name: str
    lie: Callable
    """What is untrue."""
    red: frozenset[str] = frozenset()
    unproven: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    """Rows that are red in some worlds: bounds that leave room."""
    settings: dict = dataclasses.field(default_factory=dict)
    episodes: int = EPISODES
    delay: int = 0

    @property
    def what(self) -> str:
        return " ".join(self.lie.__doc__.split())


def audited(which: Lie | None, seed: int) -> Audit:
    """Return the audit of a run in a random world; None: of an honest agent."""
    lie = which or Lie("honest", lambda agent, context, decision: decision)
    world, audit = World(seed), Audit()
    agent = Liar(lie.lie, world, lie.episodes, seed, **lie.settings)
    adversary = omg.adversaries.IID(world.contexts)
    omg.simulate(world, adversary, agent, lie.episodes, seed=seed, delay=lie.delay, observe=audit)
    return audit


def verdicts(audit: Audit) -> tuple[set[str], set[str]]:
    """Return the names of the rows that are red, and of those that are not proven."""
    rows = audit.rows()
    return tuple({row.name for row in rows if row.verdict == verdict} for verdict in ("violated", "not proven"))


def complaint(which: Lie | None, seed: int) -> str:
    """Return what is wrong with the audit of a lie; nothing: it is as it should be."""
    red, unproven = verdicts(audited(which, seed))
    if which is None:
        return f"honest, seed {seed}: {red} red, {unproven} not proven" if red or unproven else ""
    missing, extra = which.red - red, red - which.red - which.may
    unsaid = which.unproven - unproven
    if missing or extra or unsaid:
        return f"{which.name}, seed {seed}: {missing} not red, {extra} red, {unsaid} said to be proven"
    return ""
