"""`python -m omg_trial.operation.warm_up`: compile everything that a service runs, for an image of a container."""

from __future__ import annotations

from omg_trial.trial_file import EXAMPLE, Trial

COLUMNS = EXAMPLE.replace('labels = ["alone", "with others"]', "[context.columns]\nage = { low = 20, high = 90 }")
"""The example with numbers in the place of labels: other oracles, and other code."""


def main() -> None:
    """Rehearse a trial of each kind: contexts that are labels, and contexts that are records."""
    from omg_trial.rehearsal.report import describe_rehearsal, rehearse

    for text in (EXAMPLE, COLUMNS):
        print(describe_rehearsal(rehearse(Trial.parse(text), people=2))[0], flush=True)


if __name__ == "__main__":
    main()
