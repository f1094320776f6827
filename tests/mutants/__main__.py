"""`python -m tests.mutants [GROUP...] [--count N] [--seed K...]`: change the code, and see whether tests fail.

Why not mutmut or cosmic-ray: they copy the tree, and start Python, numba and the web framework anew for every mutant,
which takes ten times as long as the tests. Here a warm process forks, with `runner.py`.

A survivor that cannot change any answer is listed with the reason in `equivalent.toml`, and does not count.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY, TRIAL = "library/omg_cmdp", "trial/omg_trial"


@dataclasses.dataclass(frozen=True)
class Group:
    """Modules, and the tests that are run against them, beside their doctests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    plain: bool = False
    """Whether compiled code is changed, so that it must run as plain Python; all other code is compiled."""


def _under(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


GROUPS = {
    "log": Group(
        (f"{TRIAL}/log",),
        _under(
            "trial/tests",
            *("test_log.py", "test_database.py", "test_damage.py", "test_foreign.py", "test_replay.py"),
            "test_failures.py",
        ),
    ),
    "desk": Group(
        (f"{TRIAL}/desk.py",),
        _under(
            "trial/tests",
            *("test_desk.py", "test_failures.py", "test_damage.py", "test_occasions.py", "test_clock.py"),
            *("test_snapshots.py", "test_erasure.py"),
        ),
    ),
    "decisions": Group(
        (f"{TRIAL}/decisions.py",),
        _under(
            "trial/tests",
            *("test_desk.py", "test_failures.py", "test_occasions.py", "test_clock.py", "test_allowances.py"),
            *("test_episode_budgets.py", "test_people.py"),
        ),
    ),
    "chance": Group(
        ("library/omg_cmdp/sampling.py", f"{TRIAL}/keys/marks.py"),
        ("library/tests/test_sampling.py", "trial/tests/test_desk.py", "trial/tests/test_foreign.py"),
    ),
    "floor": Group((f"{TRIAL}/trial_file/floor.py",), ("trial/tests/test_floor.py", "trial/tests/test_desk.py")),
    "certificate": Group(
        (f"{LIBRARY}/planning/certificate.py", f"{LIBRARY}/planning/rounding.py"),
        (
            "library/tests/test_refusals.py",
            *_under("library/tests/planning", "test_certificate.py", "test_plan.py", "test_budgets.py", "test_fuzz.py"),
        ),
    ),
    "ledger": Group(
        (f"{LIBRARY}/runs/ledger.py",),
        _under(
            "library/tests/runs",
            *("test_ledger.py", "test_simulate.py", "test_display.py", "test_budgets.py", "test_ceilings.py"),
            *("test_resuming.py", "test_interrupts.py"),
        ),
    ),
    "off-policy": Group((f"{LIBRARY}/logs/off_policy",), ("library/tests/logs",)),
    "ceiling": Group(
        _under(
            f"{LIBRARY}/theory/ceiling",
            *("ceiling.py", "counted.py", "largest.py", "linear.py", "listed.py", "sets.py", "spaces.py", "unions.py"),
        ),
        ("library/tests/theory/ceiling", "library/tests/runs/test_ceilings.py"),
    ),
    "ceiling-loops": Group(
        (f"{LIBRARY}/theory/ceiling/compiled.py",),
        _under(
            "library/tests/theory/ceiling",
            "test_largest.py",
            *(
                f"test_sets.py::test_{name}"
                for name in (
                    "adding_a_constant_to_values_adds_it_to_the_highest_mean",
                    "the_highest_mean_is_that_of_the_best_row_nearby",
                    "of_two_outcomes_the_highest_mean_is_where_the_divergence_is_the_radius",
                    "no_row_nearby_has_a_higher_mean",
                    "what_was_never_seen_may_be_anything_possible",
                    "a_certain_outcome_that_fails_refutes_a_function_at_once",
                    "the_evidence_of_counts_is_that_of_a_dirichlet_prior",
                    "functions_that_differ_by_the_step_are_charged_at_their_step",
                )
            ),
        ),
        plain=True,
    ),
}


def run(name: str, count: int, seeds: list[int]) -> int:
    """Try mutants of a group in this process; print what survived, and the score for each seed."""
    group = GROUPS[name]
    files = [each for module in group.modules for each in sorted((ROOT / module).rglob("*.py"))] + [
        ROOT / module for module in group.modules if module.endswith(".py")
    ]
    if group.plain:
        from omg_cmdp import jit

        own, compiled = set(map(str, files)), jit.compiled
        jit.compiled = lambda function: function if function.__code__.co_filename in own else compiled(function)
    import pytest

    from tests.mutants.runner import Runner

    runner = Runner(files, count, seeds)
    quiet = ("-q", "-p", "no:cacheprovider", "--no-header", "--rootdir", str(ROOT))
    code = pytest.main([*quiet, *group.tests, *(str(file) for file in files)], plugins=[runner])
    if code not in (0, 1):
        return int(code)
    explained = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text(encoding="utf-8"))
    for seed, chosen in runner.chosen.items():
        equivalent = sum(each in runner.survivors and each.name in explained for each in chosen)
        counted, killed = len(chosen) - equivalent, sum(each not in runner.survivors for each in chosen)
        endless = sum(each in runner.endless for each in chosen)
        score = f"{killed} of {counted} killed ({100 * killed / max(1, counted):.0f} %), {endless} by time"
        print(f"{name}: {score}, {equivalent} equivalent, seed {seed}", flush=True)
    return 0


def main() -> int:
    """Try the groups that were asked for, each in a process of its own."""
    command = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    command.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP", help=", ".join(GROUPS))
    command.add_argument("--count", type=int, default=60, help="mutants of each group (60)")
    command.add_argument("--seed", type=int, nargs="+", default=[0], help="of the samples; tests run once for all")
    asked, codes = command.parse_args(), []
    for name in asked.groups or GROUPS:
        child = os.fork()
        if not child:
            os._exit(run(name, asked.count, asked.seed))
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return max(map(abs, codes))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
