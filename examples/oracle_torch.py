"""Which of two drugs helps whom? Rewards learned by a small PyTorch network, without features made by hand.

A patient, the context, has an age and a marker, both in [0, 1]. Drug A works with the marker, drug B without it.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from omg_cmdp.oracles.adapters import TorchRewards

PATIENTS = {"young with marker": (0.2, 0.9), "young without": (0.2, 0.1), "old with marker": (0.9, 0.9)}


def relief(age: float, marker: float) -> NDArray[np.float64]:
    """Return the mean relief by each drug: the rewards (1, 2) of one state and two actions."""
    return np.array([[0.2 + 0.6 * marker, 0.8 - 0.3 * age - 0.4 * marker]])


def report(oracle: TorchRewards, patients: int) -> float:
    """Print predictions beside the truth; return the mean squared error."""
    print(f"After {patients} patients: relief by each drug, predicted (true) ± root of the uncertainty")
    for name, patient in PATIENTS.items():
        rows = zip("AB", oracle.predict(patient)[0], relief(*patient)[0], oracle.uncertainty(patient)[0], strict=True)
        print(f"  {name:18s}", *(f"drug {drug} {f:.2f} ({truth:.2f}) ± {u**0.5:.2f}   " for drug, f, truth, u in rows))
    return float(np.mean([(oracle.predict(patient) - relief(*patient)) ** 2 for patient in PATIENTS.values()]))


def main() -> None:
    """Learn from 500 patients with eight visits each."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)  # the network's first weights
    # Its input is [age, marker, state, drug A, drug B]: context, and one-hot state and action.
    model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    oracle = TorchRewards(
        model,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.03),
        states=1,
        actions=2,
        horizon=8,
    )
    before = report(oracle, 0)
    for age, marker in rng.random((500, 2)).tolist():
        drugs = rng.integers(2, size=8)
        scores = np.clip(rng.normal(relief(age, marker)[0, drugs], 0.1), 0.0, 1.0)
        oracle.update((age, marker), states=np.zeros(8, dtype=int), actions=drugs, rewards=scores)
    after = report(oracle, 500)
    print(f"The trained oracle is {'closer to' if after < before else 'further from'} the truth.")


if __name__ == "__main__":
    main()
