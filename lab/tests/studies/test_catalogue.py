"""Every kind can be built by its name alone, plays, and takes the options it lists."""

import importlib.metadata
import inspect
import subprocess
import sys

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp import adversaries, agents
from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.agent import Agent
from omg_cmdp.agents.building import arguments_of
from omg_cmdp.documents import FileError
from omg_lab import rivals, worlds
from omg_lab.shown import names_of
from omg_lab.studies import catalogue
from omg_lab.studies.agents import Setting
from omg_lab.studies.catalogue import (
    ADVERSARIES,
    AGENTS,
    WORLDS,
    build_adversary,
    build_agent,
    build_world,
    nearest,
)
from omg_lab.studies.config import read_plan
from omg_lab.studies.options import REQUIRED
from omg_lab.worlds import World

EPISODES = 20
BANDITS = {name for name, kind in AGENTS.items() if ".bandits." in kind.make.__module__}
LIMITED = sorted(name for name, kind in AGENTS.items() if ".rivals.budgets." in kind.make.__module__)
BY_NAME = sorted(WORLDS.keys() - {"icu_sepsis", "gymnasium"})  # that one takes minutes, and this one arguments


def setting(world="linear", **options):
    return Setting(world=build_world(world, options, seed=1, episodes=EPISODES), seed=2, episodes=EPISODES)


def bandit_for(kind):
    """Return the bandit, with a budget for agents that need one."""
    made = setting("bandit")
    if kind in LIMITED:
        made.world.costs, made.world.budgets = np.ones((1, 1, made.world.space.actions)), [1.0]
    return made


def play(agent, adversary, world):
    return omg.simulate(world, adversary, agent, EPISODES, seed=3)


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("world", ["bandit", "decoy", "treatment"])
def test_every_agent_plays_by_its_name_alone(kind, world):
    made = setting(world)
    if kind in BANDITS and world != "bandit":
        with pytest.raises(ValueError, match="horizon 1"):
            build_agent(kind, {}, made)
        return
    if kind in LIMITED:
        with pytest.raises(ValueError, match="`budgets` must be given"):
            build_agent(kind, {}, made)
        return
    ledger = play(build_agent(kind, {}, made), build_adversary("iid", {}, made), made.world)
    assert np.isfinite(ledger.regret).all()


@pytest.mark.parametrize("kind", [*LIMITED, "omg", "greedy", "posterior_sampling", "epsilon_greedy", "informed"])
def test_a_world_hands_its_costs_and_budgets_to_every_agent_that_takes_them(kind):
    made = setting("maintenance")
    agent = build_agent(kind, {}, made)
    np.testing.assert_array_equal(agent.limits(1).given, made.world.budgets)
    ledger = play(agent, build_adversary("iid", {}, made), made.world)
    assert np.isfinite(ledger.table()[["regret", "cost", "budget", "violation"]].to_numpy()).all()
    assert {"costs", "budgets"}.isdisjoint(AGENTS[kind].options)


def installed(kind):
    try:
        return kind.package is None or importlib.metadata.version(kind.package)
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("kind", BY_NAME)
def test_every_world_is_played_by_its_name_alone(kind):
    made = setting(kind)
    assert len(play(build_agent("omg", {}, made), build_adversary("iid", {}, made), made.world)) == EPISODES


@pytest.mark.parametrize("kind", ADVERSARIES)
def test_every_adversary_plays(kind):
    made = setting("softmax", context_count=EPISODES)
    adversary = build_adversary(kind, {}, made)
    assert len(play(build_agent("greedy", {}, made), adversary, made.world)) == EPISODES


def test_every_public_world_adversary_and_agent_is_found():
    def classes(base, *modules):
        found = (getattr(module, name) for module in modules for name in module.__all__)
        return {
            each for each in found if inspect.isclass(each) and issubclass(each, base) and not inspect.isabstract(each)
        }

    made = {kind.make for name, kind in WORLDS.items() if name != "gymnasium"}
    assert made == {each for each in classes(World, worlds) if installed(each)}
    assert {kind.make for kind in ADVERSARIES.values()} == classes(Adversary, adversaries)
    assert {kind.make for kind in AGENTS.values()} == classes(Agent, agents, rivals)


