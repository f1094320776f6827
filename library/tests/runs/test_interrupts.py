"""A run that is interrupted anywhere continues as if it had not been."""

import signal

import pandas
import pytest

import omg_cmdp as omg
from library.tests.runs.worlds import make_run


@pytest.fixture(autouse=True)
def interrupts_raise():
    """Tests in the background begin with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("place", ["adversary", "agent", "oracle", "world", "ledger"])
def test_an_interrupted_run_continues_bit_for_bit(place, monkeypatch):
    whole, run = (make_run("adaptive, linear", walk=True, delay=2) for _ in range(2))
    whole.advance(12)
    owner, name = {
        "adversary": (run.adversary, "context"),
        "agent": (run.agent, "decide"),
        "oracle": (run.agent.reward_oracle.forecasters, "learn"),
        "world": (run.environment, "sample"),
        "ledger": (run.ledger, "add"),
    }[place]
    before = getattr(owner, name)

    def pressed(*arguments, **named):
        signal.raise_signal(signal.SIGINT)
        monkeypatch.undo()
        return before(*arguments, **named)

    run.advance(5)
    monkeypatch.setattr(owner, name, pressed)
    with pytest.raises(KeyboardInterrupt):
        run.advance(7)
    monkeypatch.undo()
    assert run.ledger.episodes == 6
    run.advance(6)
    ours, theirs = ({n: a.tobytes() for n, a in each.state().items() if n != "ledger/rows"} for each in (run, whole))
    assert ours == theirs
    tables = [each.ledger.table().filter(regex="^(?!seconds)") for each in (run, whole)]
    pandas.testing.assert_frame_equal(*tables, check_exact=True)


def press():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("progress", [None, True])
def test_simulate_returns_what_was_played_and_says_that_it_was_interrupted(progress, capsys):
    whole, run = (make_run("adaptive, linear") for _ in range(2))
    whole.advance(5)
    ledger = omg.simulate(
        run.environment,
        run.adversary,
        run.agent,
        50,
        seed=0,
        observe=lambda this: press() if this.episode == 5 else None,
        progress=progress,
    )
    assert (len(ledger), ledger.interrupted, whole.ledger.interrupted) == (5, True, False)
    assert "5 episodes, then interrupted, lost" in str(ledger)
    assert "stopped by Ctrl-C after 5 of 50 episodes; the ledger has them" in capsys.readouterr().err
    assert ledger.regret.tobytes() == whole.ledger.regret.tobytes()
    ours, theirs = ({n: a.tobytes() for n, a in each.agent.state().items()} for each in (run, whole))
    assert ours == theirs


def test_a_second_interrupt_within_an_episode_ends_the_simulation():
    run = make_run("adaptive, linear")

    def twice(_):
        press()
        press()
        pytest.fail("it would hang for ever")

    with pytest.raises(KeyboardInterrupt):
        omg.simulate(run.environment, run.adversary, run.agent, 50, observe=twice)
