"""Oracles by name: what they know of the world, what they must learn, and which names are refused."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.documents import FileError
from omg_cmdp.mdp.environment import Environment
from omg_lab.features import world_features
from omg_lab.studies.agents import Setting
from omg_lab.studies.catalogue import AGENTS, build_adversary, build_agent, build_world
from omg_lab.studies.catalogue import WORLDS as CATALOGUE
from omg_lab.studies.config import checked_plan
from omg_lab.studies.oracles import (
    FROM_WORLD,
    ORACLES,
    PAIRS,
    _supplied,
    has_class,
    oracle_arguments,
    oracle_pair,
    usual_oracles,
    world_mixture,
)
from omg_lab.studies.outside.folder import Folder
from omg_lab.worlds import CombinationLock, Decoy, LinearWorld, LowerBound, SoftmaxWorld, TreatmentTrial

EPISODES = 20
WORLDS = {"vectors": SoftmaxWorld(seed=1), "labels": Decoy(seed=1), "mixtures": LinearWorld(seed=1)}

REWARDS = {name: ORACLES["rewards"][name] for name in ("finite", "offline", "log_loss", "counts", "linear", "known")}
DYNAMICS = {
    name: ORACLES["dynamics"][name]
    for name in ("finite", "offline", "least_squares", "counts", "softmax", "basis", "known")
}
"""Kinds that need no arguments."""
FURTHER = {"rewards": ORACLES["rewards"].keys() - REWARDS, "dynamics": ORACLES["dynamics"].keys() - DYNAMICS}


class Numbers(Decoy):
    """A world whose contexts are numbers; what it says is that of the first label."""

    def __init__(self, numbers=(0.4, 0.9, 0.5)):
        super().__init__(seed=1)
        self._first, self.contexts = self.contexts[0], numbers

    def reward_functions(self, context):
        return super().reward_functions(self._first)

    def transition_functions(self, context):
        return super().transition_functions(self._first)


def pair(world, rewards="known", dynamics="known"):
    return oracle_pair(world, {"rewards": rewards, "dynamics": dynamics})


def teach(oracle, world, context, episodes=30):
    """Teach an oracle that in one context action 0 stays in state 0, or pays 1."""
    steps = np.zeros(world.space.horizon, dtype=np.int64)
    outcomes = np.ones(len(steps)) if isinstance(oracle, omg.RewardOracle) else steps
    for _ in range(episodes):
        oracle.update(context, steps, steps, outcomes)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_one_name_is_the_table_of_both(name, world):
    rewards, dynamics = PAIRS[name]
    for one, other in zip(oracle_pair(world, name), pair(world, rewards, dynamics), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one.predict(world.contexts[0]), other.predict(world.contexts[0]))


@pytest.mark.parametrize(("rewards", "dynamics"), [*itertools.product(REWARDS, DYNAMICS)])
def test_every_pair_of_names_plays(rewards, dynamics):
    made = Setting(world=WORLDS["mixtures"], seed=2, episodes=EPISODES)
    agent = build_agent("greedy", {"oracles": {"rewards": rewards, "dynamics": dynamics}}, made)
    assert (type(agent.reward_oracle), type(agent.dynamics_oracle)) == (REWARDS[rewards], DYNAMICS[dynamics])
    assert len(omg.simulate(made.world, build_adversary("iid", {}, made), agent, EPISODES, seed=3)) == EPISODES


@pytest.mark.parametrize("world", [*WORLDS.values(), SoftmaxWorld(misspecification=0.5)])
def test_what_is_known_is_the_truth(world):
    rewards, dynamics = pair(world)
    for context in world.contexts:
        np.testing.assert_array_equal(rewards.predict(context), world.mdp(context).rewards)
        np.testing.assert_array_equal(dynamics.predict(context), world.mdp(context).transitions)
        assert not rewards.uncertainty(context).any()
        assert not dynamics.uncertainty(context).any()


@pytest.mark.parametrize("kind", sorted(CATALOGUE.keys() - {"icu_sepsis", "gymnasium"}))
def test_what_is_known_is_known_where_some_actions_are_forbidden(kind):
    """There the truth has no row, and the oracle needs one; nobody asks for it."""
    world = build_world(kind, {}, seed=1, episodes=EPISODES)
    context, allowed = world.contexts[0], world.space.admissible
    known = pair(world)[1].predict(context)
    truth = world.mdp(context).transitions
    np.testing.assert_array_equal(known[..., allowed, :], truth[..., allowed, :])
    np.testing.assert_allclose(known.sum(axis=-1), 1.0)
    agent = build_agent(
        "omg", {"oracles": {"rewards": "known", "dynamics": "known"}}, Setting(world=world, seed=2, episodes=9)
    )
    assert agent.model(context).transitions[..., ~allowed, :].sum() == 0.0


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_counts_of_one_context_say_nothing_of_another(world):
    for oracle in pair(world, "counts", "counts"):
        first, second = world.contexts[:2]
        before = oracle.predict(first), oracle.predict(second)
        teach(oracle, world, first)
        assert not np.array_equal(oracle.predict(first), before[0])
        np.testing.assert_allclose(oracle.predict(second), before[1], rtol=1e-12)


def test_labels_are_orthogonal_features():
    world = WORLDS["labels"]
    features, vectors = world_features(world)
    np.testing.assert_array_equal(vectors, np.eye(len(world.contexts)))
    np.testing.assert_array_equal([features(context) for context in world.contexts], vectors)
    rewards, _ = pair(world, "linear")
    before = rewards.predict(world.contexts[1])
    teach(rewards, world, world.contexts[0])
    assert rewards.predict(world.contexts[0])[0, 0] > 0.9
    np.testing.assert_allclose(rewards.predict(world.contexts[1]), before, rtol=1e-12)


def test_a_world_may_have_features_of_its_own_of_any_norm():
    world = TreatmentTrial()
    world.features = lambda context: 7.0 * context
    rewards, dynamics = pair(world, "linear", "softmax")
    longest = 7.0 * max(np.sqrt(context @ context) for context in world.contexts)
    for oracle in (rewards, dynamics):
        assert oracle.forecasters.features.longest == pytest.approx(longest)
        for context in world.contexts:
            oracle.predict(context)


@pytest.mark.parametrize("name", ["counts", "softmax", "basis"])
def test_what_the_support_excludes_is_never_predicted(name):
    world = LinearWorld(seed=1)
    states, actions = world.space.states, world.space.actions
    support = np.random.default_rng(0).random((states, actions, states)) < 0.5
    support[..., 0] = True
    world.support = support
    predicted = pair(world, dynamics=name)[1].predict(world.contexts[0])
    assert (predicted[support] > 0.0).all()
    assert not predicted[~support].any()


def test_a_number_lies_between_the_smallest_and_the_largest():
    mixture, weights = world_mixture(Numbers())
    np.testing.assert_allclose(weights, [[0.0, 1.0], [1.0, 0.0], [0.2, 0.8]])
    # Whatever is affine in the number is a mixture of its values at both ends.
    np.testing.assert_allclose(mixture(0.7) @ [3.0 * 0.9 - 1.0, 3.0 * 0.4 - 1.0], 3.0 * 0.7 - 1.0)
    assert len(world_mixture(Numbers((0.4, 0.4)))[1]) == 2
    assert pair(Numbers(), dynamics="basis")[1].predict(0.5).shape == pair(Numbers())[1].predict(0.5).shape


@pytest.mark.parametrize(
    ("named", "rule"),
    [
        ("best", "one of finite"),
        ("softmax", 'softmax. is for dynamics only: { rewards = …, dynamics = "softmax" }'),
        ("product", 'product. is for rewards only: { rewards = "product", dynamics = … }'),
        ("known", 'both at once: { rewards = "known", dynamics = "known" }'),
        ({"rewards": "counts"}, "one of finite"),
        ({"rewards": "softmax", "dynamics": "counts"}, "rewards must be one of .*linear"),
        ({"rewards": "linear", "dynamics": "linear"}, "dynamics must be one of .*softmax"),
        (["counts", "counts"], "one of finite"),
        ({"rewards": "known", "dynamics": "basis"}, "mixture weights"),
    ],
)
def test_names_that_do_not_exist_are_refused(named, rule):
    with pytest.raises(ValueError, match=f"`oracles`.*{rule}"):
        oracle_pair(WORLDS["vectors"], named)


def test_the_guide_names_every_kind():
    page = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
    section = page.partition("\n## Oracles\n")[2].partition("\n## ")[0]
    rows = {cells[1].strip(" `"): cells[2:4] for line in section.splitlines() if len(cells := line.split("|")) == 6}
    for part, simple, column in (("rewards", REWARDS, 0), ("dynamics", DYNAMICS, 1)):
        assert {name for name, cells in rows.items() if cells[column].strip() == "yes"} == set(simple)
        assert {name for name in FURTHER[part] if f"`{name}`" not in section} == set()


def test_what_the_world_supplies_is_shown_as_such():
    for part, kinds in ORACLES.items():
        for name, kind in kinds.items():
            if isinstance(kind, type):
                shown = oracle_arguments(part, name)
                world = LowerBound() if name == "product" else WORLDS["mixtures"]
                supplied = _supplied(world, part, shown, {})
                assert {each for each in shown if shown[each] is FROM_WORLD} == shown.keys() & supplied.keys(), name


def test_every_oracle_of_the_library_has_a_kind():
    public = {getattr(omg.oracles, name) for name in omg.oracles.__all__ if name.endswith(("Rewards", "Dynamics"))}
    assert public == {each for kinds in ORACLES.values() for each in kinds.values() if isinstance(each, type)}


def test_a_world_may_choose_the_oracles_of_all_agents_that_do_not_choose_themselves():
    made = Setting(world=Decoy(), seed=2, episodes=EPISODES, shared={"oracles": "counts"})
    for kind in ("greedy", "omg", "uc3rl"):  # the last has offline ones otherwise
        assert type(build_agent(kind, {}, made).reward_oracle) is REWARDS["counts"]
    assert type(build_agent("greedy", {"oracles": "finite"}, made).reward_oracle) is REWARDS["finite"]
    assert "oracles" not in AGENTS["ucbvi"].options  # it has none, and is not asked
    build_agent("ucbvi", {}, made)


def test_a_study_file_says_so_in_the_table_of_the_world():
    content = {"name": "two", "episodes": EPISODES, "agents": {"greedy": {}}}
    tables = {"one": {"kind": "decoy"}, "two": {"kind": "decoy", "oracles": {"rewards": "counts", "dynamics": "known"}}}
    plan = checked_plan({**content, "worlds": tables})
    finite, counted = (task.start().agent.reward_oracle for task in plan.tasks())
    assert (type(finite), type(counted)) == (REWARDS["finite"], REWARDS["counts"])
    with pytest.raises(FileError, match="`oracles` must be"):
        checked_plan({**content, "worlds": {"one": {"kind": "decoy", "oracles": "best"}}})


def test_only_what_must_be_learned_gets_a_bonus():
    for world, named, scales in (
        (Decoy(), {"rewards": "counts", "dynamics": "counts"}, (0.1, 0.1)),
        (Decoy(), {"rewards": "known", "dynamics": "finite"}, (0.0, 0.0)),
        (CombinationLock(), {"rewards": "counts", "dynamics": "known"}, (0.1, 0.0)),
    ):
        made = Setting(world=world, seed=2, episodes=EPISODES)
        for kind in ("rm_ucdd", "uc3rl"):
            assert build_agent(kind, {"scale": 0.1, "oracles": named}, made).scale == scales


FURTHER_EXAMPLES = {
    "aggregate": {"oracles": ["counts", {"kind": "finite", "rate": "proven"}]},
    "copies": {"oracle": "counts", "delay": 2},
    "epochs": {"oracle": "offline"},
    "stepwise": {"oracles": [{"kind": "counts", "horizon": 1}] * WORLDS["mixtures"].space.horizon},
    "refitted": {"every": 4, "model": {"rewards": "sklearn.tree:DecisionTreeRegressor", "dynamics": "CLASSIFIER"}},
    "product": {},
}
MODELS = {
    "CLASSIFIER": {"kind": "sklearn.tree:DecisionTreeClassifier", "max_depth": 2},
}


def spec_of(part, name):
    """Return the table of an oracle with arguments, as a study file would have it."""
    assert name in FURTHER_EXAMPLES, f"give {name!r} a line in FURTHER_EXAMPLES"
    spec = {"kind": name, **FURTHER_EXAMPLES[name]}
    if "model" in spec:
        model = spec["model"][part]
        spec["model"] = MODELS.get(model, {"kind": model})
    return spec


@pytest.mark.parametrize(
    ("part", "name"),
    [(part, name) for part, names in FURTHER.items() for name in sorted(names)],
)
def test_oracles_with_arguments_are_made_and_asked(part, name):
    if name == "refitted":
        pytest.importorskip("sklearn")
    world = LinearWorld(seed=1) if name != "product" else LowerBound()
    named = {"rewards": "known", "dynamics": "known", part: spec_of(part, name)}
    oracle = oracle_pair(world, named, Folder(Path.cwd()))[part == "dynamics"]
    context = world.contexts[0]
    before = oracle.predict(context)
    teach(oracle, world, context, episodes=8)
    assert before.shape == oracle.predict(context).shape
    assert not np.array_equal(before, oracle.predict(context))


def test_arguments_reach_the_constructor():
    world = LinearWorld(seed=1)
    made = oracle_pair(world, {"rewards": {"kind": "linear", "ridge": 7.0}, "dynamics": "counts"})[0]
    assert made.forecasters.ridge == 7.0
    made = pair(world, {"kind": "finite", "rate": "proven"}, "finite")
    assert [each.rate for each in made] == ["proven", "guarded"]


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"kind": "linear", "rigde": 1.0}, "did you mean 'ridge'"),
        ({"ridge": 1.0}, "a table with such a `kind`"),
        ({"kind": "linear", "ridge": -1.0}, "ridge"),
        ({"kind": "aggregate"}, "needs the option 'oracles'"),
        ({"kind": "aggregate", "oracles": ["lineal"]}, "must be one of"),
        ({"kind": "epochs", "oracle": {"kind": "counts", "prior": 1}}, "no option 'prior'"),
        ({"kind": "refitted", "model": {"kind": "sklearn.tree:DecisionTreeRegressor"}}, "named by a study file"),
        ("module:Class", "must be one of"),
    ],
)
def test_wrong_tables_of_oracles_are_refused_and_nothing_is_imported_without_a_file(spec, rule):
    with pytest.raises(ValueError, match=rule):
        pair(LinearWorld(seed=1), spec)


def test_what_needs_a_class_or_the_truth_is_refused_where_there_is_none():
    class Alone(omg.ContextualMDP):
        space, contexts = WORLDS["labels"].space, ("a", "b")

        def mdp(self, context):
            return WORLDS["labels"].mdp(0)

    assert type(pair(Alone(), "known", "counts")[0]) is REWARDS["known"]
    for name in ("finite", "offline", "log_loss"):
        with pytest.raises(ValueError, match="`oracles`: this world has no class of functions; use"):
            pair(Alone(), name)
    with pytest.raises(ValueError, match="`oracles`: nothing is 'known' of a world without tables"):
        pair(Unknown())


class Unknown(Environment):
    """A world that can only be played."""

    space, contexts = WORLDS["labels"].space, ("a", "b")


@pytest.mark.parametrize(
    ("contexts", "usual"),
    [(("a", "b"), "counts"), ((0.1, 0.2), "counts"), ((np.ones(2),), "linear"), (({"age": 3},), "linear")],
)
def test_without_a_class_contexts_decide_what_is_usual(contexts, usual):
    world = Unknown()
    world.contexts = contexts
    assert usual_oracles(world) == usual
    assert not has_class(world)
    assert has_class(WORLDS["labels"])


def test_records_have_the_features_of_a_feature_map():
    world = Unknown()
    world.contexts = ({"age": 20, "ward": "a"}, {"age": 60, "ward": "b"})
    features, vectors = world_features(world)
    fitted = omg.oracles.FeatureMap.fit(list(world.contexts))
    np.testing.assert_array_equal(vectors, [fitted(context) for context in world.contexts])
    np.testing.assert_array_equal(features({"age": 40, "ward": "c"}), fitted({"age": 40, "ward": "c"}))
    assert np.linalg.norm(vectors, axis=1).max() <= 1.0 + 1e-12
