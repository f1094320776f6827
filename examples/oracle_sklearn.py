"""Which of two drugs helps whom? Rewards learned by scikit-learn, a linear model with features of patient and drug.

A patient, the context, has an age and a marker, both in [0, 1]. Drug A works with the marker, drug B without it.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from omg_cmdp.oracles import RefittedRewards

PATIENTS = {"young with marker": (0.2, 0.9), "young without": (0.2, 0.1), "old with marker": (0.9, 0.9)}


def relief(age: float, marker: float) -> NDArray[np.float64]:
    """Return how often each drug helps: the rewards (1, 2) of one state and two actions."""
    return np.array([[0.2 + 0.6 * marker, 0.8 - 0.3 * age - 0.4 * marker]])


def features(patient: tuple[float, float]) -> NDArray[np.float64]:
    """Return (1, 2, 6): each drug has its own (1, age, marker), so that a linear model can tell them apart."""
    return np.kron(np.eye(2), np.array([1.0, *patient]))[None]


def report(oracle: RefittedRewards, patients: int) -> float:
    """Print predictions beside the truth; return the mean squared error."""
    print(f"After {patients} patients: how often a drug helps, predicted (true) ± root of the uncertainty")
    for name, patient in PATIENTS.items():
        rows = zip("AB", oracle.predict(patient)[0], relief(*patient)[0], oracle.uncertainty(patient)[0], strict=True)
        print(f"  {name:18s}", *(f"drug {drug} {f:.2f} ({truth:.2f}) ± {u**0.5:.2f}   " for drug, f, truth, u in rows))
    return float(np.mean([(oracle.predict(patient) - relief(*patient)) ** 2 for patient in PATIENTS.values()]))


def main() -> None:
    """Learn from 1000 patients with three visits each."""
    rng = np.random.default_rng(0)
    oracle = RefittedRewards(Ridge(), states=1, actions=2, horizon=3, features=features)
    before = report(oracle, 0)
    for age, marker in rng.random((1000, 2)).tolist():
        drugs = rng.integers(2, size=3)
        helped = rng.random(3) < relief(age, marker)[0, drugs]
        oracle.update((age, marker), states=[0, 0, 0], actions=drugs, rewards=helped)
    after = report(oracle, 1000)
    print(f"The trained oracle is {'closer to' if after < before else 'further from'} the truth.")


if __name__ == "__main__":
    main()
