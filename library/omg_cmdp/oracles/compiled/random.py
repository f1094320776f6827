"""Random numbers that are functions of their keys: the same on every call, in any order, with nothing to remember.

A key is 64 bits. Splitmix64 (Steele, Lea and Flood 2014) makes a stream of each: a counter that is scrambled. Normal
numbers are quantiles of uniform ones (Wichura 1988, AS 241), Gamma variates are Marsaglia and Tsang's (2000).
"""

import math

import numpy as np

from omg_cmdp.jit import compiled, in_plain_python, leaf

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
A, B, C, D = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
STEP = 2.0**-53

SMALLEST_SHAPE = 1e-300
LOST = 50.0
"""What is e⁻⁵⁰ of a row's largest entry is zero beside it."""


@leaf
def _sum(x, y):
    """Return x + y, modulo 2⁶⁴."""
    return x + y


@leaf
def _scramble(x):
    """Return the bits of x scrambled, as splitmix64 does."""
    x = (x ^ (x >> A)) * FIRST
    x = (x ^ (x >> B)) * SECOND
    return x ^ (x >> C)


def _plain_sum(x, y):
    return np.uint64((int(x) + int(y)) % 2**64)


def _plain_scramble(x):
    x = (int(x) ^ int(x) >> 30) * int(FIRST) % 2**64
    x = (x ^ x >> 27) * int(SECOND) % 2**64
    return np.uint64(x ^ x >> 31)


# In plain Python numpy warns where 64 bits overflow.
add, scramble = (_plain_sum, _plain_scramble) if in_plain_python() else (_sum, _scramble)


@leaf
def mixed(key, number):
    """Return a key made of a key and a number."""
    return scramble(add(key, scramble(add(np.uint64(number), GOLDEN))))


@leaf
def uniform(state):
    """Return the next number in (0, 1) of the stream whose counter is `state` (1,)."""
    state[0] = add(state[0], GOLDEN)
    return (float(scramble(state[0]) >> D) + 0.5) * STEP


@leaf
def normal(state):
    """Return the next standard normal number of a stream, the quantile of one uniform number."""
    p = uniform(state)
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        n = (((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
              + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427) * r
              + 133.14166789178437745) * r + 3.3871328727963666080)  # fmt: skip
        d = (((((((5226.4952788528545610 * r + 28729.085735721942674) * r + 39307.895800092710610) * r
              + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.18700749205790830) * r
              + 42.313330701600911252) * r + 1.0)  # fmt: skip
        return q * n / d
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    if r <= 5.0:
        r -= 1.6
        n = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r
              + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.76949722146069140550) * r
              + 4.63033784615654529590) * r + 1.42343711074968357734)  # fmt: skip
        d = (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r
              + 1.48103976427480074590e-1) * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940) * r
              + 2.05319162663775882187) * r + 1.0)  # fmt: skip
    else:
        r -= 5.0
        n = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 1.24266094738807843860e-3) * r
              + 2.65321895265761230930e-2) * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580) * r
              + 5.46378491116411436990) * r + 6.65790464350110377720)  # fmt: skip
        d = (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r + 1.84631831751005468180e-5) * r
              + 7.86869131145613259100e-4) * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
              + 5.99832206555887937690e-1) * r + 1.0)  # fmt: skip
    return -n / d if q < 0.0 else n / d


@leaf
def gamma(shape, state):
    """Return a Gamma variate of shape ½, or of a shape that is at least 1."""
    if shape == 0.5:
        x = normal(state)
        return 0.5 * x * x
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v > 0.0:
            v, u, square = v * v * v, uniform(state), x * x
            if u < 1.0 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
                return d * v


@leaf
def dirichlet(shapes, state, row):
    """Fill `row` (S,) with a draw from Dirichlet(shapes); 0 where a shape is 0.

    Gamma(a) = Gamma(a + 1)·U^(1/a). For small a that is in logarithms, as the number itself may be zero, and most are
    nothing beside the largest, before Gamma(a + 1) is drawn.
    """
    total, largest = 0.0, -math.inf
    for i in range(len(row)):
        a = shapes[i]
        if a >= 1.0 or a == 0.5:
            row[i] = gamma(a, state)
            total += row[i]
        elif a > 0.0:
            row[i] = math.log(uniform(state)) / max(a, SMALLEST_SHAPE)
            largest = max(largest, row[i])
        else:
            row[i] = 0.0
    if largest > -math.inf:
        shift = largest if total == 0.0 else 0.0
        least = (largest if total == 0.0 else math.log(total)) - LOST
        for i in range(len(row)):
            a = shapes[i]
            if 0.0 < a < 1.0 and a != 0.5:
                row[i] = 0.0 if row[i] < least else math.exp(row[i] - shift) * gamma(a + 1.0, state)
                total += row[i]
    if total > 0.0:
        for i in range(len(row)):
            row[i] /= total


@compiled
def fill_keys(seed, episode, life, keys):
    """Fill the keys of all draws in an episode: number k has another one in every `life` episodes, in its turn."""
    for k in range(len(keys)):
        keys[k] = mixed(mixed(np.uint64(seed), k), (episode + k) // life)


@compiled
def fill_uniforms(key, tag, numbers):
    """Fill `numbers` (n,) with uniform ones of a key."""
    state = np.empty(1, np.uint64)
    state[0] = mixed(key, tag)
    for i in range(len(numbers)):
        numbers[i] = uniform(state)


@compiled
def refresh_normals(keys, tag, before, numbers):
    """Fill row k of `numbers` (K, n) with normal ones of key k, unless it was that of `before` (K,), which follows."""
    state = np.empty(1, np.uint64)
    for k in range(len(numbers)):
        if keys[k] != before[k]:
            before[k] = keys[k]
            state[0] = mixed(keys[k], tag)
            for i in range(numbers.shape[1]):
                numbers[k, i] = normal(state)


@compiled
def refresh_rows(keys, tag, parts, shapes, before, before_shapes, drawn):
    """Fill drawn[k, r] with a draw from Dirichlet(shapes[parts[k], r]), by key k and the place r; (K, R, S).

    What is there already is kept: where neither key and part nor the shapes have changed since `before` (K,) and
    `before_shapes` (P, R, S), which follow.
    """
    count, rows, width = drawn.shape
    state, changed = np.empty(1, np.uint64), np.zeros(rows, np.bool_)
    for p in range(len(shapes)):
        for r in range(rows):
            for i in range(width):
                changed[r] |= shapes[p, r, i] != before_shapes[p, r, i]
                before_shapes[p, r, i] = shapes[p, r, i]
    for k in range(count):
        key = mixed(mixed(keys[k], tag), parts[k])
        stale = key != before[k]
        before[k] = key
        for r in range(rows):
            if stale or changed[r]:
                state[0] = mixed(key, r)
                dirichlet(shapes[parts[k], r], state, drawn[k, r])
