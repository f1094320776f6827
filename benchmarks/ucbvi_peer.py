"""A stand-alone script for an environment of its own: seconds per episode of rlberry-scool's UCBVI on a chain.

rlberry-scool needs an older Gymnasium than the rest of the benchmarks, so `make bench` installs it in .venv/rlberry.
"""

import logging
import sys
import time
import warnings


def main(horizon: int, length: int, episodes: int, rounds: int) -> None:
    """Print one time for each round, the first round apart, which compiles."""
    from rlberry_scool.agents import UCBVIAgent
    from rlberry_scool.envs.finite import Chain

    for number in range(rounds + 1):
        agent = UCBVIAgent(Chain(L=length), horizon=horizon, gamma=1.0)
        began = time.perf_counter()
        agent.fit(budget=episodes)
        if number:
            print((time.perf_counter() - began) / episodes, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    main(*(int(argument) for argument in sys.argv[1:]))
