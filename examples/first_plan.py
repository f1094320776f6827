"""A first plan: a treatment that suits some patients, planned for three of them and drawn in the terminal.

Disease stages are states, drugs are actions; the patient's features (the context) decide how well each drug works.
"""

import numpy as np

import omg_cmdp as omg

STAGES = ("healthy", "mild", "severe")
DRUGS = ("wait", "drug A", "drug B")
VISITS = 6


def patient(age: float, marker: float) -> omg.TabularMDP:
    """Return the disease of a patient; age and marker in [0, 1]. Drug A works with the marker, drug B without it."""
    cure = np.array([0.1, 0.1 + 0.7 * marker, 0.1 + 0.7 * (1.0 - marker)])
    burden = np.array([0.0, 0.2, 0.2 + 0.3 * age])
    transitions = np.zeros((3, 3, 3))
    for stage in range(3):
        better, worse = max(stage - 1, 0), min(stage + 1, 2)
        for drug in range(3):
            transitions[stage, drug, better] += cure[drug]
            transitions[stage, drug, worse] += (1.0 - cure[drug]) * (0.2 + 0.3 * age)
            transitions[stage, drug, stage] += (1.0 - cure[drug]) * (0.8 - 0.3 * age)
    rewards = np.clip(np.array([1.0, 0.6, 0.1])[:, None] - burden, 0.0, 1.0)
    return omg.TabularMDP(transitions=transitions, rewards=rewards, horizon=VISITS, start=[0.0, 0.5, 0.5])


def bar(share: float, width: int = 12) -> str:
    """Return `share` in [0, 1] as a bar of blocks."""
    filled = round(share * width)
    return "█" * filled + "·" * (width - filled)


def main() -> None:
    """Plan for three patients."""
    print("The first visit's policy, by stage of disease. A larger γ explores less.\n")
    for age, marker in ((0.2, 0.9), (0.2, 0.5), (0.9, 0.1)):
        mdp = patient(age, marker)
        best = omg.optimal_policy(mdp)[1]
        for gamma in (10.0, 1000.0):
            plan = omg.plan(mdp, gamma=gamma, tolerance=1e-9)
            value = omg.policy_value(mdp, plan.policy)
            print(f"age {age:.1f}, marker {marker:.1f}, γ = {gamma:g}: value {value:.3f} of {best:.3f}")
            for stage in (1, 2):
                shares = "   ".join(
                    f"{drug} {bar(share)} {share:4.0%}"
                    for drug, share in zip(DRUGS, plan.policy[0, stage], strict=True)
                )
                print(f"  {STAGES[stage]:8s}{shares}")
            print(f"  {plan.status.value} γ·gap <= {plan.certificate:.1e} after {plan.iterations} iterations\n")


if __name__ == "__main__":
    main()
