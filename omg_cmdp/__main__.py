"""`omg-cmdp`, or `python -m omg_cmdp`: the command line, or what to install for it."""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich", "pyarrow")


def main() -> None:
    """Run the command line."""
    try:
        from omg_cmdp.cli import app
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        print(f"omg-cmdp needs {error.name}: pip install 'omg-cmdp[studies]'", file=sys.stderr)
        sys.exit(2)
    app()


if __name__ == "__main__":
    main()
