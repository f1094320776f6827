"""A misfit is said within 1 000 episodes where there is one, seldom where there is none, and by all who show runs."""

import pytest

import omg_cmdp as omg
from lab.benchmarks.misfit import CASES, first_word
from omg_cmdp.runs.advice import Advice

RAW = next(case for case in CASES if case.name == "treatment trial, features without a constant")


def raw_run():
    world = RAW.world(0)
    return omg.Run(world, omg.adversaries.IID(world.contexts), omg.OMG(world.space, *RAW.oracles(world)))


def test_advice_and_ledger_say_it_and_a_resumed_run_does_too(tmp_path):
    run = raw_run()
    run.advance(100)
    run.save(tmp_path / "run")
    continued = raw_run()
    continued.restore(tmp_path / "run")
    said = str(run.agent.misfit())
    assert "intercept=True" in said
    for each in (run, continued):
        advice = omg.advise(each.agent, RAW.world(0).contexts[0])
        assert Advice.of_record(advice.record()).misfit == said
        assert said in str(each.ledger)
        assert said in repr(advice)


@pytest.mark.slow
def test_misfit_is_found_in_nine_of_ten_and_made_up_in_one_of_twenty():
    for case in (RAW, CASES[0]):
        words = [first_word(case, seed)[0] for seed in range(20 if case.fits else 10)]
        spoke = sum(word is not None for word in words)
        assert spoke <= 1 if case.fits else spoke >= 9
