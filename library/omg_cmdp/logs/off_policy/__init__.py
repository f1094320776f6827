"""Off-policy estimates: what a policy would be worth, from episodes played by another one.

    importance_sampling         propensities; weights multiply with every step, so the horizon must be short
    doubly_robust               the same, around the values of a model
    marginal_sampling           propensities, and contexts that come again or features: weights do not multiply
    marginal_doubly_robust      the same, around the values of a model
    fitted_q                    no propensities, but a log whose policy did not learn: Q fitted backwards from the log
    model_value                 a model's own word, which the log cannot support

`evaluate` makes a table of all of them, and says in a sentence what to believe. Each module states what its estimators
assume. All of them assume that nothing unobserved influenced both an action and its outcome, that whatever the policy
may do had a chance in the log, and that neither policy nor model learned from the same episodes: train on `log[:n]`,
estimate on `log[n:]`.
"""
