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


@compiled
def beta_shapes(visits, sums, squares, shapes):
    """Fill both shapes (S, A, 2) of the Beta distribution that has mean and variance of the posterior of mean rewards.

    These are m and (Σr²/n - m²)/(n + 1), with the pseudo-rewards 0 and 1 among the n.
    """
    states, actions = visits.shape
    for s in range(states):
        for a in range(actions):
            examples = visits[s, a] + 2.0
            mean = (sums[s, a] + 1.0) / examples
            variance = max((squares[s, a] + 1.0) / examples - mean * mean, 0.0) / (examples + 1.0)
            # The total of a Beta distribution follows from its variance, m(1-m)/(total + 1).
            total = mean * (1.0 - mean) / max(variance, 1e-300) - 1.0
            shapes[s, a, 0], shapes[s, a, 1] = total * mean, total * (1.0 - mean)
