"""Who recovers, and does treatment help? Transitions learned by River, one visit after the other.

A patient, the context, has an age and a marker, both in [0, 1]. States are ill and healthy, actions wait and treat.
"""

import numpy as np
from numpy.typing import NDArray
from river import linear_model, optim

from omg_cmdp.oracles.adapters import RiverDynamics

PATIENTS = {"young with marker": (0.2, 0.9), "young without": (0.2, 0.1), "old with marker": (0.9, 0.9)}


def course(age: float, marker: float) -> NDArray[np.float64]:
    """Return the transitions (2, 2, 2): logistic in age, marker, state and treatment."""
    healthy = 1.0 / (1.0 + np.exp(1.0 + 2.0 * age - 2.0 * marker - np.array([[0.0, 1.5], [2.5, 4.0]])))
    return np.stack([1.0 - healthy, healthy], axis=-1)


def report(oracle: RiverDynamics, patients: int) -> float:
    """Print predictions beside the truth; return the mean squared error."""
    print(f"After {patients} patients: how likely the ill recover, predicted (true) ± root of the uncertainty")
    for name, patient in PATIENTS.items():
        predicted, true = oracle.predict(patient)[0, :, 1], course(*patient)[0, :, 1]
        rows = zip(("wait", "treat"), predicted, true, oracle.uncertainty(patient)[0], strict=True)
        print(f"  {name:18s}", *(f"{action} {p:.2f} ({truth:.2f}) ± {u**0.5:.2f}   " for action, p, truth, u in rows))
    return float(np.mean([(oracle.predict(patient) - course(*patient)) ** 2 for patient in PATIENTS.values()]))


def main() -> None:
    """Learn from 1000 patients with six visits each."""
    rng = np.random.default_rng(0)
    model = linear_model.LogisticRegression(optimizer=optim.SGD(0.02))
    oracle = RiverDynamics(model, states=2, actions=2, horizon=6)
    before = report(oracle, 0)
    for age, marker in rng.random((1000, 2)).tolist():
        actions, states = rng.integers(2, size=6), [0]
        for action in actions:
            states.append(int(rng.random() < course(age, marker)[states[-1], action, 1]))
        oracle.update((age, marker), states=states[:-1], actions=actions, next_states=states[1:])
    after = report(oracle, 1000)
    print(f"The trained oracle is {'closer to' if after < before else 'further from'} the truth.")


if __name__ == "__main__":
    main()
