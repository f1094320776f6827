"""Every agent of the package is honest: nothing about it is red, and nothing that could be shown is not proven."""

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
    assert set(claims.OF_BARRIERS + lemmas.OF_BARRIERS) & rows.keys() == (
        set(claims.OF_BARRIERS + lemmas.OF_BARRIERS) if kind in WITH_BARRIER else set()
    )
