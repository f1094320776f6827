import numpy as np
import pytest

from library.tests.adversaries.worlds import LABELS, Tabled, TabledView, random_view, random_world, shown
from library.tests.random_mdps import by_step, with_tables
from omg_cmdp.adversaries import LargestDisagreement, Sequence, WorstRegret
from omg_cmdp.mdp import TabularMDP, occupancy_measure, optimal_policy, policy_value, squared_hellinger

BOTH = pytest.mark.parametrize("kind", [WorstRegret, LargestDisagreement])


def regret(view, label):
    mdp = view.environment.mdps[label]
    return optimal_policy(mdp)[1] - policy_value(mdp, view.policies[label])


def disagreement(view, label):
    """The sum in the definition, written out."""
    mdp = view.environment.mdps[label]
    (transitions, rewards), (model_transitions, model_rewards) = by_step(mdp), by_step(view.models[label])
    occupancy = occupancy_measure(mdp, view.policies[label])
    return sum(
        occupancy[i] * ((rewards[i] - model_rewards[i]) ** 2 + squared_hellinger(transitions[i], model_transitions[i]))
        for i in np.ndindex(occupancy.shape)
    )


HARM = {WorstRegret: regret, LargestDisagreement: disagreement}


@BOTH
def test_the_harm_is_what_brute_force_says(kind, rng):
    for _ in range(10):
        view = random_view(rng, random_world(rng), with_models=True)
        harms = [HARM[kind](view, label) for label in LABELS]
        adversary = kind(LABELS)
        np.testing.assert_allclose([adversary.harm(label, view) for label in LABELS], harms, rtol=1e-12, atol=1e-14)
        assert shown(adversary, 1, view=view) == [LABELS[int(np.argmax(harms))]]


@BOTH
def test_the_choice_follows_the_agent(kind, rng):
    """What is shown is learned, and then another context is the worst: after all are learned, the first is shown."""
    world = random_world(rng, states=15, rewards="uniform", kernel="dense", masked=False)
    view = random_view(rng, world, with_models=True)
    adversary, order = kind(LABELS), []
    for _ in LABELS:
        (context,) = shown(adversary, 1, view=view)
        order.append(context)
        view.policies[context], view.models[context] = optimal_policy(world.mdps[context])[0], world.mdps[context]
    assert sorted(order) == LABELS
    assert all(adversary.harm(label, view) == 0.0 for label in LABELS)
    assert shown(adversary, 3, view=view) == [LABELS[0]] * 3


@BOTH
def test_ties_go_to_the_first(kind, rng):
    (mdp,), (model,) = random_world(rng, "a").mdps.values(), random_world(rng, "a").mdps.values()
    world = Tabled(dict.fromkeys(LABELS, mdp))
    policy = np.asarray(mdp.admissible / mdp.admissible.sum(axis=1, keepdims=True))[None].repeat(mdp.horizon, 0)
    view = TabledView(world, dict.fromkeys(LABELS, policy), dict.fromkeys(LABELS, model))
    for order in (LABELS, LABELS[::-1]):
        assert shown(kind(order), 2, view=view) == [order[0]] * 2


@BOTH
def test_only_a_sample_is_looked_at(kind, seed, rng):
    view = random_view(rng, random_world(rng, rewards="uniform"), with_models=True)  # of no two equal harm
    harms = {label: HARM[kind](view, label) for label in LABELS}
    adversary, generator, looked = kind(LABELS, look=2), np.random.default_rng(seed), set()
    for t in range(100):
        view.asked.clear()
        context = adversary.context(t, view, generator)
        assert len(set(view.asked)) == len(view.asked) == 2
        assert context == max(view.asked, key=harms.get)
        looked.update(view.asked)
    assert looked == set(LABELS)
    least = min(harms, key=harms.get)
    assert least not in shown(adversary, 100, view=view, seed=seed)


