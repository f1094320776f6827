"""To add a rival: its file, its line in `omg_lab.rivals`, its line in the catalogue of the tests, its page.

A rival of this test takes the same way, and is found wherever rivals are.
"""

import inspect

import numpy as np
import pytest
from typer.testing import CliRunner

import omg_cmdp as omg
from lab.tests.rivals.catalogue import SPACES, line
from library.tests.agents.catalogue import ORACLES
from omg_cmdp.agents import Agent
from omg_cmdp.checks import AGENT_CHECKS
from omg_cmdp.checks.agents import AgentSubject
from omg_cmdp.validation import probability
from omg_lab import rivals
from omg_lab.cli import app
from omg_lab.rivals.declared import ModelRival, Option
from omg_lab.studies import agents as studied
from omg_lab.studies import catalogue
from omg_lab.studies.config import read_plan
from omg_lab.worlds import Decoy


class Lazy(ModelRival):
    """Play an optimal policy of the model, or with some probability the uniform one; for this test."""

    laziness: Option[float, float] = Option(probability, 0.5)

    def decide(self, context):
        model = self.model(context)
        best, _ = omg.optimal_policy(model)
        spread = self.space.admissible / self.space.admissible.sum(axis=1, keepdims=True)
        return omg.agents.Decision(policy=(1.0 - self.laziness) * best + self.laziness * spread, model=model)


LINE = line(Lazy, laziness=0.3)


@pytest.fixture
def kind(monkeypatch):
    """Add the rival to `omg_lab.rivals`, and return what the catalogue of studies makes of it."""
    monkeypatch.setattr(rivals, "Lazy", Lazy, raising=False)
    monkeypatch.setattr(rivals, "__all__", [*rivals.__all__, "Lazy"])
    found = catalogue._found(Agent, studied.agent_options, omg.agents, rivals)
    (name,) = found.keys() - catalogue.AGENTS.keys()
    monkeypatch.setitem(catalogue.AGENTS, name, found[name])
    return found[name]


def test_it_is_listed_with_its_options(kind):
    assert kind.description.startswith("Play an optimal policy of the model")
    assert kind.options.keys() == {"laziness", "return_range", "oracles"}
    runner = CliRunner()
    assert kind.name in runner.invoke(app, ["list"], terminal_width=200).output
    assert "laziness" in runner.invoke(app, ["list", kind.name], terminal_width=200).output


def test_a_study_builds_and_plays_it(kind):
    text = f"""
episodes = 5
[worlds.decoy]
[agents.{kind.name}]
laziness = 0.2
oracles = "offline"
"""
    (task,) = read_plan(text).tasks()
    run = task.start()
    assert type(run.agent) is Lazy
    assert run.agent.laziness == 0.2
    assert type(run.agent.reward_oracle) is omg.oracles.OfflineFiniteRewards


def test_it_is_built_for_a_world():
    world = Decoy()
    agent = Lazy.for_world(world, laziness=0.1)
    assert np.isfinite(omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=5).regret).all()


@pytest.mark.parametrize("check", AGENT_CHECKS, ids=lambda check: check.__name__)
def test_its_line_of_the_catalogue_keeps_the_contract(check):
    contexts, make = ORACLES["finite"]
    check(AgentSubject(LINE(SPACES["restricted"], *make()), contexts))


def test_every_rival_says_where_it_was_read():
    made = [kind for kind in catalogue.AGENTS.values() if kind.make.__module__.startswith("omg_lab.rivals.")]
    modules = {inspect.getmodule(kind.make) for kind in made}
    assert len(modules) > 20
    assert [module.__name__ for module in modules if "\nSource: " not in module.__doc__] == []
