"""Families that others defined, made small and given contexts.

Each function says whose definition it is, what the contexts are, and what is drawn in every seed. None of them was
looked at when anything in OMG's default was chosen.
"""

from __future__ import annotations

import itertools

import numpy as np

from omg_cmdp import TabularMDP
from omg_cmdp.validation import FloatArray

from .world import TableWorld, mdp, one_hot, relabelled


def loop(generator: np.random.Generator) -> TableWorld:
    """Two loops of five states through the start (Dearden, Friedman and Russell 1998).

    The first is walked by any action, and pays ½ at its end. In the second, one action goes on and any other returns to
    the start; it pays 1. Two contexts, whose actions are in another random order in every state.
    """
    moves, rewards = np.zeros((9, 2), dtype=int), np.zeros((9, 2))
    moves[0] = 1, 5
    moves[1:4], moves[4] = np.array([2, 3, 4])[:, None], 0
    moves[5:8, 1], moves[8] = [6, 7, 8], 0
    rewards[4], rewards[8, 1] = 0.5, 1.0
    drawn = (relabelled(generator, rewards, one_hot(moves, 9)) for _ in range(2))
    return TableWorld([mdp(transitions, paid, 20) for paid, transitions in drawn])


def discounting_chain(generator: np.random.Generator) -> TableWorld:
    """The first action chooses one of five chains that pay late (bsuite's discounting chain, H = 20 for 100).

    Chains pay .9 at step 1, 3, 6, 10 or 19, and one of them .99. Two contexts, each with its own best chain.
    """
    late, horizon = np.array([1, 3, 6, 10, 19]), 20
    states = 1 + 5 * (horizon - 1)
    worlds = []
    for best in generator.permutation(5)[:2]:
        moves, rewards = np.zeros((states, 5), dtype=int), np.zeros((states, 5))
        for chain in range(5):
            places = 1 + chain * (horizon - 1) + np.arange(horizon - 1)
            moves[0, chain] = places[0]
            moves[places] = np.append(places[1:], places[-1])[:, None]
            rewards[places[late[chain] - 1]] = 0.99 if chain == best else 0.9
        worlds.append(mdp(one_hot(moves, states), rewards, horizon))
    return TableWorld(worlds, return_range=(0.0, 1.0))


def machine_replacement(generator: np.random.Generator) -> TableWorld:
    """A machine wears out; it runs, or is replaced at a price (Puterman 1994, section 4.7.5).

    Six levels of wear; running earns 1 - (wear/5)² and wears by 0, 1 or 2; replacing earns .2. Rewards are known. Three
    contexts, kinds of machines that wear at their own speed.
    """
    wear = np.arange(6)
    rewards = np.stack([1.0 - (wear / 5.0) ** 2, np.full(6, 0.2)], axis=1)
    worlds = []
    for _ in range(3):
        steps = generator.dirichlet([2.0, 1.0, 0.5])
        transitions = np.zeros((6, 2, 6))
        transitions[:, 1, 0] = 1.0
        for worn, share in enumerate(steps):
            transitions[:, 0] += share * one_hot(np.minimum(wear + worn, 5), 6)
        worlds.append(mdp(transitions, rewards, 15))
    return TableWorld(worlds)


def inventory(generator: np.random.Generator) -> TableWorld:
    """A store orders before an unknown demand (Puterman 1994, section 3.2), with room for four units.

    A unit sold earns 3, ordered costs 1.5, kept costs .3; rewards are their mean, moved into [0, 1]. Three contexts,
    seasons with demands of their own.
    """
    room = 4
    admissible = np.add.outer(np.arange(room + 1), np.arange(room + 1)) <= room
    worlds = []
    for _ in range(3):
        demand = generator.dirichlet(np.ones(room + 1))
        transitions = np.zeros((room + 1, room + 1, room + 1))
        rewards = np.zeros((room + 1, room + 1))
        for stock, order in zip(*np.nonzero(admissible), strict=True):
            for wanted, share in enumerate(demand):
                sold = min(wanted, stock + order)
                left = stock + order - sold
                transitions[stock, order, left] += share
                rewards[stock, order] += share * (3.0 * sold - 1.5 * order - 0.3 * left)
        rewards = np.where(admissible, (rewards + 1.5 * room) / (4.5 * room), 0.0)
        transitions[~admissible] = 0.0
        worlds.append(mdp(transitions, rewards, 10, admissible=admissible))
    return TableWorld(worlds)


