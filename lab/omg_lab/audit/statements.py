"""The catalogue of an audit: every statement that it checks, as `left <= right`, and what would make it red.

An identity a = b is stated as |a - b| <= 0. What `docs/theory.md` corrects is stated as corrected; section numbers are
those of Levy, Cohen, Cassel and Mansour (2023), theorems and errata (E1, E2, ...) those of `docs/theory.md`.
"""

from __future__ import annotations

import dataclasses
import math

KINDS = {
    "claim": "what a decision says of itself, computed again from the model and the policy",
    "plan": "what follows for a plan with a barrier",
    "oracle": "what an oracle says of itself",
    "assumption": "what the theorem assumes of the world; it may be false of one",
    "probable": "what holds with high probability: the concentration lemmas, and the theorem",
    "arithmetic": "true of any policy and any model: red only if the software computes wrongly",
}
"""The kinds of statements, in the order of a table."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """A claim, where it is made, and what would make it red.

    Parameters
    ----------
    name : str
        Its name in tables.
    kind : str
        One of `KINDS`.
    claim : str
        The inequality, as a formula.
    where : str
        The place in the paper or in the guide where it is proven.
    fails_if : str
        The mistake that would make it red.
    failure : float
        The probability, in units of delta, with which it may fail in a run; 0 if it must always hold.
    most : float
        The left side never exceeds this times H, or T·H for the run; a right side beyond that says nothing.

    Examples
    --------
    >>> STATEMENTS["weights"].claim
    'γ > 0, w > 0 on Z'
    """

    name: str
    kind: str
    claim: str
    where: str
    fails_if: str
    failure: float = 0.0
    most: float = math.inf


PLAY = "the agent plays something other than the plan it reports, or the certificate is too small"
ERROR = "the software is wrong, or this proof"
NOISE = "the model knows the noise of an episode before it is played"

STATEMENTS = {
    entry.name: entry
    for entry in (
        Statement("played", "claim", "actions were drawn from π; π is in its mixture", "Algorithm 1",
                  "another policy was played than the decision shows"),
        Statement("model", "claim", "f̂ in [0, 1], P̂ distributions, start and actions of the space", "§3 (E11)",
                  "a table is out of range, or is one of another space"),
        Statement("support", "claim", "q̂ > 0 exactly on Z", "Algorithm 1 (E1)",
                  "a reachable, admissible tuple is never played, or an unreachable one is claimed"),
        Statement("weights", "claim", "γ > 0, w > 0 on Z", "Algorithm 1", "a weight or γ is not a positive number"),
        Statement("occupancy", "claim", "q̂ is the occupancy of π in the model", "Algorithm 1",
                  "the occupancy, the model or the policy is not the one of the plan"),
        Statement("certificate", "claim", "γ·(L(q̃) - L(q̂)) <= certificate", "docs/planner.md",
                  "the policy is further from the best plan for this model, γ and w than it says"),
        Statement("precision", "claim", "certificate <= 1/16", "§6, condition of the corollary",
                  "there is no certificate, or it is too large for the theorem"),

        Statement("optimality", "plan", "Σ m·d/q̂ = Σ m - (V̂^{π*} - V̂^π)", "§5, suboptimality of π* in M̂ (E9)", PLAY),
        Statement("plan gap", "plan", "V̂* - V̂^π <= Σ m - Σ_h min m", "docs/theory.md", PLAY, most=1.0),
        Statement("Theorem A", "plan", "regret <= Σ m·(1 + q̂ - 2d) + ¼·Σ q̂·(f*-f̂)²/m, P* known", "docs/theory.md",
                  PLAY, most=1.0),
        Statement("Theorem B", "plan", "the same with err, plus Σ q̂·(P*-P̂)(V*-V^π)", "docs/theory.md", PLAY, most=1.0),
        Statement("Theorem B, value", "plan", "V* - V̂^π <= Σ m + ¼·Σ q̂·err²/m", "docs/theory.md", PLAY, most=1.0),
        Statement("known dynamics", "plan", "regret <= (n-H)/γ + (γ/4)·Σ q̂·(f*-f̂)², P* known", "docs/theory.md",
                  PLAY, most=1.0),
        Statement("iterates", "plan", "Σ (q̂/q̃ - 1)² <= 4γε if γε <= 1 - log 2, else (γε + √((γε)² + 2γε))²",
                  "§6, iterates' difference (E5)", PLAY),
        Statement("approximate plan", "plan", "plan gap <= n/γ - Σ d/(2γq̂) + 2·√(εγH)", "§6, its corollary (E6)",
                  PLAY, most=1.0),
        Statement("regret, from errors", "plan", "regret <= Σ_t Σ m + Σ_t C_t/min m + value error", "docs/theory.md",
                  PLAY, most=1.0),

        Statement("charge, rewards", "oracle", "Σ (f̂ - r)² is what the oracle was charged", "Algorithm 1",
                  "the model is not the oracle's: stale, of another context, or made up"),
        Statement("charge, dynamics", "oracle", "-Σ log(P̂ + 1e-150) is what the oracle was charged", "Algorithm 1",
                  "the model is not the oracle's: stale, of another context, or made up"),
        Statement("oracle regret, rewards", "oracle", "loss - best loss <= regret_bound", "§3, assumption",
                  "the oracle breaks its bound"),
        Statement("oracle regret, dynamics", "oracle", "loss - best loss <= regret_bound", "§3, assumption",
                  "the oracle breaks its bound"),
        Statement("delayed regret, rewards", "oracle", "loss of what was played - best loss <= delayed_regret_bound",
                  "docs/oracles.md, late outcomes", "the oracle breaks its bound, where feedback is late"),
        Statement("delayed regret, dynamics", "oracle", "loss of what was played - best loss <= delayed_regret_bound",
                  "docs/oracles.md, late outcomes", "the oracle breaks its bound, where feedback is late"),
        Statement("realizability, rewards", "assumption", "min over the class of max |f - f*| = 0", "§3, assumption",
                  "no function of the class is the truth in every context met"),
        Statement("realizability, dynamics", "assumption", "min over the class of max |P - P*| = 0", "§3, assumption",
                  "no function of the class is the truth in every context met"),

        Statement("Freedman", "probable", "Σ_t E_t - excess_t <= Σ_t Var_t/(8H) + 8H·log(2/δ)",
                  "appendix, Freedman's inequality", NOISE, 0.5, most=2.0),
        Statement("square loss", "probable", "E_sq <= 2·R_sq + 16H·log(2/δ)", "§5, concentration (E3)", NOISE,
                  0.5, 1.0),
        Statement("log loss", "probable", "E_hel <= R_log + 2H·log(2H/δ)", "§5, concentration", NOISE, 0.5, 2.0),
        Statement("theorem, corrected", "probable", "regret <= Σ_t Σ m + C/min m + value error", "docs/theory.md",
                  f"{PLAY}, or {NOISE}", 1.0, 1.0),
        Statement("corollary", "probable", "the same with the oracles' proven bounds for R_sq and R_log",
                  "§4, finite classes (E2)", "a realizability or an oracle regret is red, or the theorem", 1.0, 1.0),
        Statement("theorem, exact", "probable", "regret <= 31γH⁴(..) + HSAT/γ + .. + what the certificates leave",
                  "§4, theorem", f"{PLAY}, or {NOISE}", 1.0, 1.0),
        Statement("theorem, printed", "probable", "regret <= 62γH⁴(..) + HSAT/γ + ..", "§6, theorem",
                  f"{PLAY}, or {NOISE}", 1.0, 1.0),

        Statement("optimum", "arithmetic", "V^π <= V*", "definition of regret", ERROR),
        Statement("hellinger", "arithmetic", "‖P* - P̂‖₁² <= 4·D²", "§5, after the definition of D²", ERROR),
        Statement("optimum error", "arithmetic", "V* - V̂^{π*} = Σ d·err", "appendix, value-difference lemma (E8)",
                  ERROR),
        Statement("policy error", "arithmetic", "V̂^π - V^π = Σ q·((f̂ - f*) + (P̂ - P*)V̂^π)",
                  "appendix, value-difference lemma", ERROR),
        Statement("decomposition", "arithmetic", "regret = optimum error + plan gap + policy error",
                  "§5, the three sums", ERROR),
        Statement("measure, rewards", "arithmetic", "Σ q̂·(f̂-f*)² <= e·E_sq + (9e/4)·H²·E_hel",
                  "appendix, rewards lemma (E7)", ERROR, most=1.0),
        Statement("measure, distances", "arithmetic", "Σ q̂·‖P̂-P*‖₁² <= (4e + 9e·H²)·E_hel",
                  "appendix, dynamics lemma (E7)", ERROR, most=4.0),
        Statement("measure, dynamics", "arithmetic", "Σ q̂·D² <= (e + (9e/2)·H²)·E_hel", "docs/theory.md (E7)",
                  ERROR, most=2.0),
        Statement("policy error, parts", "arithmetic", "V̂^π - V^π <= Σ q·(f̂-f*) + H·Σ q·‖P̂-P*‖₁",
                  "appendix, cost for π_t, first lemma", ERROR, most=1.0),
        Statement("policy error, rewards", "arithmetic", "Σ q·(f̂-f*) <= √(H·E_sq)",
                  "appendix, cost for π_t, second lemma", ERROR, most=1.0),
        Statement("policy error, dynamics", "arithmetic", "Σ q·‖P̂-P*‖₁ <= 2·√(H·E_hel)",
                  "appendix, cost for π_t, third lemma", ERROR, most=2.0),
        Statement("policy error, bound", "arithmetic", "V̂^π - V^π <= √(H·E_sq) + H·√(H·E_hel)",
                  "§5, cost for π_t (E4)", ERROR, most=1.0),
        Statement("policy errors, sum", "arithmetic", "Σ_t V̂^π - V^π <= √(TH·E_sq) + H·√(TH·E_hel)",
                  "§5, cost for π_t (E4)", ERROR, most=1.0),
        Statement("variance", "arithmetic", "Var[Σ (f̂-r)² - (f*-r)²] <= 4H·Σ q·(f̂-f*)²",
                  "appendix, claim for Freedman", ERROR),
        Statement("optimum error, bound", "arithmetic", "V* - V̂^{π*} <= Σ m·d²/q̂ + ¼·Σ q̂·err²/m",
                  "§5, cost for π* (E10)", ERROR, most=1.0),
        Statement("cost for π*, in the model", "arithmetic",
                  "V* - V̂^{π*} <= Σ d/(γq̂) + (γ/2)·Σ q̂·(f̂-f*)² + (γH²/2)·Σ q̂·‖P̂-P*‖₁²",
                  "appendix, cost for π*", ERROR, most=1.0),
        Statement("cost for π*", "arithmetic", "V* - V̂^{π*} <= Σ d/(γq̂) + 2γ·E_sq + 29γH⁴·E_hel", "§5, as printed",
                  ERROR, most=1.0),
    )
}  # fmt: skip
"""Everything that an audit can check, by kind."""

Sides = tuple[str, float, float]
"""The name of a statement, its left side and its right side; NaN, or a right side of inf: nothing is shown."""
