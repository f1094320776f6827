"""Off-policy estimates: what a policy would be worth, from episodes played by another one.

    improvement                 use this one: the gain over what was done, with an interval, or a reason why not
    importance_sampling         the value by products of weights alone, which suits short horizons: unbiased, no model
    doubly_robust               the same, around the values of a model of your own
    estimate_propensities       for a log of people's decisions, whose probabilities nobody wrote down

All of them assume that nothing unobserved influenced both an action and its outcome, that whatever the policy may do
had a chance in the log, and that neither policy nor model learned from the same episodes: train on `log[:n]`, estimate
on `log[n:]`.
"""
