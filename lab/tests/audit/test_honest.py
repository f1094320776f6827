"""Every agent of the package is honest: nothing about it is red, and nothing that could be shown is not proven."""

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.catalogue import EVERY_KIND, build
from library.tests.agents.catalogue import LABELS, REWARDS, TRANSITIONS
from omg_lab.audit import Audit, claims, lemmas

WITH_BARRIER = {"theory", "anytime", "float", "callable", "uncertainty weighted", "schedule, episodes"}


class World(omg.ContextualMDP):
    """The first function of both classes is true."""

    def __init__(self, space):
        self.space = space

    def mdp(self, context):
        return self.space.mdp(transitions=TRANSITIONS[context][0], rewards=REWARDS[context][0])


@pytest.mark.parametrize("space", ["plain", "restricted, spread start"])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_an_honest_agent_has_nothing_to_hide(kind, space):
    _, agent = build(kind, space=space)
    audit = Audit()
    omg.simulate(World(agent.space), omg.adversaries.IID(LABELS), agent, 4, observe=audit)
    rows = {row.name: row for row in audit.rows()}
    assert {name: row.verdict for name, row in rows.items() if not row.holds} == {}
    of_plans = set(claims.OF_BARRIERS + lemmas.OF_BARRIERS)
    of_gains = {"occupancy", "certificate"} if agent.decide(LABELS[0]).regulariser == "root" else set()
    assert of_plans & rows.keys() == (of_plans if kind in WITH_BARRIER else of_gains)


@pytest.mark.parametrize(
    ("lie", "red"),
    [
        (lambda d: d._replace(certificate=0.5 * d.certificate), "certificate"),
        (lambda d: d._replace(weights=d.weights[:, :, ::-1]), "certificate"),
        (lambda d: d._replace(occupancy=d.occupancy[:, ::-1]), "occupancy"),
        (lambda d: d._replace(policy=np.full(d.policy.shape, 1.0 / d.policy.shape[-1])), "occupancy"),
    ],
    ids=["half a certificate", "weights of other actions", "another occupancy", "uniform play"],
)
def test_a_lie_about_a_plan_for_gains_is_found(lie, red):
    _, agent = build("adaptive")
    audit, honest = Audit(), agent.decide
    agent.decide = lambda context: lie(honest(context)) if honest(context).weights.any() else honest(context)
    omg.simulate(World(agent.space), omg.adversaries.IID(LABELS), agent, 6, observe=audit)
    rows = {row.name: row for row in audit.rows()}
    assert rows[red].verdict == "violated"
