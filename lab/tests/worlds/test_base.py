"""What holds for every world: valid tables, a class around the truth, a dial, seeds, contexts that matter."""

import inspect
import pickle
import sys

import numpy as np
import pytest

from lab.tests.worlds.catalogue import (
    BUDGETED,
    FOR_TABLES,
    FROM_DATA,
    KNOWN_DYNAMICS,
    KNOWN_REWARDS,
    NOISY,
    OWN_DIAL,
    WORLDS,
    model,
    truths,
    uniform_policy,
)
from lab.tests.worlds.misspecification import distance_to_class
from omg_cmdp import optimal_policy, policy_value
from omg_cmdp.adversaries import IID
from omg_cmdp.agents import Uniform
from omg_cmdp.oracles import FiniteDynamics, FiniteRewards
from omg_cmdp.runs.simulate import Run
from omg_lab import worlds
from omg_lab.worlds import ACTG175, Classification, LowerBound, ReducedSepsis, World

DIALS = (0.0, 0.05, 0.1, 0.3, 0.6, 0.9)

each_world = pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.__name__)


def same_tables(world, other):
    pairs = zip(truths(world), truths(other), strict=True)
    return all(np.array_equal(a.rewards, b.rewards) and np.array_equal(a.transitions, b.transitions) for a, b in pairs)


def test_every_world_is_public_and_every_public_world_is_tested():
    """The catalogue looks into the modules of `worlds` and `data`; others show here."""
    exported = {getattr(worlds, name) for name in worlds.__all__}
    public = {kind for kind in exported if inspect.isclass(kind) and issubclass(kind, World)}
    assert public == {World, *WORLDS, *FROM_DATA}
    assert len(WORLDS) >= 13


@each_world
def test_the_module_docstring_is_the_specification(kind):
    module = sys.modules[kind.__module__]
    for word in ("States", "horizon", "Contexts", "Rewards", "Transitions", "Class"):
        assert word.lower() in module.__doc__.lower()
    assert 60 <= len(inspect.getsource(module).splitlines()) <= 180


@each_world
def test_arguments_have_names_and_defaults(kind):
    parameters = inspect.signature(kind).parameters.values()
    assert {"seed", "misspecification"} <= {p.name for p in parameters}
    for parameter in parameters:
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.default is not parameter.empty


@each_world
def test_the_default_is_small(kind):
    world = kind()
    if kind in FOR_TABLES:
        assert world.space.states * world.space.actions * world.space.horizon <= 400
        assert 2 <= len(world.contexts) <= 4
        return
    assert world.space.states <= 6
    assert world.space.actions <= 4
    assert world.space.horizon <= 6
    assert 12 <= len(world.contexts) <= 20


@each_world
@pytest.mark.parametrize("dial", [0.0, 0.7])
def test_every_context_has_an_mdp_of_the_space(kind, dial, seed):
    world = kind(seed=seed, misspecification=dial)
    for mdp in truths(world):
        np.testing.assert_array_equal(mdp.start, world.space.start)
        np.testing.assert_array_equal(mdp.admissible, world.space.admissible)
        assert mdp.horizon == world.space.horizon


@each_world
def test_contexts_differ_and_cannot_be_written_to(kind, seed):
    contexts = kind(seed=seed).contexts
    assert isinstance(contexts, tuple)
    assert len(np.unique(np.array(contexts), axis=0)) == len(contexts)
    assert all(isinstance(c, int) or not c.flags.writeable for c in contexts)


@each_world
def test_the_oracles_accept_the_class(kind, seed):
    world = kind(seed=seed)
    rewards = FiniteRewards(world.reward_functions, horizon=world.space.horizon)
    dynamics = FiniteDynamics(world.transition_functions, horizon=world.space.horizon)
    for context in world.contexts:
        assert optimal_policy(model(world, rewards.predict(context), dynamics.predict(context)))[1] > 0.0


