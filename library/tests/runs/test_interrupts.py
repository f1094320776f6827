"""A run that is interrupted anywhere continues as if it had not been."""

import signal

import pandas
import pytest

from library.tests.runs.worlds import make_run


@pytest.fixture(autouse=True)
def interrupts_raise():
    """Tests in the background begin with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("place", ["adversary", "agent", "oracle", "world", "ledger"])
def test_an_interrupted_run_continues_bit_for_bit(place, monkeypatch):
    whole, run = (make_run("adaptive, linear", bursts=True, delay=2) for _ in range(2))
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