def service_rate(generator: np.random.Generator) -> TableWorld:
    """A queue of at most seven, served slowly, or fast at a price (Puterman 1994, section 3.7).

    In a step somebody may arrive and somebody may be served. Earns 1 - length/7, less .25 for fast service: known.
    Three contexts, with their own probabilities of arrival and service.
    """
    length = np.arange(8)
    rewards = np.maximum(1.0 - length[:, None] / 7.0 - np.array([0.0, 0.25]), 0.0)
    worlds = []
    for _ in range(3):
        arrives, slow = generator.uniform(0.2, 0.8), generator.uniform(0.2, 0.5)
        transitions = np.zeros((8, 2, 8))
        for action, served in enumerate((slow, min(slow + 0.4, 0.9))):
            for come, gone in itertools.product((0, 1), (0, 1)):
                share = (arrives if come else 1.0 - arrives) * (served if gone else 1.0 - served)
                transitions[:, action] += share * one_hot(np.clip(length - gone, 0, 7 - come) + come, 8)
        worlds.append(mdp(transitions, rewards, 20, start=np.full(8, 1.0 / 8.0)))
    return TableWorld(worlds)


def gambler(generator: np.random.Generator) -> TableWorld:
    """A gambler stakes part of a capital to reach ten (Sutton and Barto 2018, example 4.3); ten pays 1, once.

    Three contexts, coins of unknown bias. Rewards are known.
    """
    goal, end = 10, 11
    stakes = np.arange(1, goal // 2 + 1)
    capital = np.arange(end + 1)
    admissible = stakes <= np.minimum(capital, goal - capital)[:, None]
    admissible[[0, goal, end], 0] = True  # nothing left to stake, or the end
    rewards = np.zeros((end + 1, len(stakes)))
    rewards[goal, 0] = 1.0
    worlds = []
    for _ in range(3):
        heads = generator.uniform(0.3, 0.7)
        transitions = np.zeros((end + 1, len(stakes), end + 1))
        for held, choice in zip(*np.nonzero(admissible), strict=True):
            if held in (0, goal, end):
                transitions[held, choice, end if held else 0] = 1.0
            else:
                transitions[held, choice, held + stakes[choice]] += heads
                transitions[held, choice, held - stakes[choice]] += 1.0 - heads
        worlds.append(mdp(transitions, rewards, 12, start=4, admissible=admissible))
    return TableWorld(worlds, return_range=(0.0, 1.0))


def blackjack(generator: np.random.Generator) -> TableWorld:
    """Blackjack with an infinite deck (Sutton and Barto 2018, example 5.1; Gymnasium's toy text).

    The context is the dealer's card, one of ten. States are sums from 12 to 21 without and with a usable ace, and the
    end; to stick earns 1 for a win and ½ for a draw. In every seed the deck has its own share of tens.
    """
    tens = generator.uniform(0.2, 0.5)
    deck = np.append(np.full(9, (1.0 - tens) / 9.0), tens)  # ace, 2, …, 10
    cards = range(1, 11)

    def after(total: int, ace: bool, card: int) -> tuple[int, bool]:
        soft = ace or (card == 1 and total + 11 <= 21)
        total += 11 if card == 1 and not ace and total + 11 <= 21 else card
        return (total - 10, False) if total > 21 and soft and ace else (total, soft)

    def number(total: int, ace: bool) -> int:
        return 20 if total > 21 else total - 12 + 10 * ace

    def dealt(total: int, ace: bool) -> FloatArray:
        """Return the dealer's final sums: 17 to 21, and above."""
        if total >= 17:
            return np.asarray(one_hot([min(total, 22) - 17], 6)[0])
        sums = np.array([dealt(*after(total, ace, card)) for card in cards])
        return np.asarray(deck @ sums)

    hit = np.zeros((21, 21))
    hit[20, 20] = 1.0
    for total, ace in itertools.product(range(12, 22), (False, True)):
        for card, share in zip(cards, deck, strict=True):
            hit[number(total, ace), number(*after(total, ace, card))] += share
    start = np.zeros(21)
    for first, second in itertools.product(range(10), range(10)):
        total, ace = after(*after(0, False, cards[first]), cards[second])
        start[number(max(total, 12), ace)] += deck[first] * deck[second]  # below 12 nobody sticks: begins at 12
    transitions = np.stack([one_hot(np.full(21, 20), 21), hit], axis=1)
    worlds = []
    for card in cards:
        final, rewards = dealt(*after(0, False, card)), np.zeros((21, 2))
        for total, ace in itertools.product(range(12, 22), (False, True)):
            below = final[: max(total - 17, 0)].sum() + final[5]
            rewards[number(total, ace), 0] = below + (0.5 * final[total - 17] if total >= 17 else 0.0)
        worlds.append(mdp(transitions, rewards, 4, start=start))
    return TableWorld(worlds, return_range=(0.0, 1.0))


def four_rooms(generator: np.random.Generator) -> TableWorld:
    """Four rooms of four cells with doors between them (Sutton, Precup and Singh 1999, smaller).

    A move succeeds with probability ⅔, and else goes in another direction. The context is the goal's room, one of four;
    its cell is drawn. A goal pays 1 in every step there.
    """
    cells = [*itertools.product((0, 1, 3, 4), (0, 1, 3, 4)), (2, 0), (2, 4), (0, 2), (4, 2)]
    numbers = {cell: place for place, cell in enumerate(cells)}
    moves = np.array(
        [
            [numbers.get((row + down, column + right), here) for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))]
            for here, (row, column) in enumerate(cells)
        ]
    )
    certain = one_hot(moves, len(cells))
    transitions = (2.0 / 3.0 - 1.0 / 9.0) * certain + (1.0 / 9.0) * certain.sum(axis=1, keepdims=True)
    worlds = []
    for row, column in itertools.product((0, 3), (0, 3)):
        goal = numbers[row + int(generator.integers(2)), column + int(generator.integers(2))]
        rewards = np.zeros((len(cells), 4))
        rewards[goal] = 1.0
        there = transitions.copy()
        there[goal] = one_hot([goal], len(cells))[0]
        worlds.append(mdp(there, rewards, 12, start=numbers[2, 0]))
    return TableWorld(worlds)