@each_world
def test_class_sizes_are_those_asked_for(kind):
    sizes = {name for name in inspect.signature(kind).parameters if name.endswith("class_size")}
    world = kind(**dict.fromkeys(sizes, 5))
    rewards, kernels = (f(world.contexts[0]) for f in (world.reward_functions, world.transition_functions))
    rewards_known, kernel_known = kind in KNOWN_REWARDS, kind in KNOWN_DYNAMICS
    assert len(kernels) == (1 if kernel_known else 5)
    assert len(rewards) == (1 if rewards_known else world.space.actions if kind is LowerBound else 5)


@each_world
def test_the_truth_is_one_member_of_the_class(kind, seed):
    """The same one in all contexts, bit for bit; of a product, one in every context and state."""
    world = kind(seed=seed)
    admissible = world.space.admissible
    rewards, kernels = [], []
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        equal = np.where(admissible, world.reward_functions(context) == mdp.rewards, True)
        rewards.append(equal.all(axis=2))
        same = (world.transition_functions(context) == mdp.transitions).all(axis=-1)
        kernels.append((same | ~admissible).all(axis=(1, 2)))
    rewards = np.array(rewards)  # contexts, functions, states
    if world.product_class:
        assert rewards.any(axis=1).all()
    else:
        assert rewards.all(axis=(0, 2))[world.reward_index]
    assert np.array(kernels).all(axis=0)[world.transition_index]


@each_world
def test_the_truth_is_anywhere_in_the_class(kind):
    worlds = [kind(seed=seed) for seed in range(20)]
    indices = {(world.reward_index, world.transition_index) for world in worlds}
    assert len(indices) > 5 or kind is LowerBound


@each_world
def test_the_class_is_a_function_of_the_context(kind, seed):
    world = kind(seed=seed)
    for functions in (world.reward_functions, world.transition_functions):
        for context in world.contexts:
            first = functions(context)
            kept = first.copy()
            first[:] = 0.5  # what is handed out is the caller's
            np.testing.assert_array_equal(functions(context), kept)
            again = context if isinstance(context, int) else context.copy()
            np.testing.assert_array_equal(functions(again), kept)


def refuses_writes(array):
    """Try to change every entry, and return whether that was refused."""
    try:
        array[...] = 1 - array
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.__name__)
def test_nothing_that_a_world_hands_out_can_change_it(kind, seed):
    """Whatever is an array is read-only, or the caller's own."""
    world, untouched = kind(seed=seed), kind(seed=seed)
    public = {name: value for name, value in vars(world).items() if isinstance(value, np.ndarray)}
    assert all(refuses_writes(value) for value in public.values())
    refuses_writes(world.space.start)
    refuses_writes(world.space.admissible)
    for context in world.contexts:
        truth = world.truth(context)
        given = [truth.best[0], truth.mdp.transitions, truth.mdp.rewards, truth.mdp.start, truth.mdp.admissible]
        given += [world.features(context), world.reward_functions(context), world.transition_functions(context)]
        for array in [*given, *([] if np.isscalar(context) else [context])]:
            refuses_writes(array)
        uniform = uniform_policy(untouched.space)
        regret = world.truth(context).regret(uniform)
        assert regret == untouched.truth(context).regret(uniform)
        assert regret >= 0.0 or world.budgets is not None  # a policy that exceeds a budget may earn more
    assert same_tables(world, untouched)


@each_world
def test_one_seed_one_world(kind, seed):
    assert same_tables(kind(seed=seed), kind(seed=seed))
    others = [kind(seed=seed + more) for more in range(1, 6)]  # where few tables are possible, one may be the same
    assert not all(same_tables(kind(seed=seed), other) for other in others)


@each_world
def test_a_world_travels_to_another_process(kind, seed):
    world = kind(seed=seed, misspecification=0.3)
    world.optimal_value(world.contexts[0])
    assert same_tables(world, pickle.loads(pickle.dumps(world)))


@each_world
def test_the_dial_moves_the_truth_and_nothing_else(kind, seed):
    worlds = [kind(seed=seed, misspecification=dial) for dial in DIALS]
    inside = worlds[0]
    for dial, world in zip(DIALS, worlds, strict=True):
        for context, here, there in zip(inside.contexts, truths(inside), truths(world), strict=True):
            np.testing.assert_array_equal(world.reward_functions(context), inside.reward_functions(context))
            np.testing.assert_array_equal(world.transition_functions(context), inside.transition_functions(context))
            assert np.abs(here.rewards - there.rewards).max() <= dial + 1e-12
            assert np.abs(here.transitions - there.transitions).max() <= dial + 1e-12