def test_a_world_is_there_if_its_package_is_installed_and_only_then(monkeypatch):
    def without(package, version=importlib.metadata.version):
        if package == "icu-sepsis":
            raise importlib.metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(importlib.metadata, "version", without)
    found = catalogue._found(World, lambda made: {}, worlds)
    assert found.keys() == WORLDS.keys() - {"icu_sepsis", "reduced_sepsis", "gymnasium"}


def test_the_packages_of_worlds_are_not_imported_to_list_them():
    code = "import sys; from omg_lab.studies import catalogue; print(*catalogue.WORLDS); print(*sys.modules)"
    listed, loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {"lock", "deep_sea"} <= set(listed.split())
    assert {"gymnasium", "sklearn", "lifelines", "icu_sepsis"}.isdisjoint(loaded.split())


def test_kinds_keep_the_names_that_study_files_use():
    assert WORLDS.keys() >= {"bandit", "decoy", "linear", "lock", "lower_bound", "softmax", "treatment"}
    assert WORLDS.keys() >= {"arms", "corridor", "deep_sea", "long_decoy", "noisy_room", "river_swim"}
    assert ADVERSARIES.keys() >= {"iid", "never_twice", "sorted", "worst_regret"}
    assert AGENTS.keys() >= {"epsilon_greedy", "falcon", "fast_cb", "feel_good", "glm_orl", "pc_igw"}


def test_arguments_that_a_class_passes_on_are_options_too():
    assert {"seed", "ridge"} <= AGENTS["glm_rlsvi"].options.keys()
    assert not {"space", "dimension", "features"} & AGENTS["glm_rlsvi"].options.keys()


def test_defaults_are_those_of_the_classes():
    usual, options = arguments_of(agents.OMG), AGENTS["omg"].options
    assert {name: options[name] for name in usual.keys() & options} == {
        name: default for name, default in usual.items() if name in options
    }
    assert {"gamma", "delta", "episodes", "seed"} <= usual.keys() & options


@pytest.mark.parametrize("table", [WORLDS, ADVERSARIES, AGENTS])
def test_kinds_are_in_order_and_described_in_one_line(table):
    assert list(table) == sorted(table)
    for name, kind in table.items():
        assert kind.name == name
        assert 10 < len(kind.description) < 120


@pytest.mark.parametrize("kind", BY_NAME)
def test_every_option_of_a_world_is_taken_at_its_default(kind):
    options = {name: default for name, default in WORLDS[kind].options.items() if name != "seed"}
    ours, theirs = build_world(kind, options, seed=5, episodes=3000), build_world(kind, {}, seed=5, episodes=3000)
    context = theirs.contexts[0]
    np.testing.assert_array_equal(ours.mdp(context).rewards, theirs.mdp(context).rewards)


@pytest.mark.parametrize("kind", AGENTS)
def test_every_option_of_an_agent_is_taken_at_its_default(kind):
    made = bandit_for(kind)
    needs_another = {"radius"}  # tested below
    for name, default in AGENTS[kind].options.items():
        if default is not None and name not in needs_another:
            build_agent(kind, {name: default}, made)


def test_the_seed_draws_the_structure_unless_the_options_hold_another():
    worlds = [
        build_world("linear", options, seed=seed, episodes=9) for options, seed in (({}, 1), ({}, 2), ({"seed": 1}, 2))
    ]
    first, second, third = (world.mdp(worlds[0].contexts[0]).rewards for world in worlds)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, third)


