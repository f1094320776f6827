"""All adapters continue to the bit from a saved state, and refuse a state that is not theirs."""

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import (
    DIMENSION,
    HORIZON,
    STATES,
    assert_same_state,
    build,
    episode,
    every_adapter,
    train,
)


@every_adapter
def test_a_restored_oracle_continues_to_the_bit(kind, rng, tmp_path):
    for episodes in (0, 1, 20):
        oracle = train(build(kind), rng, kind, episodes)
        np.savez(tmp_path / "state.npz", **oracle.state())
        other = train(build(kind), rng, kind, 2)  # which is replaced
        with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
            other.load_state(state)
        for _ in range(5):
            arrays = episode(rng, kind)
            oracle.update(*arrays)
            other.update(*arrays)
        context = rng.random(DIMENSION)
        np.testing.assert_array_equal(oracle.predict(context), other.predict(context))
        np.testing.assert_array_equal(oracle.uncertainty(context), other.uncertainty(context))
        assert oracle.loss == other.loss
        assert_same_state(oracle.state(), other.state())


@every_adapter
def test_a_foreign_state_is_refused_and_changes_nothing(kind, rng):
    oracle = train(build(kind), rng, kind, 3)
    before = oracle.state()
    more = train(build(kind), rng, kind, 4).state()
    learned = [name for name in more if name == "log" or "module" in name][-1]
    foreign = [
        build(kind, members=2).state(),
        build(kind, horizon=HORIZON + 1).state(),
        build(kind, states=STATES + 1).state(),
        build("Dynamics" if kind == "Rewards" else "Rewards").state(),
        {name: array for name, array in more.items() if name != learned},
        {**more, learned: more[learned][..., :-1]},
        {},
    ]
    for state in foreign:
        with pytest.raises(ValueError, match=r"`state` (must|does not fit)"):
            oracle.load_state(state)
        assert_same_state(oracle.state(), before)
