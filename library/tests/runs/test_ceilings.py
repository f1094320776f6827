import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.worlds import SafeArm


def run(world, agent, **more):
    return omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=80, **more)


def test_the_ledger_has_the_ceiling_of_each_episode():
    world = SafeArm(contexts=3, functions=6, horizon=2, seed=1)
    agents = [omg.OMG.for_world(world) for _ in range(3)]
    observer = omg.RegretCeiling(agents[0], delta=0.1)
    observed, asked, plain = (
        run(world, agents[0], observe=observer),
        run(world, agents[1], ceiling=omg.RegretCeiling(agents[1], delta=0.1)),
        run(world, agents[2]),
    )
    np.testing.assert_array_equal(asked.column("ceiling"), observer.episodes)
    np.testing.assert_array_equal(asked.column("settled"), observer.settled)
    np.testing.assert_array_equal(asked.regret, plain.regret)
    assert np.isnan(plain.column("ceiling")).all()
    assert (np.cumsum(asked.regret) <= np.cumsum(asked.column("ceiling")) + 1e-9).all()
    assert f"with 90% confidence, that at most {observer.total:.3g} was lost" in str(asked)
    assert "at most" not in str(plain)
    assert "at most" not in str(observed)


def test_an_agent_without_oracles_is_judged_by_the_world_s_class():
    world = SafeArm(contexts=3, functions=6, horizon=2, seed=1)
    ledger = run(world, omg.agents.Uniform(world.space), ceiling=True)
    assert ledger.regret.sum() <= ledger.column("ceiling").sum() < 80 * 2
    assert "at most" in str(ledger)


def test_a_run_with_a_ceiling_is_continued_bit_for_bit(tmp_path):
    world = SafeArm(contexts=3, functions=6, horizon=2, seed=1)

    def begin():
        return omg.Run(world, omg.adversaries.IID(world.contexts), omg.OMG.for_world(world), ceiling=True)

    whole, half, rest = begin(), begin(), begin()
    whole.advance(40)
    half.advance(20)
    half.save(tmp_path / "run")
    rest.restore(tmp_path / "run")
    rest.advance(20)
    np.testing.assert_array_equal(rest.ledger.column("ceiling"), whole.ledger.column("ceiling"))
    without = omg.Run(world, omg.adversaries.IID(world.contexts), omg.OMG.for_world(world))
    with pytest.raises(ValueError, match="same settings"):
        without.restore(tmp_path / "run")


def test_advice_says_what_the_policy_loses_at_most():
    world = SafeArm(contexts=3, functions=6, horizon=2, seed=1)
    agent = omg.OMG.for_world(world)
    ceiling = omg.RegretCeiling(agent)
    unsure = omg.advise(agent, 0, ceiling=ceiling)
    run(world, agent, observe=ceiling)
    told = omg.advise(agent, 0, ceiling=ceiling)
    assert world.truth(0).regret(agent.policy(0)) <= told.at_most <= unsure.at_most
    assert told.settled.all()
    assert not unsure.settled.any()
    again = type(told).of_record(told.record())
    np.testing.assert_array_equal(again.settled, told.settled)
    assert again.at_most == pytest.approx(float(told.at_most), abs=1e-6)
    assert omg.advise(agent, 0).at_most is None
