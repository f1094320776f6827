"""Several episodes under way: what docs/theory.md says about oracles whose model is not up to date."""

import math

import numpy as np
import pytest

from omg_cmdp.oracles import FiniteRewards

HORIZON, BATCH, ROUNDS, SIZE = 3, 4, 60, 8


def functions(rng):
    """Return a class of N constant functions for each of three contexts."""
    return {context: rng.choice([0.0, 0.25, 0.75, 1.0], size=(SIZE, 1, 1)) for context in range(3)}


def against(oracle, context, steps):
    """Return what the oracle predicts, and the outcomes that cost this prediction most."""
    prediction = float(oracle.predict(context)[0, 0])
    return prediction, np.full(steps, 1.0 if prediction < 0.5 else 0.0)


def regret(tables, history):
    """Return the loss of the predictions minus that of the best function, over (context, prediction, outcomes)."""
    loss = sum(float(((prediction - rewards) ** 2).sum()) for _, prediction, rewards in history)
    losses = [sum(float(((tables[c][i] - rewards) ** 2).sum()) for c, _, rewards in history) for i in range(SIZE)]
    return loss - min(losses)


@pytest.mark.parametrize(("rate", "members"), [("proven", SIZE), ("guarded", 2 * SIZE)])
def test_batches_cost_as_much_as_longer_episodes(rng, rate, members):
    tables, history = functions(rng), []
    steps = BATCH * HORIZON
    oracle = FiniteRewards(tables, horizon=steps, rate=rate)
    for t in range(ROUNDS):
        prediction, rewards = against(oracle, t % 3, steps)
        oracle.update(t % 3, [0] * steps, [0] * steps, rewards)
        history.append((t % 3, prediction, rewards))
    assert regret(tables, history) <= steps / 2 * math.log(members)


def test_overlapping_episodes_are_shared_among_copies(rng):
    tables, history = functions(rng), []
    copies = [FiniteRewards(tables, horizon=HORIZON, rate="proven") for _ in range(BATCH)]
    for t in range(ROUNDS * BATCH):
        context, oracle = int(rng.integers(3)), copies[t % BATCH]
        if t >= BATCH:  # the episode of B rounds ago arrives just before this one is planned
            earlier, _, rewards = history[t - BATCH]
            oracle.update(earlier, [0] * HORIZON, [0] * HORIZON, rewards)
        history.append((context, *against(oracle, context, HORIZON)))
    assert regret(tables, history) <= BATCH * HORIZON / 2 * math.log(SIZE)


def overlapping_regret(members, batch, rounds):
    """Return the regret of one forecaster of rate 2/B that learns each outcome B rounds late; outcomes are all 1."""
    members, late, seen = np.array(members), [], np.zeros(len(members))
    loss, losses = 0.0, (members - 1.0) ** 2
    for _ in range(rounds):
        weights = np.exp(-2.0 / batch * (seen - seen.min()))
        mix = [-0.5 * math.log(float(weights @ np.exp(-2.0 * (members - y) ** 2))) for y in (0.0, 1.0)]
        loss += (0.5 + (mix[0] - mix[1]) / 2.0 - 1.0) ** 2
        late.append(losses)
        if len(late) >= batch:
            seen = seen + late.pop(0)
    return loss - rounds * losses.min()


@pytest.mark.parametrize("batch", [2, 5, 20])
def test_one_copy_is_not_enough_for_overlapping_episodes(batch):
    # B = 1 is the textbook's case. For B > 1 a model that is always B rounds old costs more than one that is renewed
    # every B rounds, though both miss B episodes at most.
    bound = batch / 2 * math.log(2)
    assert overlapping_regret([0.0, 0.1], 1, 2000) <= 0.5 * math.log(2)
    assert bound < overlapping_regret([0.0, 0.1], batch, 200 * batch) < 1.1 * bound
