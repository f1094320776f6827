"""`python -m tests.warm_up`: run the examples of library and rivals, which compiles most of what tests call.

`make test` does this beside the installation of all else. What examples print is not looked at, and modules whose
packages are not installed yet are left out: pytest runs the same examples later.
"""

import contextlib
import doctest
import importlib
import io
import pkgutil


def run_examples(name):
    """Run the examples of a package and of all modules in it."""
    with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
        module = importlib.import_module(name)
        doctest.testmod(module)
        for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
            run_examples(found.name)


if __name__ == "__main__":
    for package in ("omg_cmdp", "omg_lab.rivals"):
        run_examples(package)
