"""Agents compared in one call: the numbers are those of the runs, and the machinery that of a study."""

import copy
import functools

import numpy as np
import pandas
import pytest

import omg_cmdp as omg
import omg_lab
from omg_lab.worlds import Decoy

pytest.importorskip("pyarrow")
RATES = [0.4, 0.9]
LAKE = {"arguments": "success_rate", "horizon": 5}


@pytest.fixture(scope="module")
def exact():
    world = Decoy(context_count=3, reward_class_size=4)
    agents = {"OMG": omg.OMG, "slow": {"kind": "epsilon_greedy", "epsilon": 0.5}, "best": "informed"}
    return world, omg_lab.compare(world, world.contexts, agents, episodes=20, seeds=3)


def test_the_table_has_the_exact_regret_best_first(exact):
    table = exact[1].table()
    totals = exact[1].results.log.groupby(["agent", "seed"])["regret"].sum().groupby("agent").mean()
    np.testing.assert_allclose(table["regret"], totals[table.index], atol=1e-9)
    assert table["regret"].is_monotonic_increasing
    assert table.loc["best", "regret"] < 1e-9
    assert set(table.index) == {"OMG", "slow", "best"}


def test_all_agents_meet_the_same_contexts_and_seeds_differ(exact):
    shown = exact[1].results.log.groupby(["agent", "seed"])["context"].agg(list).unstack("seed")
    for seed in shown:
        assert len({tuple(contexts) for contexts in shown[seed]}) == 1
    assert len({tuple(contexts) for contexts in shown.loc["OMG"]}) == 3


def test_it_is_the_run_of_a_study(exact):
    """A class given as an object plays what its kind plays, bit for bit."""
    world, first = exact
    again = omg_lab.compare(world, world.contexts, ["omg"], episodes=20, seeds=[1])
    log = first.results.log.query("agent == 'OMG' and seed == 1")
    np.testing.assert_array_equal(log["regret"], again.results.log["regret"])


@pytest.mark.parametrize(("pressed_in", "seeds"), [(2, 0), (4, 1)])
def test_an_interrupted_comparison_has_the_seeds_that_all_agents_finished(pressed_in, seeds, monkeypatch, capsys):
    world, ended = Decoy(context_count=2, reward_class_size=4), []

    def pressed():
        ended.append("run")
        if len(ended) == pressed_in:
            raise KeyboardInterrupt
        return "now"

    monkeypatch.setattr(omg_lab.studies.runner, "now", pressed)
    call = functools.partial(omg_lab.compare, world, world.contexts, ["omg", "uniform"], episodes=4, seeds=3)
    if not seeds:
        with pytest.raises(KeyboardInterrupt):
            call()
        return
    comparison = call(progress=True)
    assert comparison.interrupted
    assert comparison.table()["seeds"].tolist() == [seeds, seeds]
    shown = capsys.readouterr().err
    assert "16 of 24 episodes, run 4 of 6: uniform" in shown
    assert "stopped by Ctrl-C after 16 of 24 episodes; the seeds that all agents have finished are compared" in shown


