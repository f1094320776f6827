"""The protocol of "A contextual bandit bake-off" (Bietti, Agarwal and Langford, arXiv:1802.04064, JMLR 2021).

Definitions: albietz/cb_bakeoff at 9dc52e9, run_vw_job.py (options and grids) and eval_loss.py (normalisation).

A stream is one pass over a multiclass data set in a shuffled order: choose a class, learn only whether it was right.
The measure is the progressive validation loss, the share of wrong choices from the first example on, and relative to a
learner that is told every label (`--oaa`), (loss - supervised)/supervised. As there, every algorithm has the learning
rate (and here the constant, the reduction and the costs of right and wrong, 0 and 1 or -1 and 0) that is best on the
data set in hindsight; ours have nothing to tune. The bake-off has 525 sets of OpenML; here are the four that
scikit-learn ships, small ones, features scaled to [0, 1] for all. It has no SquareCB; VW's is added.

Vowpal Wabbit runs as it does there, `--cbify K --cb_explore_adf`: it draws its actions and counts its losses itself.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from omg_cmdp import OMG
from omg_cmdp.agents import Agent, Greedy, PosteriorSampling
from omg_cmdp.jit import one_thread
from omg_cmdp.validation import FloatArray
from omg_lab.data.classification import DATASETS, examples

from ..peers.classification import Ours, play
from ..peers.kept import Kept
from ..peers.world import Line

RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""The bake-off's, but for 0.001, 0.003 and 0.01, which are too slow for sets of this size."""
COSTS = ((0, 1), (-1, 0))
"""Of right and wrong."""
SUPERVISED = "told every label (VW, --oaa)"
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "greedy": ("--epsilon 0", "--epsilon 0 --cb_type dr"),
    "ε-greedy": ("--epsilon 0.02", "--epsilon 0.02 --cb_type dr", "--epsilon 0.05"),
    "explore first": ("--first 20", "--first 100"),
    "bag": ("--bag 4 --greedify", "--bag 16 --greedify", "--bag 4"),
    "online cover": ("--cover 16 --psi 0.1 --nounif --cb_type dr", "--cover 4 --psi 0.1 --nounif --cb_type dr"),
    "RegCB, elimination": ("--regcb --mellowness 0.1", "--regcb --mellowness 0.001"),
    "RegCB, optimistic": ("--regcbopt --mellowness 0.1", "--regcbopt --mellowness 0.001"),
    "SquareCB": ("--squarecb", "--squarecb --gamma_scale 1000"),
}
GUESTS = tuple(f"VW, {name}" for name in ALGORITHMS)
OURS: dict[str, Callable[..., Agent]] = {"OMG": OMG, "posterior sampling": PosteriorSampling, "greedy, ours": Greedy}


def available() -> bool:
    """Return whether Vowpal Wabbit is installed."""
    return importlib.util.find_spec("vowpalwabbit") is not None


def written(features: FloatArray) -> list[str]:
    """Return the examples (n, d) in Vowpal Wabbit's format, without labels.

    Features have names: numbers are used as hashes, so that those of different actions collide.
    """
    return [" ".join(f"x{i}:{x:g}" for i, x in enumerate(row) if x) for row in features.tolist()]


def loss_of_vw(dataset: str, options: str, *, seed: int, size: int | None = None) -> float:
    """Return Vowpal Wabbit's own progressive validation loss on the first `size` examples of an order.

    It is the share of wrong choices, whatever costs it learns from.
    """
    features, labels = examples(dataset)
    order = np.random.default_rng(seed).permutation(len(labels))[:size]
    texts = written(features[:, :-1])  # it has a constant of its own
    package: Any = importlib.import_module("vowpalwabbit")
    workspace = package.Workspace(f"{options} --quiet --random_seed {seed + 1}")
    for example in order:
        workspace.learn(f"{labels[example] + 1} | {texts[example]}")
    loss = float(workspace.get_sum_loss()) / len(order)
    workspace.finish()
    return loss


def loss_of_ours(dataset: str, agent: str, *, seed: int, size: int | None = None) -> float:
    """Return the same for one of `OURS`, with linear rewards."""
    features, labels = examples(dataset)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))[:size]
    learner = Ours(OURS[agent], features, int(labels.max()) + 1)
    with one_thread():
        return 1.0 - play(learner, order, labels, generator.random(len(order)))


def measure(kept: Kept, *, quick: bool) -> list[Line]:
    """Return the losses of 5 orders, and what they are relative to the supervised learner's."""
    seeds, size, rates = (range(1), 40, RATES[1:2]) if quick else (range(5), None, RATES)
    lines = []
    for dataset in ("iris", "wine") if quick else DATASETS:
        actions = int(examples(dataset)[1].max()) + 1
        explored = f"--cbify {actions} --cb_explore_adf"

        def played(loss: Callable[..., float], name: str, agent: str, dataset: str = dataset) -> list[float]:
            play = functools.partial(loss, dataset, name, size=size)
            return kept.each(play, seeds, "bake-off", dataset, name, size, agent=agent)

        losses = {agent: played(loss_of_ours, agent, agent) for agent in OURS}
        tuned: dict[str, list[list[float]]] = {}
        if available() or not kept.whole:
            tuned = {
                agent: [
                    played(loss_of_vw, options_of_vw(f"{explored} {options}", rate, costs), agent)
                    for options, rate, costs in itertools.product(ALGORITHMS[agent.removeprefix("VW, ")], rates, COSTS)
                ]
                for agent in GUESTS
            }
            told = [f"--oaa {actions} --learning_rate {rate:g}" for rate in rates]
            tuned[SUPERVISED] = [played(loss_of_vw, options, SUPERVISED) for options in told]
        losses.update({name: min(filter(None, found), key=np.mean, default=[]) for name, found in tuned.items()})
        lines += [Line(dataset, agent, values) for agent, values in losses.items()]
    return lines + relative(lines)


def options_of_vw(options: str, rate: float, costs: tuple[int, int]) -> str:
    """Return the options with a learning rate and costs, whose range RegCB must know."""
    whole = f"{options} --learning_rate {rate:g} --loss0 {costs[0]} --loss1 {costs[1]}"
    return whole + (f" --cb_min_cost {costs[0]} --cb_max_cost {costs[1]}" if "--regcb" in options else "")


def relative(lines: list[Line]) -> list[Line]:
    """Return (loss - supervised)/supervised of the mean losses, averaged over the data sets."""
    told = {line.world: _mean(line) for line in lines if line.agent == SUPERVISED and line.values}
    agents = dict.fromkeys(line.agent for line in lines if line.world in told and line.agent != SUPERVISED)
    return [
        Line("mean relative loss", agent, [float(np.mean([_mean(x) / told[x.world] - 1.0 for x in played]))])
        for agent in agents
        if (played := [x for x in lines if x.agent == agent and x.values and x.world in told])
    ]


def _mean(line: Line) -> float:
    return float(np.mean(line.values))
