"""The messages that docs/troubleshooting.md quotes are those of the code: provoked here, or found in its source."""

import re
from pathlib import Path

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.persistence import AGENT_FILE, write_arrays
from omg_cmdp.recipes.files import pack_recipe
from omg_cmdp.recipes.recipe import Recipe

ROOT = Path(__file__).parent.parent
QUOTED = re.findall(r'\*\*"([^"]+)"', (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"))
SIZES = {"states": 2, "actions": 2, "horizon": 2}
IN_SOURCE = ("compiled code", "this needs", "the database", "`path` must be as", "... cannot be checked")
"""Beginnings of the messages that are only looked for in the source."""


class Forgetful(omg.Agent):
    space = omg.Space(**SIZES)

    def policy(self, context):
        return np.full((2, 2, 2), 0.5)

    def update(self, trajectory):
        pass


class Coins(omg.ContextualMDP):
    space = omg.Space(**SIZES)

    def mdp(self, context):
        return self.space.mdp(transitions=np.full((2, 2, 2), 0.5), rewards=np.full((2, 2), 0.5))


def agent(admissible=None, **options):
    space = omg.Space(**SIZES, admissible=admissible)
    return omg.OMG(space, omg.oracles.CountRewards(**SIZES), omg.oracles.CountDynamics(**SIZES), **options)


def episode(**changed):
    return omg.Trajectory(**{"context": "a", "states": [0, 1, 1], "actions": [0, 1], "rewards": [0.0, 1.0], **changed})


def restore_another(folder):
    agent().save(folder / "agent.npz")
    agent(gamma=10.0).restore(folder / "agent.npz")


def restore_nothing(folder):
    (folder / "agent.npz").write_bytes(b"something else")
    agent().restore(folder / "agent.npz")


def restore_another_run(folder):
    world = Coins()
    omg.Run(world, omg.adversaries.IID(["a", "b"]), agent()).save(folder / "run")
    omg.Run(world, omg.adversaries.IID(["b", "a"]), agent()).restore(folder / "run")


def load_a_function(folder):
    agent(gamma=lambda t: 10.0 * t).save(folder / "agent.npz")
    omg.load(folder / "agent.npz")


def load_a_rival_of_another_version(folder):
    arrays = {**agent().state(), **pack_recipe(Recipe("omg_lab", "Nobody", {}))}
    write_arrays(folder / "agent.npz", arrays, **AGENT_FILE)
    omg.load(folder / "agent.npz")


def learn_a_cost_out_of_range(_):
    agent(costs=omg.oracles.CountRewards(**SIZES), budgets=[1.0]).update(episode(costs=[[0.0, 1.7]]))


def judge_what_was_seldom_done(_):
    played = {"context": "a", "states": [0, 0, 0], "rewards": [0.0, 1.0], "propensities": [0.5, 0.5]}
    episodes = [omg.Episode(**played, actions=[t % 2, t // 2 % 2]) for t in range(20)]
    omg.logs.improvement(omg.Log(omg.Space(**SIZES), episodes), lambda context: np.tile([0.0, 1.0], (2, 2, 1)))


PROVOKED = {
    "a reward": lambda _: agent().update(episode(rewards=[0.0, 1.7])),
    "a return": lambda _: agent(return_range=(0.0, 0.5)).update(episode()),
    "a cost": learn_a_cost_out_of_range,
    "shapes": lambda _: episode(states=[0, 1]),
    "a state": lambda _: agent().update(episode(states=[0, 1, 2])),
    "a first state": lambda _: agent().update(episode(states=[1, 1, 1])),
    "an action": lambda _: agent(np.array([[True, False], [True, True]])).update(episode(actions=[1, 1])),
    "a label": lambda _: omg.oracles.CountRewards(**SIZES, contexts=["a", "b"]).predict("c"),
    "a long vector": lambda _: omg.oracles.LinearRewards(**SIZES, dimension=2).predict([3.0, 0.0]),
    "other settings": restore_another,
    "another file": restore_nothing,
    "an unfit log": judge_what_was_seldom_done,
    "a folder": lambda folder: agent().save(folder),
    "another run": restore_another_run,
    "a function": load_a_function,
    "another class": load_a_rival_of_another_version,
    "no state": lambda folder: Forgetful().save(folder / "agent.npz"),
}


def pattern(quoted):
    """Return a regular expression: dots and italics of the page stand for anything."""
    return ".*".join(re.escape(part) for part in re.split(r"\.\.\.|\*[^*]+\*", quoted))


@pytest.mark.parametrize("name", PROVOKED)
def test_a_message_is_quoted_as_it_is(name, tmp_path):
    with pytest.raises((ValueError, NotImplementedError, OSError)) as raised:
        PROVOKED[name](tmp_path)
    assert [quoted for quoted in QUOTED if re.match(pattern(quoted), str(raised.value))]


@pytest.mark.parametrize("quoted", [quoted for quoted in QUOTED if quoted.startswith(IN_SOURCE)])
def test_other_messages_are_in_the_source(quoted):
    sources = [path.read_text() for home in ("library", "lab", "trial") for path in (ROOT / home).glob("omg_*/**/*.py")]
    parts = [part.strip() for part in quoted.split("...")]
    assert [source for source in sources if all(part in source for part in parts)]


def test_every_quoted_message_is_checked():
    assert sum(not quoted.startswith(IN_SOURCE) for quoted in QUOTED) == len(PROVOKED)
