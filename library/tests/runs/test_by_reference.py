"""Nobody can change through what he is given what others learn, play or are judged by."""

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.runs.worlds import HORIZON, SIZE, Own, counts
from omg_cmdp import oracles
from omg_cmdp.adversaries import Adversary

RECORDS = ({"age": 40, "scores": [1, 2]}, {"age": 60, "scores": [3, 4]})
LISTS = ([1, ["a"]], [2, ["b"]])


def spoil(value):
    """Change whatever can be changed in place."""
    if isinstance(value, dict):
        for entry in value.values():
            spoil(entry)
        value["age"], value["new"] = -1, 0
    elif isinstance(value, list):
        for entry in value:
            spoil(entry)
        value.append("changed")
    elif isinstance(value, np.ndarray):
        try:
            value[...] = 0.25
        except ValueError:
            return
    elif isinstance(value, (tuple, omg.Episode)):
        for entry in value if isinstance(value, tuple) else (value.context, value.states, value.actions, value.rewards):
            spoil(entry)


class World(omg.ContextualMDP):
    """Spoils the contexts it gets, and the policies."""

    space = omg.Space(**SIZE)

    def __init__(self, contexts, *, spoils):
        self.contexts, self.spoils = contexts, spoils
        self.tables = {str(c): np.random.default_rng(i).random((3, 2)) for i, c in enumerate(contexts)}

    def mdp(self, context):
        rewards = self.tables[str(context)]
        if self.spoils:
            spoil(context)
        return self.space.mdp(transitions=np.full((3, 2, 3), 1 / 3), rewards=rewards)

    def sample(self, context, policy, generator):
        episode = super().sample(context, policy, generator)
        if self.spoils:
            spoil(context)
            spoil(policy)
            spoil(episode.context)
        return episode


class Looking(Adversary):
    """Spoils what it sees of the agent and of the truth."""

    def __init__(self, contexts, *, spoils):
        self.contexts, self.spoils = contexts, spoils

    def context(self, episode, view, generator):
        context = self.contexts[episode % 2]
        seen = view.policy(context), view.environment.truth(context).best, view.model(context).rewards
        if self.spoils:
            spoil(seen)
        return context


class Features:
    """Spoils the contexts that it describes."""

    def __init__(self, contexts, *, spoils):
        self.places, self.spoils = {str(c): i for i, c in enumerate(contexts)}, spoils

    def __call__(self, context):
        vector = np.eye(2)[self.places[str(context)]]
        if self.spoils:
            spoil(context)
        return vector


class Outsider(omg.RewardOracle):
    """Spoils what it is told."""

    def __init__(self, inner, *, spoils):
        self.inner, self.spoils = inner, spoils

    def predict(self, context):
        return self._asked(self.inner.predict, context)

    def update(self, context, states, actions, rewards):
        self._asked(self.inner.update, context, states, actions, rewards)

    def uncertainty(self, context):
        return self._asked(self.inner.uncertainty, context)

    def regret_bound(self, episodes, horizon):
        return np.inf

    def _asked(self, method, *arguments):
        answer = method(*arguments)
        if self.spoils:
            spoil(arguments)
        return answer


@pytest.mark.parametrize("contexts", [RECORDS, LISTS], ids=["records", "lists"])
@pytest.mark.parametrize("spoiler", ["world", "adversary", "features", "oracle", "observer", "caller"])
def test_who_spoils_what_he_is_given_changes_nothing(spoiler, contexts):
    ledgers = []
    for culprit in (None, spoiler):
        mine = [
            dict(each) | {"scores": [*each["scores"]]} if isinstance(each, dict) else [each[0], [*each[1]]]
            for each in contexts
        ]
        world = World(mine, spoils=culprit == "world")
        features = Features(contexts, spoils=culprit == "features")
        linear = oracles.LinearRewards(**SIZE, features=features, dimension=2)
        rewards = Outsider(linear, spoils=culprit == "oracle")
        dynamics = oracles.SoftmaxDynamics(**SIZE, features=features, dimension=2)
        agent = omg.OMG(world.space, linear if culprit == "features" else rewards, dynamics, 20.0)
        adversary = Looking(contexts, spoils=culprit == "adversary")
        run = omg.Run(
            world,
            omg.adversaries.Sequence(mine) if culprit == "caller" else adversary,
            agent,
            delay=1,
            observe=(lambda this: spoil((this.context, this.played))) if culprit == "observer" else None,
        )
        if culprit == "caller":
            spoil(mine)
        run.advance(30)
        ledgers.append(run.ledger)
    np.testing.assert_array_equal(ledgers[0].regret, ledgers[1].regret)
    assert ledgers[0].contexts == ledgers[1].contexts
    assert (ledgers[1].regret >= -1e-12).all()
    assert contexts in (({"age": 40, "scores": [1, 2]}, {"age": 60, "scores": [3, 4]}), ([1, ["a"]], [2, ["b"]]))


def test_the_optimum_of_a_world_cannot_be_overwritten():
    world = Own()
    policy, value = world.truth("a").best
    with pytest.raises(ValueError, match="read-only"):
        policy[...] = 0.5
    assert world.truth("a").regret(np.full((HORIZON, 3, 2), 0.5)) > 0.0
    assert omg.policy_value(world.mdp("a"), policy) == pytest.approx(value)


def test_what_an_adversary_sees_is_not_what_is_played():
    world = Own()
    run = omg.Run(world, omg.adversaries.IID(["a"]), omg.OMG(world.space, *counts(world), 30.0))
    seen = run.policy("a")
    before = seen.copy()
    spoil(seen)
    np.testing.assert_array_equal(run.policy("a"), before)


def test_a_trajectory_and_a_problem_keep_what_they_were_made_of():
    record, table = {"age": 40, "scores": [1, [2]]}, np.ones((3, 2))
    episode = omg.Trajectory(context=record, states=[0, 1], actions=[0], rewards=[0.5])
    problem = omg.Problem(mdp=Own().mdp("a"), gamma=9.0, weights=table)
    before = problem.plan().policy
    spoil(record)
    spoil(episode.context)
    spoil(table)
    assert episode.context == episode.known.context == {"age": 40, "scores": [1, [2]]}
    np.testing.assert_array_equal(problem.plan().policy, before)