@pytest.mark.slow
def test_a_plot_and_a_report(exact, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    assert isinstance(exact[1].plot(), matplotlib.figure.Figure)
    page = exact[1].report(tmp_path / "report").read_text()
    assert "World Decoy" in page
    assert "<svg" in exact[1]._repr_html_()


def test_without_tables_what_was_earned_is_compared():
    def hasty(space, seed, reward_oracle, dynamics_oracle, world):
        assert world.contexts == tuple(RATES)
        return omg.agents.EpsilonGreedy(space, reward_oracle, dynamics_oracle, reward_range=world.reward_range)

    settings = {**LAKE, "tables": False, "reward_range": (0.0, 1.0)}
    found = omg_lab.compare("FrozenLake-v1", RATES, {"a": "uniform", "b": hasty}, episodes=12, seeds=2, **settings)
    means = found.results.log.groupby("agent")["return"].mean()
    np.testing.assert_allclose(found.table()["return"].sort_index(), means)
    assert found.results.runs["regret"].isna().all()
    assert set(found.results.runs["world"]) == {"FrozenLake-v1"}
    found.plot()


def test_a_data_frame_is_a_list_of_contexts():
    class Ladder(omg.ContextualMDP):
        space = omg.Space(states=2, actions=2, horizon=2)

        def mdp(self, context):
            stay = np.tile(np.eye(2)[:, None], (1, 2, 1))
            return self.space.mdp(transitions=stay, rewards=np.full((2, 2), [context["skill"], 0.5]))

    people = pandas.DataFrame({"skill": [0.1, 0.9], "name": ["a", "b"]})
    world = Ladder()
    found = omg_lab.compare(world, people, ["omg"], episodes=5, seeds=1, adversary="sequence")
    contexts = found.results.log["context"].unique()
    assert len(contexts) == 2
    assert "contexts" not in vars(world)  # what is the caller's is left as it was


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"agents": ["omgg"]}, "`agents`: .*did you mean 'omg'"),
        ({"agents": []}, "`agents`: there must be at least one"),
        ({"agents": [omg.OMG]}, "`agents` must be a mapping"),
        ({"agents": {"a": 3}}, "`agents` must be names of kinds"),
        ({"agents": {"a": lambda x: None}}, "`agents`: .*needs the option 'x'"),
        ({"agents": {"a": lambda world: 3}}, "`agents`: .*an agent must be an Agent, got int"),
        ({"agents": {"a": {"kind": "nowhere:Timid"}}}, "`agents`: 'nowhere:Timid' cannot be imported"),
        ({"agents": {"a": {"kind": "omg", "dellta": 1}}}, "`agents`: .*did you mean 'delta'"),
        ({"episodes": 0}, "`episodes` must"),
        ({"seeds": 0}, "`seeds`.* must"),
        ({"seeds": [1, 1]}, "`seeds`.* must"),
        ({"adversary": "idd"}, "`adversary`: .*did you mean 'iid'"),
        ({"contexts": []}, "`contexts` must hold at least one"),
        ({"contexts": [7]}, "must"),
        ({"horizon": 3}, "takes no settings; leave out horizon"),
        ({"environment": 3}, "`environment` must"),
    ],
)
def test_wrong_calls_name_the_argument(bad, said):
    world = Decoy(context_count=2, reward_class_size=4)
    good = {"environment": world, "contexts": world.contexts, "agents": ["omg"], "episodes": 2}
    with pytest.raises(ValueError, match=said):
        omg_lab.compare(**{**good, **bad})


def test_an_agent_that_fails_on_the_way_is_an_error_with_its_traceback():
    class Broken(omg.agents.Greedy):
        def _learn(self, trajectory, rewards):
            raise ZeroDivisionError("on the way")

    world = Decoy(context_count=2, reward_class_size=4)
    with pytest.raises(RuntimeError, match="on the way"):
        omg_lab.compare(world, world.contexts, {"a": Broken}, episodes=2, seeds=1)


class Stubborn(omg.agents.Agent):
    """Has a policy and an update, and cannot be saved."""

    def __init__(self, space):
        self.space = space

    def policy(self, context):
        return np.full((self.space.horizon, self.space.states, self.space.actions), 1.0 / self.space.actions)

    def update(self, trajectory):
        pass


def test_an_agent_that_cannot_be_saved_is_compared_too():
    world = Decoy(context_count=3, reward_class_size=4)
    table = omg_lab.compare(world, world.contexts, {"mine": Stubborn}, episodes=5, seeds=2).table()
    assert list(table.index) == ["mine"]


def _learned(world):
    agent = omg.OMG.for_world(world)
    omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=30)
    return agent


def _restored(world, path):
    agent = omg.OMG.for_world(world)
    agent.restore(path)
    return agent


NOT_FRESH = {
    "the same agent": lambda world, tmp_path: (lambda agent: lambda: agent)(omg.OMG.for_world(world)),
    "the same, learned": lambda world, tmp_path: (lambda agent: lambda: agent)(_learned(world)),
    "a copy of one": lambda world, tmp_path: (lambda agent: lambda: copy.deepcopy(agent))(_learned(world)),
    "from a file": lambda world, tmp_path: (
        _learned(world).save(tmp_path / "agent.npz"),
        lambda: _restored(world, tmp_path / "agent.npz"),
    )[1],
    "the same oracles": lambda world, tmp_path: (
        lambda known: lambda space: omg.agents.Greedy(space, known.reward_oracle, known.dynamics_oracle)
    )(omg.OMG.for_world(world)),
    "learned oracles": lambda world, tmp_path: (
        lambda known: (
            lambda space: omg.agents.Greedy(
                space, copy.deepcopy(known.reward_oracle), copy.deepcopy(known.dynamics_oracle)
            )
        )
    )(_learned(world)),
    "the same of a class of its own": lambda world, tmp_path: (lambda agent: lambda: agent)(Stubborn(world.space)),
}


@pytest.mark.parametrize("case", NOT_FRESH)
def test_agents_that_are_not_fresh_are_refused(case, tmp_path):
    """One that has learned before would be ranked first, and one that learns on from seed to seed later."""
    world = Decoy(context_count=3, reward_class_size=4)
    agents = {"fresh": "omg", "other": NOT_FRESH[case](world, tmp_path)}
    with pytest.raises(ValueError, match=r"`agents`: 'other'.* fresh"):
        omg_lab.compare(world, world.contexts, agents, episodes=5, seeds=2)
