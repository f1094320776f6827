"""Plans, decisions and lessons of every kind of compiled code; `python -m library.tests.plain_python` prints them."""

import json

import numpy as np

import omg_cmdp as omg
from library.tests.agents.catalogue import KINDS, ORACLES, SPACES
from library.tests.agents.models import an_episode


def results():
    """Return policies of plans with loops, BLAS and sparse rows, and of agents after two episodes."""
    rng, found = np.random.default_rng(0), []
    for states, sparse in ((3, False), (16, False), (48, True)):
        rows = np.eye(states)[rng.integers(states, size=(states, 2))]
        transitions = rows if sparse else rng.dirichlet(np.full(states, 0.1), (states, 2))
        mdp = omg.TabularMDP(transitions=transitions, rewards=rng.random((states, 2)), horizon=3)
        for regulariser in ({"gamma": 50.0}, {"uncertainty": np.full((states, 2), 0.1), "floor": 0.01}):
            solution = omg.plan(mdp, tolerance=1e-9, **regulariser)
            assert solution.status is omg.Status.SOLVED
            assert omg.certificate(mdp, solution.policy, solution.values, **regulariser) <= 1e-9
            found += solution.policy.reshape(-1).tolist()
    for name, (contexts, make) in ORACLES.items():
        for kind in KINDS if name == "finite" else ("adaptive", "posterior sampling"):
            agent, rng = KINDS[kind](SPACES["restricted"], *make()), np.random.default_rng(1)
            for context in contexts[:2]:
                agent.update(an_episode(rng, agent.space, context, agent.policy(context)))
            found += agent.policy(contexts[0]).reshape(-1).tolist()
    return found


if __name__ == "__main__":
    print(json.dumps(results()))
