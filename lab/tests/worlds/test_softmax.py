import numpy as np

from omg_lab.worlds import SoftmaxWorld


def logits(p):
    return np.log(p / (1.0 - p))


def test_contexts_are_directions(seed):
    np.testing.assert_allclose(np.linalg.norm(SoftmaxWorld(seed=seed).contexts, axis=1), 1.0, rtol=1e-12)


def test_rewards_have_log_odds_linear_in_the_context(seed):
    world = SoftmaxWorld(seed=seed)
    weights = np.stack([logits(world.reward_functions(axis)) for axis in np.eye(4)], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(weights, axis=-1), 3.0, rtol=1e-9)
    for context in world.contexts:
        np.testing.assert_allclose(logits(world.reward_functions(context)), weights @ context, rtol=0.0, atol=1e-9)


def test_transitions_have_log_ratios_linear_in_the_context(seed):
    world = SoftmaxWorld(seed=seed)
    centred = [np.log(world.transition_functions(c)) for c in (*np.eye(4), *world.contexts)]
    centred = np.stack([table - table.mean(axis=-1, keepdims=True) for table in centred], axis=-1)
    np.testing.assert_allclose(centred[..., 4:], centred[..., :4] @ np.transpose(world.contexts), rtol=0.0, atol=1e-9)
    assert np.linalg.norm(centred[..., :4], axis=(-2, -1)).max() <= 3.0  # what centring leaves of the norm 3


def test_at_the_origin_nothing_is_known(seed):
    world = SoftmaxWorld(seed=seed)
    np.testing.assert_array_equal(world.reward_functions(np.zeros(4)), 0.5)
    np.testing.assert_allclose(world.transition_functions(np.zeros(4)), 0.2, rtol=1e-12)
