import itertools
from collections import Counter

import numpy as np
import pytest

from library.tests.adversaries.worlds import LABELS, interrupted, shown
from omg_cmdp.adversaries import IID, NeverTwice, Sequence, Sorted
from omg_cmdp.contexts import context_key

EVERY = {
    "IID": lambda contexts: IID(contexts),
    "Sequence": lambda contexts: Sequence(contexts),
    "Sorted": lambda contexts: Sorted(contexts, 40),
    "NeverTwice": lambda contexts: NeverTwice(itertools.product(contexts, range(7))),
}
OF_A_LIST = [name for name in EVERY if not name.startswith("NeverTwice")]
each = pytest.mark.parametrize("name", EVERY)
each_of_a_list = pytest.mark.parametrize("name", OF_A_LIST)


def keys(contexts):
    return [context_key(context) for context in contexts]


def runs(contexts):
    """Return (context, length) of each maximal run of equal contexts."""
    return [(context, len(list(group))) for context, group in itertools.groupby(contexts)]


@each
def test_the_seed_decides_all(name, seed):
    first = shown(EVERY[name](LABELS), 40, seed=seed)
    assert keys(shown(EVERY[name](LABELS), 40, seed=seed)) == keys(first)


@each
def test_episode_zero_begins_a_new_run(name, seed):
    adversary = EVERY[name](LABELS)
    first = shown(adversary, 37, seed=seed)
    assert keys(shown(adversary, 37, seed=seed)) == keys(first)


def test_another_seed_gives_another_run(seed):
    adversary = IID(LABELS)
    assert keys(shown(adversary, 40, seed=seed)) != keys(shown(adversary, 40, seed=seed + 1))


@each
def test_a_sequence_replays_what_was_shown(name, seed):
    first = shown(EVERY[name](LABELS), 40, seed=seed)
    assert keys(shown(Sequence(first), 40, seed=seed + 1)) == keys(first)


@each
@pytest.mark.parametrize("at", [0, 1, 7, 8, 22])
def test_a_run_goes_on_after_a_crash(name, at, seed, tmp_path):
    adversary, other = EVERY[name](LABELS), EVERY[name](LABELS)
    whole = shown(EVERY[name](LABELS), 40, seed=seed)
    assert keys(interrupted(adversary, other, 40, at, seed=seed)) == keys(whole)
    np.savez(tmp_path / "state.npz", allow_pickle=False, **adversary.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        other.load_state(saved)
    assert all(np.array_equal(other.state()[key], array) for key, array in adversary.state().items())


@each_of_a_list
def test_every_context_appears(name, seed):
    assert set(shown(EVERY[name](LABELS), 400, seed=seed)) == set(LABELS)


@each_of_a_list
def test_later_changes_by_the_caller_have_no_effect(name, rng):
    vectors, lists = rng.random((6, 3)), [[i, [i]] for i in range(6)]
    expected_vectors, expected_lists = keys(vectors), keys(lists)
    of_vectors, of_lists = EVERY[name](vectors), EVERY[name](lists)
    vectors[:] = 0.0
    for entry in lists:
        entry[1].append("changed")
    lists.clear()
    assert set(keys(shown(of_vectors, 400))) == set(expected_vectors)
    assert set(keys(shown(of_lists, 400))) == set(expected_lists)


def test_the_receiver_of_a_vector_cannot_change_it(rng):
    for adversary in (IID(rng.random((4, 2))), NeverTwice(rng.random((4, 2)))):
        with pytest.raises(ValueError, match="read-only"):
            shown(adversary, 1)[0][0] = 1.0


def test_iid_draws_are_uniform_and_independent(rng):
    drawn = [IID(LABELS).context(t, None, rng) for t in range(12_000)]
    # 99.9999 % quantiles of χ² with n - 1 and n² - 1 degrees of freedom: Wilson and Hilferty.
    for outcomes, degrees in ((drawn, 5), (list(itertools.pairwise(drawn))[::2], 35)):
        counts, cells = Counter(outcomes), degrees + 1
        expected = len(outcomes) / cells
        statistic = sum((count - expected) ** 2 / expected for count in counts.values())
        statistic += (cells - len(counts)) * expected
        quantile = degrees * (1.0 - 2.0 / (9 * degrees) + 4.753 * np.sqrt(2.0 / (9 * degrees))) ** 3
        assert statistic < quantile


def test_a_sequence_keeps_the_order_and_cycles():
    assert shown(Sequence("cab"), 8) == list("cabcabca")


@pytest.mark.parametrize("episodes", [6, 7, 40, 41, 60])
def test_sorted_divides_the_episodes_evenly(episodes):
    blocks = runs(shown(Sorted(LABELS, episodes=episodes), episodes))
    assert [context for context, _ in blocks] == LABELS
    lengths = [length for _, length in blocks]
    assert sum(lengths) == episodes
    assert max(lengths) - min(lengths) <= 1
    again = shown(Sorted(LABELS, episodes=episodes), 2 * episodes)
    assert again[:episodes] == again[episodes:]


def test_never_twice_shows_each_once_and_then_refuses(rng):
    vectors = rng.random((300, 3))
    assert keys(shown(NeverTwice(vectors), 300)) == keys(vectors)
    assert shown(NeverTwice(LABELS), 6) == LABELS
    with pytest.raises(ValueError, match="`contexts` must hold a context for every episode, got 6 for episode 6"):
        shown(NeverTwice(LABELS), 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IID([]), r"`contexts` must hold at least one context, got \[\]"),
        (lambda: Sequence(np.empty((0, 3))), "`contexts` must hold at least one context"),
        (lambda: IID(3), "`contexts` must be a list of contexts, got 3"),
        (lambda: IID(np.array(3.0)), "`contexts` must be a list of contexts"),
        (lambda: Sequence({"a", "b"}), "`contexts` must have an order, got a set"),
        (lambda: Sorted(LABELS, 5), "`episodes` must be at least the number of contexts 6, got 5"),
        (lambda: Sorted(LABELS, 0), "`episodes` must be an integer of at least 1, got 0"),
        (lambda: NeverTwice([]), "`contexts` must hold at least one context"),
        (lambda: NeverTwice("abca"), "none of them twice, got 'a' at index 3"),
        (lambda: NeverTwice(np.zeros((2, 2))), "none of them twice, got .* at index 1"),
        (lambda: NeverTwice([object()]), r"must be vectors, records or labels, .*, got <object .* at index 0"),
    ],
)
def test_errors_name_argument_rule_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("adversary", "state"),
    [
        (IID(LABELS), {"recent": np.array([1])}),
        (NeverTwice(LABELS), {"seen": np.zeros((1, 16), dtype=np.uint8)}),
    ],
)
def test_states_of_others_are_refused(adversary, state):
    with pytest.raises(ValueError, match="`state` must"):
        adversary.load_state(state)