@pytest.mark.parametrize("kind", [kind for kind in WORLDS if kind not in OWN_DIAL], ids=lambda kind: kind.__name__)
def test_the_usual_dial_moves_towards_the_mean_of_the_class(kind, seed):
    inside, world = kind(seed=seed), kind(seed=seed, misspecification=0.3)
    played = inside.space.admissible
    for context, here, there in zip(inside.contexts, truths(inside), truths(world), strict=True):
        rewards, transitions = (f(context).mean(axis=0) for f in (inside.reward_functions, inside.transition_functions))
        moved = 0.7 * here.rewards + 0.3 * rewards, 0.7 * here.transitions + 0.3 * transitions
        for found, expected in zip((there.rewards, there.transitions), moved, strict=True):
            np.testing.assert_allclose(found[played], expected[played], rtol=0.0, atol=1e-15)


@each_world
def test_the_distance_to_the_class_grows_with_the_dial(kind, seed):
    distances = [distance_to_class(kind(seed=seed, misspecification=dial, **NOISY.get(kind, {}))) for dial in DIALS]
    for known, name in ((KNOWN_REWARDS, "square"), (KNOWN_DYNAMICS, "log")):
        values = np.array([getattr(distance, name) for distance in distances])
        assert values[0] == 0.0
        assert (np.diff(values) == 0.0).all() if kind in known else (np.diff(values) > 0.0).all()


@each_world
def test_the_truth_does_not_come_back_to_the_class(kind, seed):
    noise = NOISY.get(kind, {})
    near, far = (distance_to_class(kind(seed=seed, misspecification=dial, **noise)) for dial in (0.2, 0.99))
    assert max(far.square / max(near.square, 1e-300), far.log / max(near.log, 1e-300)) > 2.0
    assert np.isfinite(far).all()


@pytest.mark.parametrize("kind", [kind for kind in WORLDS if kind not in BUDGETED], ids=lambda kind: kind.__name__)
def test_no_single_policy_is_good_for_all_contexts(kind, seed):
    """A few percent of the optimum at least, against every context's own best policy and that of the average MDP.

    Of worlds with budgets, `test_budgeted.py` asks the same within the budgets.
    """
    world = kind(seed=seed)
    mdps = truths(world)
    average = model(world, *(np.mean([getattr(m, t) for m in mdps], axis=0) for t in ("rewards", "transitions")))
    candidates = [optimal_policy(mdp)[0] for mdp in (*mdps, average)]
    optimum = np.mean([world.optimal_value(context) for context in world.contexts])
    single = max(np.mean([policy_value(mdp, policy) for mdp in mdps]) for policy in candidates)
    assert single < 0.98 * optimum


@each_world
def test_a_dial_outside_zero_to_one_is_refused(kind):
    for dial in (-0.1, 1.0, 1.5, np.nan, "much", True, None):
        with pytest.raises(ValueError, match=r"`misspecification` must lie in \[0, 1\), got"):
            kind(misspecification=dial)


@each_world
def test_what_is_no_context_is_refused(kind):
    world = kind()
    for context in ("nobody", -1, 99, True, 1.5, [0.1], [np.nan] * 4, [[1.0]], None, {}):
        for ask in (world.reward_functions, world.transition_functions, world.mdp):
            with pytest.raises(ValueError, match="`context` must"):
                ask(context)


@each_world
def test_sizes_are_refused_by_name(kind):
    counts = {"states", "actions", "horizon", "dimension", "context_count", "episodes"}
    counts |= {"class_size", "reward_class_size", "transition_class_size"}
    numbers = {name for name, each in inspect.signature(kind).parameters.items() if type(each.default) is int}
    assert numbers <= counts | {"seed"}, "sizes have these names in every world"
    for name in counts & numbers:
        for value in (0, 2.5, "two"):
            with pytest.raises(ValueError, match=f"`({name}|horizon)` must be an integer"):
                kind(**{name: value})


