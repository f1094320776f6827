"""The report on encoders: it sees what is there to be predicted."""

import numpy as np
import pytest

from library.tests.environments.encoders.steps import chain, noise, steps
from omg_cmdp.environments import Bins, Encoder, encoding_report


def walk(transitions, length, seed=0):
    """Return a walk along the states of a transition matrix."""
    cumulative, generator, states = np.cumsum(transitions, axis=1), np.random.default_rng(seed), [0]
    for uniform in generator.random(length):
        states.append(int(np.searchsorted(cumulative[states[-1]], uniform)))
    return states


def one_bin_each(count):
    return Bins(count, strategy="uniform")


KERNEL = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])


@pytest.mark.parametrize("contexts", [1, 3])
def test_the_information_of_a_chain_is_its_mutual_information(contexts):
    """Whether it is one context, or several that come in turn."""
    in_turn = np.arange(6000) // 10 % contexts
    row = encoding_report([one_bin_each(3)], chain(walk(KERNEL, 6000), contexts=in_turn)).table.iloc[0]
    stationary = np.linalg.matrix_power(KERNEL, 200)[0]
    joint = stationary[:, None] * KERNEL
    seen = joint > 0
    exact = (joint[seen] * np.log((joint / np.outer(stationary, stationary))[seen])).sum()
    assert row["information"] == pytest.approx(exact, abs=0.03)
    assert row["next_cell_loss"] == pytest.approx(-(joint[seen] * np.log(KERNEL[seen])).sum(), abs=0.03)


def test_contexts_count():
    """Two contexts that move in opposite ways: they tell what the cells alone cannot."""
    moves = np.repeat([0, 1], 1000)
    generator = np.random.default_rng(0)
    before = generator.integers(4, size=2000)
    after = (before + np.where(moves, 1, -1)) % 4
    episodes = np.arange(2000) // 2
    before[1::2] = after[::2]
    after = (before + np.where(moves, 1, -1)) % 4
    told, untold = (
        encoding_report(
            [one_bin_each(4)],
            steps(before[:, None].astype(float), after[:, None].astype(float), episodes=episodes, contexts=contexts),
        ).table.iloc[0]
        for contexts in (moves, 0 * moves)
    )
    assert told["information"] > untold["information"] + 0.3


def test_more_steps_support_more_cells_and_noise_supports_none():
    def chosen(count, drift):
        generator = np.random.default_rng(0)
        here = generator.random((count, 1))
        there = np.where(drift, (here + 0.02 * generator.random((count, 1))) % 1.0, generator.random((count, 1)))
        report = encoding_report([Bins(cells) for cells in (2, 4, 8, 16, 32, 64)], steps(here, there))
        assert report.choice.cells == report.table[report.table["chosen"]].iloc[0]["cells"]
        return report.choice.cells

    assert chosen(300, True) < chosen(5000, True)
    assert chosen(300, False) == 2


def test_rewards_count():
    """Nothing moves, but one half pays: cells that tell it apart are chosen."""
    here = np.random.default_rng(0).random((900, 1))
    here += here > 0.5  # a gap, where any cut between the two will do
    still = steps(here, np.zeros((900, 1)), rewards=(here[:, 0] > 1.0).astype(float))
    report = encoding_report([one_bin_each(cells) for cells in (1, 2, 20)], still)
    assert report.choice.cells == 2
    assert report.table["information"].iloc[1] == pytest.approx(np.log(2.0), abs=0.02)
    assert report.table["reward_loss"].iloc[0] == pytest.approx(np.log(2.0), abs=0.02)


def test_the_choice_is_fitted_to_all_steps_and_the_report_to_a_seed():
    seen = noise(300)
    report, again = (encoding_report([Bins(2), Bins(3)], seen, seed=5) for _ in range(2))
    assert report.table.equals(again.table)
    fitted = Bins(report.choice.bins).fit(seen)
    np.testing.assert_array_equal(report.choice.state()["edges"], fitted.state()["edges"])


def test_the_encoders_that_are_given_do_not_change():
    fitted, fresh = Bins(2).fit(noise(50)), Bins(3)
    before = fitted.state()["edges"]
    encoding_report([fitted, fresh], noise(300))
    np.testing.assert_array_equal(fitted.state()["edges"], before)
    assert fresh.dimension is None


def test_no_encoder_sees_the_steps_that_judge_it():
    """This one makes cells of the rewards it was fitted to, which are noise."""
    generator = np.random.default_rng(0)
    seen = noise(900, rewards=generator.integers(2, size=900).astype(float))
    row = encoding_report([Memoriser()], seen).table.iloc[0]
    assert row["reward_loss"] > np.log(2.0) - 0.02


class Memoriser(Encoder):
    """Three cells: reward 0, reward 1, never seen."""

    def _fit(self, steps):
        return {"keys": steps.observations[:, 0], "rewards": steps.rewards}

    def _load(self, arrays, dimension):
        self._known, self.cells = dict(zip(arrays["keys"], arrays["rewards"], strict=True)), 3

    def _encode(self, observations):
        return np.array([self._known.get(key, 2) for key in observations[:, 0]])

    def __repr__(self):
        return "Memoriser()"


@pytest.mark.parametrize(
    ("encoders", "seen", "message"),
    [
        ([], noise(100), "`encoders` must hold at least one"),
        (["bins"], noise(100), "`encoders` must be an Encoder, got str"),
        ([Bins(2)], noise(50), "`steps` must hold at least 6 episodes, got 5"),
        ([Bins(2)], "steps", "`steps` must be a Steps, got str"),
    ],
)
def test_wrong_calls_are_refused(encoders, seen, message):
    with pytest.raises(ValueError, match=message):
        encoding_report(encoders, seen)
