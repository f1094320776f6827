"""Worlds, adversaries and agents by the name of their kind, with the options that a configuration may set.

The options of a kind are the arguments of its constructor, save those that a run supplies: space, oracles, contexts,
and unless they are set, seeds and the number of episodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omg_cmdp import adversaries, environments
from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.base import Agent
from omg_cmdp.environments.world import World
from omg_cmdp.studies.agents import AGENTS
from omg_cmdp.studies.kinds import Kind, Options, Setting, kinds, options_of

LARGEST_TABLE = 10**8
"""The most numbers in a table of a world; larger ones are refused before they are made."""


def build_world(kind: str, options: Options, *, seed: int, episodes: int) -> World:
    """Return a world; its structure is drawn by `seed` unless the options hold another."""
    chosen = WORLDS[kind]
    usual = {**chosen.options, "seed": seed, "episodes": episodes, **options}
    given = {name: usual[name] for name in chosen.options}
    _check_size(given)
    world: World = chosen.build(**given)
    return world


def build_adversary(kind: str, options: Options, setting: Setting) -> Adversary:
    """Return an adversary over the contexts of the world."""
    chosen = ADVERSARIES[kind]
    supplied = {"episodes": setting.episodes} if "episodes" in chosen.options else {}
    adversary: Adversary = chosen.build(setting.world.contexts, **supplied | dict(options))
    if isinstance(adversary, adversaries.NeverTwice) and setting.episodes > len(setting.world.contexts):
        count = len(setting.world.contexts)
        raise ValueError(f"`episodes` must be at most the number of contexts {count}, got {setting.episodes}")
    return adversary


def build_agent(kind: str, options: Options, setting: Setting) -> Agent:
    """Return an agent for the world."""
    agent: Agent = AGENTS[kind].build(setting, dict(options))
    return agent


def _check_size(options: Options) -> None:
    """Refuse sizes whose tables would not fit into memory; what is no number is left to the constructor."""

    def size(*names: str) -> int:
        found: list[int] = [options[name] for name in names if isinstance(options.get(name), int)]
        return max([1, *found])

    states, actions = size("states", "positions", "visits"), size("actions", "keys", "risky_arms")
    functions, contexts = size("reward_class_size", "transition_class_size"), size("context_count", "patients")
    wide = functions * states * actions * max(states * size("dimension"), contexts)
    deep = size("horizon", "visits") * states * actions * contexts
    if max(wide, deep) > LARGEST_TABLE:
        largest = max((name for name in options if name not in ("seed", "episodes")), key=size)
        raise ValueError(f"`{largest}` must leave tables of at most {LARGEST_TABLE} numbers, got {max(wide, deep)}")


def _kind(name: str, made: Callable[..., Any], description: str) -> Kind:
    return Kind(name=name, description=description, build=made, options=options_of(made))


WORLDS = kinds(
    _kind("bandit", environments.ContextualBandit, "one state, one step: rewards linear in a vector"),
    _kind("decoy", environments.Decoy, "a safe arm that looks best until somebody tries the others"),
    _kind("linear", environments.LinearWorld, "rewards and transitions linear in the context"),
    _kind("lock", environments.CombinationLock, "find the keys to some positions, or take the exit"),
    _kind("lower_bound", environments.LowerBound, "the instance of the lower bound: one bandit per context and state"),
    _kind("softmax", environments.SoftmaxWorld, "softmax transitions and logistic rewards in the context"),
    _kind("treatment", environments.TreatmentTrial, "a trial of two drugs: the patient decides which of them helps"),
)

ADVERSARIES = kinds(
    _kind("bursts", adversaries.Bursts, "a context comes many times in a row, then stays away"),
    _kind("drifting", adversaries.Drifting, "drawn from a window of contexts that moves on"),
    _kind("iid", adversaries.IID, "contexts drawn uniformly, independently"),
    _kind("largest_disagreement", adversaries.LargestDisagreement, "where the agent's model errs most"),
    _kind("never_twice", adversaries.NeverTwice, "every context once, in order"),
    _kind("sequence", adversaries.Sequence, "all contexts in turn"),
    _kind("sorted", adversaries.Sorted, "each context in one block: what is learned early is never asked again"),
    _kind("worst_regret", adversaries.WorstRegret, "where the agent's regret is largest now"),
)
