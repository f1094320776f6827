import numpy as np
import pytest

from library.tests.adversaries.worlds import LABELS, Tabled, TabledView, random_view, random_world, shown
from omg_cmdp.adversaries import Sequence, WorstRegret
from omg_cmdp.adversaries.worst_regret import present_regret
from omg_cmdp.mdp import optimal_policy, policy_value


def regret(view, label):
    mdp = view.environment.mdps[label]
    return optimal_policy(mdp)[1] - policy_value(mdp, view.policies[label])


def test_the_regret_is_what_brute_force_says(rng):
    for _ in range(10):
        view = random_view(rng, random_world(rng))
        regrets = [regret(view, label) for label in LABELS]
        adversary = WorstRegret(LABELS)
        np.testing.assert_allclose([present_regret(label, view) for label in LABELS], regrets, rtol=1e-12, atol=1e-14)
        assert shown(adversary, 1, view=view) == [LABELS[int(np.argmax(regrets))]]


def test_the_choice_follows_the_agent(rng):
    """What is shown is learned, and then another context is the worst: after all are learned, the first is shown."""
    world = random_world(rng, states=15, rewards="uniform", kernel="dense", masked=False)
    view = random_view(rng, world)
    adversary, order = WorstRegret(LABELS), []
    for _ in LABELS:
        (context,) = shown(adversary, 1, view=view)
        order.append(context)
        view.policies[context] = optimal_policy(world.mdps[context])[0]
    assert sorted(order) == LABELS
    assert all(present_regret(label, view) == 0.0 for label in LABELS)
    assert shown(adversary, 3, view=view) == [LABELS[0]] * 3


def test_ties_go_to_the_first(rng):
    (mdp,) = random_world(rng, "a").mdps.values()
    world = Tabled(dict.fromkeys(LABELS, mdp))
    policy = np.asarray(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True))[None].repeat(mdp.horizon, 0)
    view = TabledView(world, dict.fromkeys(LABELS, policy))
    for order in (LABELS, LABELS[::-1]):
        assert shown(WorstRegret(order), 2, view=view) == [order[0]] * 2


def test_only_a_sample_is_looked_at(seed, rng):
    view = random_view(rng, random_world(rng, rewards="uniform"))  # no two are equal
    regrets = {label: regret(view, label) for label in LABELS}
    adversary, generator, looked = WorstRegret(LABELS, look=2), np.random.default_rng(seed), set()
    for t in range(100):
        view.asked.clear()
        context = adversary.context(t, view, generator)
        assert len(set(view.asked)) == len(view.asked) == 2
        assert context == max(view.asked, key=regrets.get)
        looked.update(view.asked)
    assert looked == set(LABELS)
    least = min(regrets, key=regrets.get)
    assert least not in shown(adversary, 100, view=view, seed=seed)


def test_the_seed_decides_and_a_sequence_replays(seed, rng):
    view = random_view(rng, random_world(rng))
    first = shown(WorstRegret(LABELS, look=2), 50, view=view, seed=seed)
    assert len(set(first)) > 1
    assert shown(WorstRegret(LABELS, look=2), 50, view=view, seed=seed) == first
    assert shown(WorstRegret(LABELS, look=2), 50, view=view, seed=seed + 1) != first
    assert shown(Sequence(first), 50, seed=seed + 1) == first


def test_without_a_look_no_random_number_is_used(rng):
    view = random_view(rng, random_world(rng))
    generator = np.random.default_rng(0)
    WorstRegret(LABELS).context(0, view, generator)
    assert generator.random() == np.random.default_rng(0).random()


def test_contexts_may_be_vectors(rng):
    vectors = np.eye(6)
    world = random_world(rng)
    labelled = random_view(rng, world)

    class Numbered(Tabled):
        def mdp(self, context):
            return self.mdps[LABELS[int(np.argmax(context))]]

    class ByVector(TabledView):
        def policy(self, context):
            return super().policy(LABELS[int(np.argmax(context))])

    view = ByVector(Numbered(world.mdps), labelled.policies)
    adversary = WorstRegret(vectors)
    vectors[:] = 0.0
    (context,) = shown(adversary, 1, view=view)
    assert LABELS[int(np.argmax(context))] == shown(WorstRegret(LABELS), 1, view=labelled)[0]


def test_there_is_nothing_to_save():
    adversary = WorstRegret(LABELS)
    assert adversary.state() == {}
    adversary.load_state({})
    with pytest.raises(ValueError, match=r"`state` must be empty for .*, got \['x'\]"):
        adversary.load_state({"x": np.zeros(1)})


@pytest.mark.parametrize(
    ("contexts", "look", "message"),
    [
        ([], None, "`contexts` must hold at least one context"),
        (LABELS, 0, "`look` must be an integer of at least 1, got 0"),
        (LABELS, 7, "`look` must be at most the number of contexts 6, got 7"),
    ],
)
def test_errors_name_argument_rule_and_value(contexts, look, message):
    with pytest.raises(ValueError, match=message):
        WorstRegret(contexts, look=look)


def test_what_is_no_policy_is_refused(rng):
    view = random_view(rng, random_world(rng))
    view.policies["d"] = view.policies["d"] * np.nan
    with pytest.raises(ValueError, match="`policy` must be finite"):
        shown(WorstRegret(LABELS), 1, view=view)
