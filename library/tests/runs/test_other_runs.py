"""A file of a run is refused by a run with another world, adversary, list of contexts, agent or delay."""

import inspect

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.runs.worlds import AGENTS, LABELS, SIZE, Own, counts, make_run
from omg_cmdp import adversaries, delays
from omg_cmdp.adversaries import Adversary

CONCRETE = [
    kind
    for kind in vars(adversaries).values()
    if isinstance(kind, type) and issubclass(kind, Adversary) and not inspect.isabstract(kind)
]
CALLS = {
    "contexts": (LABELS, [LABELS[::-1], LABELS[:2], (*LABELS, "a", 2), ("a", 2, ("b", 0.2))]),
    "episodes": (40, [41]),
    "length": (2, [3]),
    "absence": (2, [1, 4]),
    "look": (2, [1, 3]),
}
"""A value of every argument, and others."""


class Any(Own):
    """Knows the labels, and any other."""

    def mdp(self, context):
        rewards = np.random.default_rng([*str(context).encode()]).random((3, 2))
        return self.space.mdp(transitions=self.kernels[0], rewards=rewards)


def run_of(adversary, world=None, make_oracles=None):
    world = world or Any()
    sizes = {**SIZE}
    made = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    return omg.Run(world, adversary, omg.OMG(world.space, *(make_oracles(world) if make_oracles else made), 30.0))


def refused(run, path):
    """Return whether the file is refused, and nothing changes."""
    before = {name: array.tobytes() for name, array in run.state().items()}
    with pytest.raises(ValueError, match="`state` must come from a run with the same settings"):
        run.restore(path)
    return {name: array.tobytes() for name, array in run.state().items()} == before


@pytest.mark.parametrize("kind", CONCRETE, ids=lambda kind: kind.__name__)
def test_another_value_of_any_argument_of_an_adversary_is_refused(kind, tmp_path):
    arguments = inspect.signature(kind).parameters
    assert set(arguments) <= set(CALLS), "give the new argument another value"
    call = {name: CALLS[name][0] for name in arguments}
    run, tried = run_of(kind(**call)), 0
    run.advance(3)
    run.save(tmp_path / "run")
    for name in arguments:
        for value in CALLS[name][1]:
            try:
                other = kind(**call | {name: value})
            except ValueError:
                continue  # fewer contexts than candidates, or one of them twice
            assert refused(run_of(other), tmp_path / "run")
            tried += 1
    assert tried >= len(arguments)
    for other in CONCRETE:
        if other is not kind:
            own = {name: CALLS[name][0] for name in inspect.signature(other).parameters}
            assert refused(run_of(other(**own)), tmp_path / "run")
    again = run_of(kind(**call))
    again.restore(tmp_path / "run")
    assert again.ledger.episodes == 3


class Cautious(Own):
    """Pays halves in the place of coins."""

    def draw_reward(self, mean, uniform):
        return mean


class OneTable(Own):
    """Differs from its base in the last context alone."""

    def __init__(self):
        super().__init__()
        self.rewards[-1] = self.rewards[-1][::-1]


OneTable.__name__ = Own.__name__
MASKED = np.array([[True, False], [True, True], [True, True]])
WORLDS = {
    "seed": lambda: Own(seed=1),
    "admissible": lambda: Own(admissible=MASKED),
    "noise": Cautious,
    "one table": OneTable,
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_file_of_another_world_is_refused(name, tmp_path):
    run = run_of(adversaries.IID(LABELS), Own(), counts)
    run.advance(3)
    run.save(tmp_path / "run")
    assert refused(run_of(adversaries.IID(LABELS), WORLDS[name](), counts), tmp_path / "run")


def test_a_world_that_lists_its_contexts_is_told_by_them(tmp_path):
    worlds = []
    for contexts in (LABELS, LABELS[:2], LABELS):
        world = Any()
        world.contexts = contexts
        worlds.append(world)
    run_of(adversaries.IID(["a"]), worlds[0]).save(tmp_path / "run")
    assert refused(run_of(adversaries.IID(["a"]), worlds[1]), tmp_path / "run")
    run_of(adversaries.IID(["a"]), worlds[2]).restore(tmp_path / "run")


@pytest.mark.parametrize("delay", [3, delays.UpTo(4), delays.Reversed(4)])
def test_another_delay_is_refused(delay, tmp_path):
    run = make_run("fixed, counts", delay=4)
    run.advance(6)
    run.save(tmp_path / "run")
    assert refused(make_run("fixed, counts", delay=delay), tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ledger/forgotten", value) for value in (np.inf, np.nan, "x", [1, 2])),
        *(("ledger/contexts", [text]) for text in ("{}", "[" * 100_000, '{"list": 1}')),
        *(("recent/lengths", value) for value in ([1e300], [-1.0], [0.5])),
        ("agent/reward/examples", np.inf),
    ],
)
def test_a_state_that_no_run_has_written_is_refused(name, value):
    run = make_run("fixed, counts")
    before = {each: array.tobytes() for each, array in run.state().items()}
    assert name in run.state()
    with pytest.raises(ValueError, match="`state` must"):
        run.load_state({**run.state(), name: np.array(value)})
    assert {each: array.tobytes() for each, array in run.state().items()} == before


def test_the_seed_of_a_run_is_harmless(tmp_path):
    """The streams are in the file."""
    runs = [make_run("adaptive, linear", seed=seed) for seed in (0, 0, 9)]
    runs[0].advance(5)
    runs[0].save(tmp_path / "run")
    for run in runs[1:]:
        run.restore(tmp_path / "run")
    for run in runs:
        run.advance(5)
    np.testing.assert_array_equal(runs[0].ledger.regret, runs[2].ledger.regret)
    np.testing.assert_array_equal(runs[0].ledger.regret, runs[1].ledger.regret)


class Weekly(delays.Delay):
    def late(self, episode, generator):
        return 6 - (episode - 1) % 7


class Cycling(Adversary):
    def __init__(self, labels):
        self.labels = labels

    def context(self, episode, view, generator):
        return self.labels[episode % len(self.labels)]


class Declared(Cycling):
    settings = ("labels",)


def test_parts_of_a_users_own_continue_and_the_file_says_what_it_cannot_tell(tmp_path):
    world, kind = Own(), AGENTS["fixed, counts"]

    def run(adversary, **more):
        return omg.Run(world, adversary, kind[2](world.space, *kind[1](world)), **more)

    with pytest.warns(UserWarning, match=r"adversary Cycling [0-9a-f]{16}\? cannot be checked"):
        run(Cycling(LABELS)).save(tmp_path / "run")
    run(Cycling(LABELS[:2])).restore(tmp_path / "run")
    world.contexts = LABELS
    run(Declared(LABELS)).save(tmp_path / "run")
    assert refused(run(Declared(LABELS[:2])), tmp_path / "run")
    with pytest.warns(UserWarning, match=r"run: delay [0-9a-f]{16}\? cannot be checked"):
        run(Declared(LABELS), delay=Weekly()).save(tmp_path / "run")
    run(Declared(LABELS), delay=Weekly()).restore(tmp_path / "run")