def mini_grid(generator: np.random.Generator) -> TableWorld:
    """A cell and a direction; turn left, turn right, go forward (MiniGrid's empty room, as in Colosseum, 4 × 4).

    An action fails with probability .1, and nothing moves. Two contexts, whose goals are drawn; a goal pays 1 in every
    step there.
    """
    side, directions = 4, ((0, 1), (1, 0), (0, -1), (-1, 0))
    states = [(*cell, facing) for cell in itertools.product(range(side), range(side)) for facing in range(4)]
    numbers = {state: place for place, state in enumerate(states)}
    moves = np.empty((len(states), 3), dtype=int)
    for place, (row, column, facing) in enumerate(states):
        down, right = directions[facing]
        ahead = min(max(row + down, 0), side - 1), min(max(column + right, 0), side - 1)
        turned = [numbers[row, column, (facing + turn) % 4] for turn in (-1, 1)]
        moves[place] = [*turned, numbers[(*ahead, facing)]]
    transitions = 0.9 * one_hot(moves, len(states)) + 0.1 * np.eye(len(states))[:, None]
    worlds = []
    for corner in generator.permutation([(0, 3), (3, 0), (3, 3)])[:2]:
        rewards = np.array([[float((row, column) == tuple(corner))] * 3 for row, column, _ in states])
        worlds.append(mdp(transitions, rewards, 15))
    return TableWorld(worlds)


