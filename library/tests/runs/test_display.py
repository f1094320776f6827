"""Objects show themselves: in a few lines of text, and in a picture."""

import sys

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.adversaries.test_oblivious import EVERY as ADVERSARIES
from library.tests.agents import catalogue as of_agents
from library.tests.oracles import catalogue as of_oracles
from omg_cmdp.drawing import figure_class

SIZE = {"states": 1, "actions": 2, "horizon": 2}
STEPS = {"states": [0, 0, 0], "actions": [1, 0], "rewards": [0.5, 1.0]}


class Coins(omg.ContextualMDP):
    """One of two coins is better, which one says the context."""

    space = omg.Space(**SIZE)
    contexts = (0.2, 0.9)

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[context, 1.0 - context]])


@pytest.fixture(scope="module")
def played():
    agent = omg.OMG(Coins.space, omg.oracles.CountRewards(**SIZE), omg.oracles.CountDynamics(**SIZE))
    return agent, omg.simulate(Coins(), omg.adversaries.IID(Coins.contexts), agent, episodes=30, seed=0)


def objects(agent, ledger):
    """Yield objects of each kind that shows itself."""
    uniform = omg.agents.Uniform(agent.space)
    yield from (agent, uniform, ledger, omg.Ledger(), omg.advise(agent, 0.2), omg.advise(uniform, {"age": 3}))
    yield from (Coins(), Coins.space, omg.plan(Coins().mdp(0.2), gamma=10.0), omg.Log(Coins.space))
    yield omg.Log(Coins.space, [omg.Episode(context=1, **STEPS, propensities=[0.5, 0.5])])
    yield from (agent for _, agent in of_agents.each_agent().values())
    yield from (oracle for _, oracle in of_oracles.each_oracle(2).values())
    yield from (make(["a", "b"]) for make in ADVERSARIES.values())
    yield omg.adversaries.WorstRegret(["a", "b"])


def test_everything_says_what_it_is_in_one_to_five_lines(played):
    for each in objects(*played):
        lines = repr(each).splitlines()
        assert 1 <= len(lines) <= 5, each
        assert type(each).__name__ in lines[0]
        assert " object at 0x" not in repr(each)
        assert max(map(len, lines)) < 330, each


def test_an_agent_says_its_settings_its_episodes_and_its_parts(played):
    assert repr(played[0]) == (
        "OMG(gamma='adaptive', delta=0.05, seed=0, reward_range=(0.0, 1.0), cautious=False) after 30 episodes\n"
        "  space:    Space(states=1, actions=2, horizon=2)\n"
        f"  rewards:  {played[0].reward_oracle!r}\n"
        "  dynamics: CountDynamics(states=1, actions=2, horizon=2, rate='guarded') after 30 episodes, loss 0"
    )


def test_pictures_have_names_and_need_no_pyplot(played, tmp_path):
    """What is drawn is what is in the tables; the figure is saved, and a notebook shows it."""
    pytest.importorskip("matplotlib")
    (agent, ledger), imported = played, "matplotlib.pyplot" in sys.modules
    left, right = ledger.plot().axes
    assert left.get_lines()[0].get_ydata()[-1] == pytest.approx(ledger.regret.sum())
    assert (left.get_xlabel(), left.get_ylabel()) == ("episode", "cumulative regret, in rewards")
    assert right.get_lines()[1].get_ydata().mean() == pytest.approx(ledger.column("value").mean())
    advice = omg.advise(agent, 0.2)
    drawn = advice.plot(["home"], ["wait", "act"])
    heights = [bar.get_height() for bar in drawn.axes[0].patches]
    np.testing.assert_allclose(heights, advice.policy[:, 0].T.reshape(-1))
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["wait", "act"]
    assert drawn.axes[0].get_ylabel() == "home"
    assert drawn._repr_png_().startswith(b"\x89PNG")
    drawn.savefig(tmp_path / "advice.pdf")
    assert ("matplotlib.pyplot" in sys.modules) == imported
    with pytest.raises(ValueError, match="`action_names` must name all"):
        advice.plot((), ["wait"])
    with pytest.raises(ValueError, match="the ledger has no episodes yet"):
        omg.Ledger().plot()
    assert omg.advise(omg.agents.Uniform(agent.space), 0.2).plot().axes


def test_without_matplotlib_an_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"`plot` needs matplotlib, which is not installed: .*library\[plot\]"):
        figure_class.__wrapped__()
