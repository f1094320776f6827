"""A stand-alone script for an environment of its own: seconds per episode of rlberry-scool's UCBVI on a chain.

rlberry-scool needs an older Gymnasium than the rest of the benchmarks, so `make bench` installs it in .venv/rlberry.
It plays one round with a new agent for every line that it reads, so that the caller can take turns with other agents.
"""

import logging
import sys
import time
import warnings


def main(horizon: int, length: int, episodes: int) -> None:
    """Print an empty line once compiled, then one measured time for each line of stdin."""
    from rlberry_scool.agents import UCBVIAgent
    from rlberry_scool.envs.finite import Chain

    def seconds() -> float:
        agent = UCBVIAgent(Chain(L=length), horizon=horizon, gamma=1.0)
        began = time.perf_counter()
        agent.fit(budget=episodes)
        return (time.perf_counter() - began) / episodes

    seconds()
    print(flush=True)
    for _ in sys.stdin:
        print(seconds(), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    main(*(int(argument) for argument in sys.argv[1:]))
