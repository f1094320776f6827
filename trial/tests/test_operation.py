"""Operation: newer software, other machines, copies, and what is told to whom."""

import pytest

from omg_trial import desk as desks
from omg_trial import replay as replays
from omg_trial.desk import Desk
from omg_trial.log.database import Database
from omg_trial.replay import replay
from trial.tests.trials import Clock, Trialist, desk, person, trial


@pytest.fixture
def played():
    """A trial with a model and a plan by it."""
    at = desk(store=Database(":memory:"), clock=Clock())
    at.clock.forward(seconds=1)
    Trialist(at, seed=0).play(3)
    at.call("open", {"person": "last", "context": person(1)})
    return at


def again(at):
    at.clock.forward(seconds=1)
    return Desk(at.trial, at.store, clock=at.clock)


def shifted(monkeypatch, amount):
    """Make every plan differ in one number."""
    plan = replays.make_plan

    def other(*given):
        made = plan(*given)
        policy = made.policy.copy()
        policy[-1, -1, -1] += amount
        return made._replace(policy=policy)

    monkeypatch.setattr(replays, "make_plan", other)


@pytest.mark.parametrize(("elsewhere", "off", "fine"), [(0, 0.0, 1), (0, 1e-15, 0), (1, 1e-13, 1), (1, 1e-6, 0)])
def test_a_start_plans_again_to_the_bit_or_to_what_another_processor_may_differ_by(
    played, monkeypatch, elsewhere, off, fine
):
    if elsewhere:
        monkeypatch.setattr(replays, "machine", lambda: {"processor": "another"})
        monkeypatch.setattr(desks, "machine", lambda: {"processor": "another"})
    shifted(monkeypatch, off)
    if not fine:
        number = played.state.number
        with pytest.raises(ValueError, match="plans in another way: a probability of episode .*`omg-trial upgrade`"):
            again(played)
        assert len(list(played.store.read())) == number
        return
    at = again(played)
    again(at)  # plans of the other machine are not held against the bits of this one
    found = replay(at.trial, at.store.read())
    assert (found.differences, found.bits) == ([], not elsewhere)
    assert found.largest == (pytest.approx(off, rel=0.1) if elsewhere else 0.0)


def test_newer_software_must_learn_the_same_model(played, monkeypatch):
    monkeypatch.setattr(desks, "provenance", lambda: {"version": "9", "commit": "new", "versions": {}})
    again(played)
    monkeypatch.setattr(replays, "model_digest", lambda _: "another")
    again(played)  # the same software is not asked again
    monkeypatch.setattr(desks, "provenance", lambda: {"version": "10", "commit": "newer", "versions": {}})
    with pytest.raises(ValueError, match=r"another model of version 3; go on with .* \(version 9, commit new\)"):
        again(played)


def test_a_person_who_has_withdrawn_is_no_reason_to_refuse(played):
    learned = played.state.version.dataset[0].person
    played.call("withdraw", {"person": learned})
    again(played)