def test_options_reach_the_agent():
    made = setting("treatment")
    omg_agent = build_agent("omg", {}, made)
    assert omg_agent.gamma.rule.seed == 2
    assert type(build_agent("omg", {"gamma": "uncertainty"}, made).gamma) is agents.UncertaintyWeighted
    assert omg_agent.episodes == EPISODES
    assert build_agent("omg", {"gamma": {"scale": 2.0, "exponent": 0.5}}, made).gamma(4) == 4.0
    assert build_agent("epsilon_greedy", {"epsilon": {"scale": 1, "exponent": -1}}, made).epsilon(4) == 0.25
    assert build_agent("posterior_sampling", {}, made).seed == 2
    assert build_agent("posterior_sampling", {"seed": 7}, made).seed == 7
    assert build_agent("ucbvi", {"cover": "per_ball", "radius": 0.3}, made).cover.radius == 0.3
    assert build_agent("uc3rl", {"scale": [0.1, 0.0]}, made).scale == (0.1, 0.0)


@pytest.mark.parametrize("kind", AGENTS)
def test_what_an_episode_can_earn_is_told_only_if_the_file_says_so(kind):
    made = bandit_for(kind)
    made.world.return_range = (0.0, 0.75)  # in one step
    told = {"world": (0.0, 0.75), "numbers": (0.25, 0.5), "nothing": None}
    given = {"world": {"return_range": "world"}, "numbers": {"return_range": [0.25, 0.5]}, "nothing": {}}
    assert {name: build_agent(kind, options, made).return_range for name, options in given.items()} == told
    del made.world.return_range
    assert build_agent(kind, given["world"], made).return_range is getattr(made.world, "return_range", None)
    with pytest.raises(ValueError, match="`return_range` must be an interval"):
        build_agent(kind, {"return_range": "word"}, made)


def test_what_is_known_gets_no_bonus():
    assert build_agent("uc3rl", {"scale": 0.1}, setting("decoy")).scale == (0.1, 0.0)
    assert build_agent("rm_ucdd", {"scale": 0.1}, setting("lock")).scale == (0.0, 0.1)


@pytest.mark.parametrize(
    ("kind", "options", "world", "named"),
    [
        ("omg", {"gamma": {"scale": 1.0}}, "linear", "gamma"),
        ("omg", {"oracles": "best"}, "linear", "oracles"),
        ("ucbvi", {"radius": 0.1}, "linear", "radius"),
        ("ucbvi", {"cover": "per_ball"}, "decoy", "cover"),
        ("ucbvi", {"cover": "nearest"}, "linear", "cover"),
        ("feel_good", {}, "lower_bound", "reward_oracle"),
    ],
)
def test_impossible_options_are_refused_by_name(kind, options, world, named):
    with pytest.raises(ValueError, match=f"`{named}`"):
        build_agent(kind, options, setting(world))


def test_a_world_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(ValueError, match="tables"):
        build_world("linear", {"states": 10**6}, seed=0, episodes=1)


def test_contexts_that_run_out_are_refused():
    with pytest.raises(ValueError, match="`episodes` must be at most"):
        build_adversary("never_twice", {}, setting("linear"))


def test_required_options_are_marked():
    assert {
        name: [o for o, default in kind.options.items() if default is REQUIRED] for name, kind in ADVERSARIES.items()
    } == {name: ["episodes"] if name == "sorted" else [] for name in ADVERSARIES}


def test_the_nearest_name_is_offered():
    assert nearest("postirior_sampling", AGENTS) == "did you mean 'posterior_sampling'?"
    assert nearest("zzz", ["a", "b"]) == "there are a, b"


def test_a_study_file_names_states_actions_and_features():
    text = """
    episodes = 2
    [worlds.decoy]
    state_names = ["low", "middle", "high"]
    action_names = ["safe", "left", "right"]
    [agents.greedy]
    """
    world = read_plan(text).tasks()[0].setting().world
    assert names_of(world)[:2] == (("low", "middle", "high"), ("safe", "left", "right"))
    with pytest.raises(FileError, match="`action_names` must be 3 texts"):
        read_plan(text.replace('"left", ', ""))
