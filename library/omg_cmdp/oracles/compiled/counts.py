"""The compiled loops of counts."""

import math

from omg_cmdp.jit import compiled


@compiled
def mean_rewards(visits, sums, squares, means, variances):
    """Fill the means (S, A) of `visits` rewards, with 0 and 1 as two more, and the variances of their posterior."""
    for i in range(visits.size):
        count = visits.flat[i] + 2.0
        mean = (sums.flat[i] + 1.0) / count
        means.flat[i] = mean
        variances.flat[i] = max((squares.flat[i] + 1.0) / count - mean * mean, 0.0) / (count + 1.0)


@compiled
def beta_shapes(means, variances, shapes):
    """Fill the shapes (S, A, 2) of the Beta distributions with these means and variances m(1 - m)/(total + 1)."""
    for s in range(len(means)):
        for a in range(means.shape[1]):
            mean = means[s, a]
            total = mean * (1.0 - mean) / max(variances[s, a], 1e-300) - 1.0
            shapes[s, a, 0], shapes[s, a, 1] = total * mean, total * (1.0 - mean)


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
