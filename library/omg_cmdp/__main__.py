"""`python -m omg_cmdp warm-up`: compile before the first decision is asked for, for instance into an image."""

from __future__ import annotations

import argparse

from omg_cmdp.runs.warm_up import warm_up


def main(arguments: list[str] | None = None) -> None:
    """Run the command, and say what was compiled."""
    parser = argparse.ArgumentParser(prog="python -m omg_cmdp", description=__doc__)
    parser.add_argument("command", choices=["warm-up"])
    parser.parse_args(arguments)
    count = warm_up()
    print(f"{count} functions compiled" if count else "nothing to compile: all was in the cache")


if __name__ == "__main__":
    main()
