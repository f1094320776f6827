"""Others' software on the same tables, beside ours: dynamic programs, a quadratic program, an agent's episode."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import omg_cmdp as omg
from library.tests.planning.peer import _flow
from omg_cmdp.mdp.occupancy import reachable_states

from .report import Report, Row
from .timing import GAMMA, TOLERANCE, Measurement, clock, interleave, medians, random_mdp

SIZES = ((5, 5, 3), (10, 10, 3), (20, 50, 5))
"""(H, S, A)."""
EPISODES = 200
"""Episodes of an agent in one measurement."""

Anchor = tuple[str, str, Callable[[omg.TabularMDP], Callable[[], Any]]]


def quantecon(mdp: omg.TabularMDP) -> Callable[[], Any]:
    """Return a call of QuantEcon's backward induction; it gives the values (H + 1, S) first."""
    from quantecon.markov import DiscreteDP, backward_induction

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no discount: fine for a finite horizon
        problem = DiscreteDP(mdp.rewards.copy(), mdp.transitions.copy(), 1.0)
    return lambda: backward_induction(problem, mdp.horizon)[0]


def mdptoolbox(mdp: omg.TabularMDP) -> Callable[[], Any]:
    """Return a call of MDPtoolbox's finite-horizon solver; it gives the values (S, H + 1)."""
    from mdptoolbox.mdp import FiniteHorizon

    with contextlib.redirect_stdout(io.StringIO()):  # it warns of a missing discount by printing
        solver = FiniteHorizon(mdp.transitions.transpose(1, 0, 2).copy(), mdp.rewards.copy(), 1.0, mdp.horizon)

    def run() -> Any:
        solver.run()
        return solver.V.T

    return run


def piqp(mdp: omg.TabularMDP, backend: str) -> Callable[[], Any]:
    """Return a call of PIQP on the Newton step of the barrier program at the uniform policy; setting up is left out.

    It is min ½·dqᵀ·D⁻¹·dq - gᵀ·dq subject to B·dq = 0, with D = γ·q² and the gradient g = r + 1/(γ·q).
    """
    import piqp as package

    support = reachable_states(mdp)[:, :, None] & mdp.admissible
    q = omg.occupancy_measure(mdp, np.full(support.shape, 1.0 / mdp.actions))[support]
    flow = sp.block_array(_flow(mdp, support)[0], format="csc")
    solver = package.SparseSolver()
    solver.settings.kkt_solver = getattr(package.KKTSolver, backend)
    gradient = np.broadcast_to(mdp.rewards, support.shape)[support] + 1.0 / (GAMMA * q)
    curvature = sp.diags_array(1.0 / (GAMMA * q * q), format="csc")
    solver.setup(sp.csc_matrix(curvature), -gradient, sp.csc_matrix(flow), np.zeros(flow.shape[0]))

    def run() -> Any:
        solver.solve()
        return solver.result.x

    return run


def ucbvi(mdp: omg.TabularMDP) -> Callable[[], Any]:
    """Return a call that plays episodes of rlberry-scool's UCBVI."""
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents import UCBVIAgent

    logging.disable()
    agent = UCBVIAgent(FiniteMDP(mdp.rewards, mdp.transitions, 0), horizon=mdp.horizon, gamma=1.0, seeder=0)
    return lambda: [agent._run_episode() for _ in range(EPISODES)]


def ours(mdp: omg.TabularMDP) -> Callable[[], Any]:
    """Return a call that plays episodes of OMG with the default rule and counts."""
    sizes: dict[str, Any] = {"states": mdp.states, "actions": mdp.actions, "horizon": mdp.horizon}
    agent = omg.OMG(mdp.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    run = omg.Run(_Known(mdp), omg.adversaries.IID(["any"]), agent)
    return lambda: run.advance(EPISODES)


class _Known(omg.ContextualMDP):
    """A world of one MDP."""

    def __init__(self, mdp: omg.TabularMDP) -> None:
        self.space, self._mdp = mdp.space, mdp

    def mdp(self, context: Any) -> omg.TabularMDP:
        return self._mdp


ANCHORS: tuple[Anchor, ...] = (
    ("quantecon", "QuantEcon, backward induction", quantecon),
    ("mdptoolbox", "MDPtoolbox, backward induction", mdptoolbox),
    ("piqp", "PIQP, one Newton step", lambda mdp: piqp(mdp, "sparse_ldlt")),
    ("piqp", "PIQP by stages, one Newton step", lambda mdp: piqp(mdp, "sparse_multistage")),
    ("rlberry_scool", "UCBVI of rlberry-scool, 200 episodes", ucbvi),
)


def anchors(*, quick: bool) -> Report:
    """Measure ours beside every package that is installed, in turns; dynamic programs must agree with ours."""
    rows, details = [], []
    for horizon, states, actions in SIZES:
        mdp, name = random_mdp(horizon, states, actions, seed=0), f"({horizon},{states},{actions})"
        iterations = omg.plan(mdp, GAMMA, tolerance=TOLERANCE).iterations
        calls: dict[str, Callable[[], Any]] = {
            "our backward induction": lambda mdp=mdp: omg.optimal_policy(mdp),  # type: ignore[misc]
            "our plan": lambda mdp=mdp: omg.plan(mdp, GAMMA, tolerance=TOLERANCE),  # type: ignore[misc]
        }
        for package, title, make in ANCHORS:
            if importlib.util.find_spec(package) is None or (states > 20 and package == "rlberry_scool"):
                continue
            calls[title] = make(mdp)
            if "backward" in title:
                difference = abs(float(calls[title]()[0][0]) - omg.optimal_policy(mdp)[1])
                rows.append(Row(f"{name} {title}: difference of values", difference, at_most=1e-12))
        if states <= 20:
            calls["OMG with counts, 200 episodes"] = ours(mdp)
        measured: list[Measurement] = [clock(title, call) for title, call in calls.items()]
        time = medians(interleave(3 if quick else 9, *measured))
        rows += [Row(f"{name} {title}", 1e6 * seconds, "µs") for title, seconds in time.items()]
        rows.append(Row(f"{name} our plan, one of {iterations} iterations", 1e6 * time["our plan"] / iterations, "µs"))
        details.append({"size": name, "iterations": iterations, "median": time})
    return Report(title="Anchors: other packages on the same tables", rows=rows, details=details)
