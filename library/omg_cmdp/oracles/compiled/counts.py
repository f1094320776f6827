"""The compiled loops of counts."""

import math

from omg_cmdp.jit import compiled


@compiled
def count_transitions(counts, priors, states, actions, outcomes, evidence):
    """Count transitions in `counts` (S, A, S), one after the other.

    Before a transition is counted, the logarithm of its probability under each of `priors` (K, S, A, S),
    (n(s') + α(s'))/(n + Σα), is added to `evidence` (K,).
    """
    for i in range(len(states)):
        state, action, outcome = states[i], actions[i], outcomes[i]
        row = counts[state, action]
        for k in range(len(priors)):
            pseudo = priors[k, state, action]
            evidence[k] += math.log((row[outcome] + pseudo[outcome]) / (row.sum() + pseudo.sum()))
        row[outcome] += 1.0