@BOTH
def test_the_seed_decides_and_a_sequence_replays(kind, seed, rng):
    view = random_view(rng, random_world(rng), with_models=True)
    first = shown(kind(LABELS, look=2), 50, view=view, seed=seed)
    assert len(set(first)) > 1
    assert shown(kind(LABELS, look=2), 50, view=view, seed=seed) == first
    assert shown(kind(LABELS, look=2), 50, view=view, seed=seed + 1) != first
    assert shown(Sequence(first), 50, seed=seed + 1) == first


@BOTH
def test_without_a_look_no_random_number_is_used(kind, rng):
    view = random_view(rng, random_world(rng), with_models=True)
    generator = np.random.default_rng(0)
    kind(LABELS).context(0, view, generator)
    assert generator.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("look", [None, 2])
def test_without_a_model_all_contexts_come_in_turn(look, rng):
    view = random_view(rng, random_world(rng))
    assert shown(LargestDisagreement(LABELS, look=look), 8, view=view) == [*LABELS, *LABELS[:2]]
    assert view.asked == []


def test_errors_where_the_policy_never_leads_do_not_count(rng):
    """Action 0 stays in state 0, and the policy plays it; all that the model gets wrong is elsewhere."""
    moves = np.eye(2)[[[0, 1], [0, 1]]]
    mdp = TabularMDP(transitions=moves, rewards=np.zeros((2, 2)), horizon=3)
    stay = np.zeros((3, 2, 2))
    stay[:, :, 0] = 1.0
    elsewhere = with_tables(mdp, rewards=np.array([[0.0, 1.0], [1.0, 1.0]]))
    slightly = with_tables(mdp, rewards=np.array([[0.1, 0.0], [0.0, 0.0]]))
    view = TabledView(Tabled({"x": mdp, "y": mdp}), {"x": stay, "y": stay}, {"x": elsewhere, "y": slightly})
    adversary = LargestDisagreement("xy")
    assert adversary.harm("x", view) == 0.0
    assert adversary.harm("y", view) == pytest.approx(3 * 0.1**2)
    assert shown(adversary, 1, view=view) == ["y"]


@BOTH
def test_contexts_may_be_vectors(kind, rng):
    vectors = np.eye(6)
    world = random_world(rng)
    labelled = random_view(rng, world, with_models=True)

    class Numbered(Tabled):
        def mdp(self, context):
            return self.mdps[LABELS[int(np.argmax(context))]]

    class ByVector(TabledView):
        def policy(self, context):
            return super().policy(LABELS[int(np.argmax(context))])

        def model(self, context):
            return super().model(LABELS[int(np.argmax(context))])

    view = ByVector(Numbered(world.mdps), labelled.policies, labelled.models)
    adversary = kind(vectors)
    vectors[:] = 0.0
    (context,) = shown(adversary, 1, view=view)
    assert LABELS[int(np.argmax(context))] == shown(kind(LABELS), 1, view=labelled)[0]


@BOTH
def test_there_is_nothing_to_save(kind):
    adversary = kind(LABELS)
    assert adversary.state() == {}
    adversary.load_state({})
    with pytest.raises(ValueError, match=r"`state` must be empty for .*, got \['x'\]"):
        adversary.load_state({"x": np.zeros(1)})


@BOTH
@pytest.mark.parametrize(
    ("contexts", "look", "message"),
    [
        ([], None, "`contexts` must hold at least one context"),
        (LABELS, 0, "`look` must be an integer of at least 1, got 0"),
        (LABELS, 7, "`look` must be at most the number of contexts 6, got 7"),
    ],
)
def test_errors_name_argument_rule_and_value(kind, contexts, look, message):
    with pytest.raises(ValueError, match=message):
        kind(contexts, look=look)


@BOTH
def test_what_is_no_policy_is_refused(kind, rng):
    view = random_view(rng, random_world(rng), with_models=True)
    view.policies["d"] = view.policies["d"] * np.nan
    with pytest.raises(ValueError, match="`policy` must be finite"):
        shown(kind(LABELS), 1, view=view)
