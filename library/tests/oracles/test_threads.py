"""Asking is pure from any thread: eight threads that ask an oracle get the answers of one."""

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from library.tests.oracles.adapters.catalogue import DIMENSION, build, episode, every_adapter
from library.tests.oracles.catalogue import SAMPLED, build_oracle
from library.tests.oracles.test_state import taught
from omg_cmdp import oracles
from omg_cmdp.contexts import ContextCache

HORIZON, THREADS = 3, 8


@pytest.fixture(autouse=True)
def busy():
    """Let threads take turns often, so that a race is met."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def answers(oracle, context):
    drawn = oracle.draws(context, 3, np.random.default_rng(0))
    return [table.tobytes() for table in (oracle.predict(context), oracle.uncertainty(context), drawn)]


def ask_at_once(oracle, contexts, rounds):
    """Compare what threads are told, each beginning with another context, with what one thread is told."""
    alone = [answers(copy.deepcopy(oracle), context) for context in contexts]

    def ask(first):
        order = [(first + step) % len(contexts) for step in range(rounds)]
        return sum(answers(oracle, contexts[place]) != alone[place] for place in order)

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(ask, range(THREADS))) == 0


@pytest.mark.parametrize("name", SAMPLED)
def test_threads_are_told_what_one_is_told(name, rng):
    contexts, oracle = build_oracle(name, HORIZON)
    ask_at_once(taught(oracle, contexts, rng), contexts, rounds=12)


LARGE = {"states": 30, "actions": 5, "horizon": HORIZON, "dimension": 12}


@pytest.mark.parametrize(
    "make",
    [
        lambda: oracles.LinearRewards(**LARGE),
        lambda: oracles.LinearRewards(**LARGE, rate="proven", delay=2),
        lambda: oracles.LinearRewards(
            **LARGE, shared=True, features=lambda c: np.multiply.outer(np.sin(np.ones((30, 5))), c)
        ),
        lambda: oracles.SoftmaxDynamics(**LARGE | {"states": 10}),
    ],
    ids=["linear", "linear, late", "shared linear", "softmax"],
)
def test_large_tables_are_told_whole(make, rng):
    """Tables large enough that compiled code, which holds no lock, is at work in several threads at once."""
    oracle = make()
    contexts = [vector / np.linalg.norm(vector) for vector in rng.normal(size=(16, LARGE["dimension"]))]
    for context in contexts:
        pairs = rng.integers(10, size=HORIZON), rng.integers(5, size=HORIZON)
        rewards = isinstance(oracle, oracles.RewardOracle)
        oracle.update(context, *pairs, rng.random(HORIZON) if rewards else rng.integers(10, size=HORIZON))
    ask_at_once(oracle, contexts, rounds=80)


def test_a_cache_counts_right_while_threads_push_each_other_out():
    cache = ContextCache(2)

    def ask(seed):
        order = np.random.default_rng(seed).integers(6, size=5000).tolist()
        return sum(cache.get(context, lambda x: (x,)) != (context,) for context in order)

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(ask, range(THREADS))) == 0
    assert cache._total == len(cache) == 2


@every_adapter
def test_foreign_models_are_asked_by_several_threads(kind, rng):
    oracle = build(kind)
    for _ in range(12):
        oracle.update(*episode(rng, kind))
    ask_at_once(oracle, [rng.random(DIMENSION) for _ in range(5)], rounds=6)
