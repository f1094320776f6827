"""`python -m tests.warm_up PACKAGE ...`: run the examples of packages, which compiles most of what tests call.

`make test` does this beside the installation of all else, in two processes. What examples print is not looked at, and
modules whose packages are not installed yet are left out: pytest runs the same examples later.
"""

import contextlib
import doctest
import importlib
import io
import pkgutil
import sys


def run_examples(name):
    """Run the examples of a package and of all modules in it."""
    with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
        module = importlib.import_module(name)
        doctest.testmod(module)
        for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
            run_examples(found.name)


def explore_within_budgets():
    """Play two episodes with a budget: no example explores within one."""
    import omg_cmdp as omg
    from omg_lab.worlds import Reminders

    world = Reminders()
    omg.simulate(world, omg.adversaries.IID(world.contexts), omg.OMG.for_world(world), episodes=2)


if __name__ == "__main__":
    for package in sys.argv[1:]:
        run_examples(package)
    if "omg_cmdp.agents" in sys.argv:
        explore_within_budgets()