def step_count(generator: np.random.Generator) -> TableWorld:
    """Messages to people who walk (Karine and Marlin 2024, StepCountJITAI), on levels of its two hidden burdens.

    A message is none, generic, or for one of two situations. Habituation h falls by .1·h without a message and grows by
    .05 with one; the risk d of disengaging falls by .1·d after a generic or a fitting message and grows by .4 after a
    wrong one; at d = 1 the person is lost. Steps are μ + (1 - h)·(ρ₁ generic, ρ₂ fitting), over μ + ρ₂. Here h has 4
    levels, d 5, and rounding is random, so that means are kept. Three contexts, kinds of people with their own μ, ρ₁
    and ρ₂ around the published 100 (drawn from 50 to 150), 50 and 200.
    """
    h_levels, d_levels = np.linspace(0.0, 1.0, 4), np.linspace(0.0, 1.0, 5)

    def rounded(levels: FloatArray, value: float) -> FloatArray:
        low = min(int(np.searchsorted(levels, value, side="right")) - 1, len(levels) - 2)
        share = (value - levels[low]) / (levels[low + 1] - levels[low])
        return np.asarray([1.0 - share, share] @ one_hot([low, low + 1], len(levels)))

    states = list(itertools.product((0, 1), range(4), range(5)))
    transitions = np.zeros((len(states), 4, len(states)))
    earned = np.zeros((len(states), 4, 3))
    for place, (situation, habit, risk) in enumerate(states):
        h, d = h_levels[habit], d_levels[risk]
        for action in range(4):
            fits = action == situation + 2
            next_h = rounded(h_levels, 0.9 * h if action == 0 else min(1.0, h + 0.05))
            next_d = d if action == 0 else 0.9 * d if action == 1 or fits else min(1.0, d + 0.4)
            spread = rounded(d_levels, next_d) if d < 1.0 else one_hot([4], 5)[0]
            transitions[place, action] = np.einsum("c,h,d->chd", [0.5, 0.5], next_h, spread).ravel()
            earned[place, action] = (d < 1.0) * np.array([1.0, (1.0 - h) * (action == 1), (1.0 - h) * fits])
    worlds = []
    for _ in range(3):
        parts = generator.uniform([50.0, 20.0, 100.0], [150.0, 80.0, 300.0])
        rewards = earned @ parts / (parts[0] + parts[2])
        worlds.append(mdp(transitions, rewards, 20))
    return TableWorld(worlds)


def logistic_mixture(generator: np.random.Generator) -> TableWorld:
    """Multinomial logistic transitions and rewards linear in a context on the simplex (Modi and Tewari 2020).

    Its published setting: 10 states, 5 actions, 5 features, H = 6, contexts from Dirichlet(.35); 100 of them.
    """
    contexts = generator.dirichlet(np.full(5, 0.35), size=100)
    weights = generator.normal(scale=2.0, size=(10, 5, 10, 5))
    means = generator.uniform(size=(10, 5, 5))
    worlds = []
    for context in contexts:
        powers = np.exp(weights @ context)
        worlds.append(mdp(powers / powers.sum(axis=2, keepdims=True), means @ context, 6))
    return TableWorld(worlds, vectors=contexts)


def diabetes(generator: np.random.Generator) -> TableWorld:
    """How far a disease goes within a year, in thirds, guessed from ten measurements (Efron et al. 2004).

    442 people of scikit-learn's table; in every seed 150 of them. A guess earns 1, ½ or 0 for 0, 1 or 2 thirds of
    error. H = 1.
    """
    from sklearn.datasets import load_diabetes

    vectors, outcome = load_diabetes(return_X_y=True)
    thirds = np.searchsorted(np.quantile(outcome, [1.0 / 3.0, 2.0 / 3.0]), outcome)
    chosen = generator.choice(len(outcome), 150, replace=False)
    scaled = vectors[chosen] / np.linalg.norm(vectors[chosen], axis=1).max()
    rewards = 1.0 - np.abs(thirds[chosen, None] - np.arange(3)) / 2.0
    return TableWorld([mdp(np.ones((1, 3, 1)), paid[None], 1) for paid in rewards], vectors=scaled)


def garnet(
    generator: np.random.Generator, *, states: int, actions: int, branching: int, horizon: int, contexts: int
) -> list[TabularMDP]:
    """Return random MDPs with `branching` next states of each pair (Archibald, McKinnon and Thomas 1995).

    A tenth of the pairs, at least one, pay a uniform reward; the others pay nothing.
    """
    worlds = []
    for _ in range(contexts):
        transitions, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
        for pair in np.ndindex(states, actions):
            after = generator.choice(states, branching, replace=False)
            transitions[(*pair, after)] = generator.dirichlet(np.ones(branching))
        paying = generator.choice(rewards.size, max(1, rewards.size // 10), replace=False)
        rewards.flat[paying] = generator.uniform(0.2, 1.0, size=len(paying))
        worlds.append(mdp(transitions, rewards, horizon))
    return worlds


def garnet_of_two(generator: np.random.Generator) -> TableWorld:
    """Garnets with 20 states, 3 actions and two next states, H = 10; two contexts."""
    return TableWorld(garnet(generator, states=20, actions=3, branching=2, horizon=10, contexts=2))