@each_world
@pytest.mark.parametrize("dial", [0.0, 0.5])
def test_nothing_happens_outside_the_support(kind, dial, seed):
    """Neither in the truth nor in the class."""
    world = kind(seed=seed, misspecification=dial)
    if world.support is None:
        return
    possible = np.array([mdp.transitions > 0.0 for mdp in truths(world)])
    assert world.support.dtype == np.bool_
    assert not (possible & ~world.support).any()
    for context in world.contexts:
        assert not ((world.transition_functions(context) > 0.0) & ~world.support).any()


@each_world
@pytest.mark.parametrize("dial", [0.0, 0.5])
def test_an_episode_earns_what_the_return_range_says(kind, dial, seed, rng):
    """Largest and smallest returns of any path, and those of sampled episodes."""
    world = kind(seed=seed, misspecification=dial)
    low, high = world.return_range or (0.0, world.space.horizon)
    assert 0.0 <= low < high <= world.space.horizon
    for context, mdp in zip(world.contexts, truths(world), strict=True):
        assert largest_return(world, mdp) <= high + 1e-12
        returns = [world.sample(context, uniform_policy(world.space), rng).rewards.sum() for _ in range(5)]
        assert low <= min(returns)
        assert max(returns) <= high + 1e-12


def largest_return(world, mdp):
    """Return the most that a path can earn if nature is on its side; a reward with noise may be 1 where it is not 0."""
    noisy = world.draw_reward(0.25, 0.5) != 0.25
    rewards = np.where(mdp.admissible, (mdp.rewards > 0.0) if noisy else mdp.rewards, 0.0)
    best = np.zeros(mdp.states)
    for _ in range(mdp.horizon):
        best = (rewards + np.where(mdp.transitions > 0.0, best, 0.0).max(axis=-1)).max(axis=1)
    return best[mdp.start > 0.0].max()


@each_world
def test_features_tell_contexts_apart(kind, seed):
    world = kind(seed=seed)
    features = np.array([world.features(context) for context in world.contexts])
    assert features.ndim == 2
    assert len(np.unique(features, axis=0)) == len(world.contexts)


OTHER_VALUES = {"map_name": "8x8", "dataset": "iris"}
"""Another value of the arguments that are no numbers."""


def varied(kind, known):
    """Yield each argument of a world with another value."""
    for name, parameter in inspect.signature(kind).parameters.items():
        value = known.get(name, parameter.default)
        if isinstance(value, str):
            yield name, OTHER_VALUES[name]
        else:
            yield name, value + 1 if isinstance(value, int) else 0.5 * value + 0.2


SMALL = {
    ACTG175: {"transition_class_size": 1},
    Classification: {"dataset": "wine"},
    ReducedSepsis: {"context_count": 2},
}
"""Arguments with which worlds made of data are quick."""


@pytest.mark.parametrize(
    "kind",
    [*WORLDS, *(pytest.param(each, marks=pytest.mark.slow) for each in FROM_DATA if each in SMALL)],
    ids=lambda kind: kind.__name__,
)
def test_a_world_with_any_other_argument_is_told_apart(kind):
    """Of all arguments of all worlds; the full ICU-Sepsis has those of the reduced one."""
    try:
        known = SMALL.get(kind, {})
        text = kind(**known).fingerprint()
        assert kind(**known).fingerprint() == text
    except ImportError as error:
        pytest.skip(str(error))
    tried = 0
    for name, value in varied(kind, known):
        assert kind(**(known | {name: value})).fingerprint() != text, name
        tried += 1
    assert tried >= 2
    assert not text.endswith("?")


@pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.__name__)
def test_a_run_is_not_continued_in_another_world(kind, tmp_path):
    """Save a run, change one argument of the world, restore: refused, whatever it is."""

    def run(**arguments):
        world = kind(**arguments)
        return Run(world, IID(world.contexts), Uniform(world.space))

    first = run()
    first.advance(2)
    first.save(tmp_path / "run.npz")
    run().restore(tmp_path / "run.npz")
    for name, value in varied(kind, {}):
        with pytest.raises(ValueError, match="a run with the same settings"):
            run(**{name: value}).restore(tmp_path / "run.npz")
