"""Late feedback: the theorem holds with the regret of what was played, and an audit knows what is proven of it."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.audit.test_honest import World
from library.tests.agents.catalogue import LABELS, REWARDS, TRANSITIONS, build
from omg_cmdp import delays, oracles
from omg_cmdp.theory.lateness import Lateness
from omg_lab.audit import Audit

WORLD = World(build("adaptive")[1].space)
HORIZON = WORLD.space.horizon


def slow(delay):
    late = {"horizon": HORIZON, "rate": "proven", "delay": delay}
    return oracles.FiniteRewards(REWARDS, **late), oracles.FiniteDynamics(TRANSITIONS, **late, smoothing=0.01)


def copies(delay):
    rewards, dynamics = at_once(delay)
    return oracles.CopiesRewards(rewards, delay=delay), oracles.CopiesDynamics(dynamics, delay=delay)


def at_once(delay):
    return oracles.FiniteRewards(REWARDS, horizon=HORIZON), oracles.FiniteDynamics(TRANSITIONS, horizon=HORIZON)


def audited(pair, delay, episodes=30):
    audit, agent = Audit(), omg.OMG(WORLD.space, *pair, "uncertainty")
    omg.simulate(WORLD, omg.adversaries.IID(LABELS), agent, episodes, delay=delay, observe=audit)
    return {row.name: row for row in audit.rows()}


@pytest.mark.parametrize(
    ("make", "promised", "delay"),
    [
        (slow, 5, 5),
        (slow, 10, delays.UpTo(5)),
        (slow, 10, delays.Reversed(6)),
        (copies, 5, 5),
    ],
)
def test_everything_holds_where_oracles_are_made_for_the_delay(make, promised, delay):
    rows = audited(make(promised), delay)
    assert {name: row.verdict for name, row in rows.items() if not row.holds} == {}
    assert {"delayed regret, rewards", "delayed regret, dynamics", "theorem, corrected", "corollary"} <= rows.keys()
    assert not {"oracle regret, rewards", "oracle regret, dynamics"} & rows.keys()


@pytest.mark.parametrize(("make", "promised", "delay"), [(at_once, 0, 5), (slow, 4, 5), (copies, 5, delays.UpTo(5))])
def test_what_is_not_proven_of_late_outcomes_is_not_claimed(make, promised, delay):
    """The theorem itself holds, with the regret that was measured; its corollary needs a bound on it."""
    rows = audited(make(promised), delay)
    unproven = {name for name, row in rows.items() if not row.holds}
    assert unproven == {"delayed regret, rewards", "delayed regret, dynamics"}
    assert {rows[name].verdict for name in unproven} == {"not proven"}
    assert "corollary" not in rows
    assert rows["theorem, corrected"].holds


def test_a_false_bound_is_red():
    pair = slow(5)
    for oracle in pair:
        oracle.delayed_regret_bound = lambda *sizes, **more: -1000.0
    rows = audited(pair, 5)
    assert {name for name, row in rows.items() if row.verdict == "violated"} >= {
        "delayed regret, rewards",
        "delayed regret, dynamics",
    }


def test_the_loss_is_that_of_what_was_played():
    """Not what the oracles are charged when outcomes arrive, which is less: they have learned meanwhile."""
    rounds, pair = [], slow(5)
    agent, audit = omg.OMG(WORLD.space, *pair, "uncertainty"), Audit()

    def observe(this):
        rounds.append(this)
        audit(this)

    omg.simulate(WORLD, omg.adversaries.IID(LABELS), agent, 30, delay=5, observe=observe)
    arrived = [this for this in rounds if this.episode <= 25]
    assert [each for this in rounds for each in this.arrived] == list(range(1, 26))
    squares = 0.0
    for this in arrived:
        path = this.played
        means = np.broadcast_to(this.decision.model.rewards, (HORIZON, *this.decision.model.rewards.shape[-2:]))
        squares += ((means[np.arange(HORIZON), path.states[:-1], path.actions] - path.rewards) ** 2).sum()
    row = {row.name: row for row in audit.rows()}["delayed regret, rewards"]
    assert row.left == pytest.approx(squares - pair[0].best_loss())
    assert math.isclose(row.right, pair[0].delayed_regret_bound(30, HORIZON, 5))


@pytest.mark.parametrize(
    ("arrivals", "delay"),
    [
        ([(1,), (2,), (3,), (4,)], (0, True)),
        ([(), (1,), (2,), (3,)], (1, True)),
        ([(), (), (1,), (2,)], (2, True)),
        ([(), (), (2,), (1,)], (2, True)),  # in another order, but always two when something is known
        ([(), (2, 1), (), (4, 3)], (1, False)),
        ([(), (), (), (4, 3, 2, 1)], (3, True)),  # all were decided before anything was known
        ([(1,), (), (2,), ()], (1, False)),
    ],
)
def test_how_many_updates_lie_in_between(arrivals, delay):
    late = Lateness()
    for episode, arrived in enumerate(arrivals, start=1):
        late.add(episode, (1.0, 2.0), arrived)
    assert late.delay() == delay
    known = sum(map(len, arrivals))
    assert late.losses == [known, 2.0 * known]
