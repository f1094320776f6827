"""The pictures of the guide, computed by the package: `python -m docs.figures [NAME ...]` writes them beside this file.

Colours are those of Okabe and Ito; what a colour shows, hatches, letters or line styles show as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import omg_cmdp as omg
import omg_lab
from docs.figures.league import league
from docs.figures.readers import reader_lab, reader_library, reader_trial
from lab.league.page import TABLE
from omg_cmdp.drawing import COLOURS, FAINT, INK
from omg_cmdp.mdp import TabularMDP
from omg_lab.reports.drawing import logarithmic
from omg_lab.worlds.treatment import STAGES, TREATMENTS

FOLDER = Path(__file__).parent
BLUE, RED, GREEN, PINK, YELLOW, SKY = COLOURS
STYLE: dict[Any, Any] = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.0,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.12,
    "font.size": 9.0,
    "legend.frameon": False,
    "savefig.facecolor": "white",  # a page may be dark
    "svg.fonttype": "none",
    "svg.hashsalt": "omg-cmdp",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


def contextual_mdp() -> Figure:
    """Twelve patients: what is best for each, and what one policy for all of them loses."""
    trial = omg_lab.worlds.TreatmentTrial(context_count=12, seed=1)
    truths = sorted((trial.truth(patient) for patient in trial.contexts), key=lambda truth: truth.best[1])
    average = trial.space.mdp(
        transitions=np.mean([truth.mdp.transitions for truth in truths], axis=0),
        rewards=np.mean([truth.mdp.rewards for truth in truths], axis=0),
    )
    common, _ = omg.optimal_policy(average)
    drawn, (left, right) = canvas(1.0, 1.5)
    looks = {"wait": ("#DDDDDD", "W"), "drug A": (SKY, "A"), "drug B": (YELLOW, "B")}
    for row, truth in enumerate(truths):
        for column, stage in enumerate(("mild", "moderate", "severe")):
            colour, letter = looks[TREATMENTS[truth.best[0][0, STAGES.index(stage)].argmax()]]
            left.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
            left.text(column + 0.5, row + 0.5, letter, ha="center", va="center")
    left.set(xlim=(0, 3), ylim=(0, len(truths)), xticks=[0.5, 1.5, 2.5], yticks=[], ylabel="patients")
    left.set_xticklabels(["mild", "moderate", "severe"])
    left.set_title("best treatment at the first visit\nW wait, A drug A, B drug B")
    left.spines[:].set_visible(False)
    left.tick_params(length=0)

    rows = np.arange(len(truths)) + 0.5
    best, shared = [truth.best[1] for truth in truths], [truth.value(common) for truth in truths]
    right.hlines(rows, shared, best, color=FAINT, linewidth=2.0)
    right.plot(best, rows, "o", color=BLUE, label="a policy for each")
    right.plot(shared, rows, "D", color=RED, markerfacecolor="white", label="one policy for all")
    right.set(ylim=(0, len(truths)), yticks=[], xlabel="expected reward of six visits")
    right.set_title("what the context is worth")
    right.legend(loc="lower right")
    return drawn


def occupancy_measure() -> Figure:
    """Where a patient is at each visit, under two policies."""
    trial = omg_lab.worlds.TreatmentTrial(context_count=12, seed=1)
    truth = max((trial.truth(patient) for patient in trial.contexts), key=_value_of_treating)
    waiting = np.zeros((6, 5, 3))
    waiting[..., 0] = 1.0
    drawn, panels = canvas(1.0, 1.0)
    colours = ("#F2F2F2", SKY, YELLOW, RED, INK)  # from light to dark, also in black and white
    for axes, title, policy in zip(panels, ("always wait", "best policy"), (waiting, truth.best[0]), strict=True):
        shares = truth.occupancy(policy).sum(axis=2)
        base = np.zeros(len(shares))
        for state, stage in enumerate(STAGES):
            style = {"color": colours[state], "edgecolor": INK, "linewidth": 0.5, "width": 0.85}
            axes.bar(np.arange(1, 7), shares[:, state], bottom=base, label=stage, **style)
            base += shares[:, state]
        axes.set(xlabel="visit", ylim=(0, 1), title=f"{title}: value {truth.value(policy):.2f}")
        axes.set_xticks(range(1, 7))
    panels[0].set_ylabel("probability of the stage")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawn


def _value_of_treating(truth: Any) -> float:
    waiting = np.zeros((6, 5, 3))
    waiting[..., 0] = 1.0
    return float(truth.regret(waiting))


def barrier() -> Figure:
    """Three arms: how γ shares them out, and what exploring costs."""
    means = np.array([0.8, 0.6, 0.3])
    arms = TabularMDP(transitions=np.ones((1, 3, 1)), rewards=means[None], horizon=1)
    gammas = np.geomspace(1.0, 1e4, 41)
    shares = np.array([omg.plan(arms, gamma=float(gamma)).policy[0, 0] for gamma in gammas])
    drawn, (left, right) = canvas(1.0, 1.0)
    for arm, (colour, line) in enumerate(zip((BLUE, RED, GREEN), ("-", "--", "-."), strict=True)):
        left.plot(gammas, shares[:, arm], color=colour, linestyle=line, linewidth=2.0, label=f"mean {means[arm]}")
    logarithmic(left.xaxis, left.yaxis, right.xaxis, right.yaxis)
    left.set(xlabel="γ", ylabel="probability of the arm", ylim=(1e-4, 1.5))
    left.set_title("the plan: no arm is given up")
    left.legend(loc="lower left")
    right.plot(gammas, 2.0 / gammas, color=FAINT, linestyle="--", linewidth=2.0, label="bound (n - H)/γ")
    right.plot(gammas, 0.8 - shares @ means, color=BLUE, linewidth=2.0, label="lost in the model")
    right.set(xlabel="γ", ylabel="reward")
    right.set_title("its price")
    right.legend(loc="lower left")
    return drawn


def oracle() -> Figure:
    """What an oracle predicts, and how sure it is, after 3, 30 and 300 episodes."""
    learned = omg.oracles.LinearRewards(states=1, actions=1, dimension=1, horizon=2, intercept=False)
    generator = np.random.default_rng(3)
    x, seen = np.linspace(-1.0, 1.0, 41), 0
    drawn, panels = canvas(1.0, 1.0, 1.0, height=2.6)
    for axes, episodes in zip(panels, (3, 30, 300), strict=True):
        while seen < episodes:
            context = generator.uniform(-1.0, 1.0, size=1)
            learned.update(context, [0, 0], [0, 0], generator.random(2) < 0.5 + 0.35 * context[0])
            seen += 1
        mean = np.array([learned.predict([each])[0, 0] for each in x])
        spread = np.sqrt([learned.uncertainty([each])[0, 0] for each in x])
        axes.fill_between(x, mean - spread, mean + spread, color=SKY, alpha=0.5, linewidth=0, label="± expected error")
        axes.plot(x, mean, color=BLUE, linewidth=2.0, label="prediction")
        axes.plot(x, 0.5 + 0.35 * x, color=INK, linestyle="--", linewidth=1.2, label="truth")
        axes.set(xlabel="context", ylim=(0, 1), title=f"after {episodes} episodes")
    panels[0].set_ylabel("mean reward")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn


def regret() -> Figure:
    """A world with a decoy: values by episode, and what three agents have lost."""
    world = omg_lab.worlds.Decoy(reward_class_size=128)
    adversary, episodes, shown = omg.adversaries.IID(world.contexts), 600, 32
    ledgers = {name: omg.simulate(world, adversary, agent, episodes) for name, agent in _agents(world).items()}
    drawn, (left, right) = canvas(1.0, 1.0)
    t = np.arange(1, shown + 1)
    best, value = (ledgers["OMG"].column(name)[:shown] for name in ("optimal_value", "value"))
    left.vlines(t, value, best, color=SKY, linewidth=3.0, label="regret")
    left.plot(t, best, "_", color=INK, markersize=6, label="best policy")
    left.plot(t, value, ".", color=BLUE, markersize=5, label="OMG's policy")
    left.set(xlabel="episode", ylabel="expected reward", ylim=(0.7, None), title="the first episodes of OMG")
    left.legend(loc="lower right")
    looks = {"greedy": (RED, "--"), "uniform": (GREEN, "-."), "OMG": (BLUE, "-")}
    for name, (colour, line) in looks.items():
        total = ledgers[name].regret.cumsum()
        right.plot(np.arange(1, episodes + 1)[::5], total[::5], color=colour, linestyle=line, linewidth=2.0, label=name)
    right.set(xlabel="episode", ylabel="regret so far", title="what each agent has lost")
    right.legend(loc="upper left")
    return drawn


def _agents(world: Any) -> dict[str, Any]:
    def oracles() -> tuple[Any, Any]:
        horizon = world.space.horizon
        return (
            omg.oracles.FiniteRewards(world.reward_functions, horizon=horizon),
            omg.oracles.FiniteDynamics(world.transition_functions, horizon=horizon),
        )

    return {
        "OMG": omg.OMG(world.space, *oracles()),
        "greedy": omg.agents.Greedy(world.space, *oracles()),
        "uniform": omg.agents.Uniform(world.space),
    }


def exploration_rules() -> Figure:
    """A hub with two desks and a noisy room: where two rules spend their weights, having seen the same episodes."""
    world, rules = omg_lab.worlds.NoisyRoom(), {"uncertainty": "by uncertainty", "adaptive": "by gain, the default"}
    sizes = {"states": world.space.states, "actions": world.space.actions, "horizon": world.space.horizon}
    drawn, panels = canvas(1.0, 1.0, height=3.4)
    for axes, (rule, title) in zip(panels, rules.items(), strict=True):
        rewards, dynamics = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes, support=world.support)
        agent, generator = omg.OMG(world.space, rewards, dynamics, gamma=rule), np.random.default_rng(0)
        anything = np.full((world.space.horizon, world.space.states, world.space.actions), 1.0 / world.space.actions)
        for _ in range(10):
            agent.update(world.sample(0, anything, generator))
        decision = agent.decide(0)
        spent = np.where(decision.occupancy > 0.0, decision.weights, 0.0).sum(axis=0)
        axes.imshow(spent / spent.sum(), cmap="Blues", vmin=0.0, vmax=0.5, aspect="auto")
        for (state, action), share in np.ndenumerate(spent / spent.sum()):
            colour = "white" if share > 0.25 else INK
            axes.text(action, state, f"{100.0 * share:.0f}", ha="center", va="center", color=colour, fontsize=7.0)
        axes.set_xticks(range(3), ["action 0", "action 1", "action 2"])
        axes.set_yticks(range(world.space.states), ["hub", *(f"room {i}" for i in range(1, world.space.states))])
        axes.set_title(f"{title}\n% of all weights")
        axes.tick_params(length=0)
    return drawn


def canvas(*widths: float, height: float = 2.9) -> tuple[Figure, Any]:
    """Return a figure with panels side by side."""
    drawn = Figure(figsize=(7.0, height))
    FigureCanvasAgg(drawn)
    return drawn, drawn.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]


PICTURES: tuple[Callable[[], Figure], ...] = (
    contextual_mdp,
    occupancy_measure,
    barrier,
    oracle,
    regret,
    exploration_rules,
    reader_library,
    reader_lab,
    reader_trial,
    *([league] if TABLE.exists() else []),  # of runs that take hours
)


def write(folder: Path, names: Collection[str] = ()) -> list[Path]:
    """Draw the pictures of these names into `folder`, all if there are none; the same bytes for the same numbers."""
    written = []
    for picture in [each for each in PICTURES if not names or each.__name__ in names]:
        path = folder / f"{picture.__name__.replace('_', '-')}.svg"
        with matplotlib.rc_context(STYLE):
            picture().savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        text = re.sub(r"<metadata>.*?</metadata>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"(\d\.\d\d)\d+", r"\1", text).replace("DejaVu Sans", "system-ui")
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(FOLDER, sys.argv[1:]):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")
