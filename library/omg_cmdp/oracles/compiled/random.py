"""Random numbers that are functions of their keys: the same on every call, in any order, with nothing to remember.

A key is 64 bits. Splitmix64 (Steele, Lea and Flood 2014) makes a stream of each, a counter that is scrambled; its
numbers are keys as well. Normal numbers come from the ziggurat (Marsaglia and Tsang 2000a), Gamma variates from these
(2000b).
"""

import math

import numpy as np

from omg_cmdp.jit import compiled, in_plain_python, leaf

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
A, B, C, D = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
STEP = 2.0**-53

LAYERS, LAST_LAYER = 256, np.uint64(255)
TAIL, AREA = 3.6541528853610088, 0.00492867323399
"""Where the tail of the ziggurat begins, and the area of each of its layers, which lie under e^(-x²/2), x > 0."""


def _edges():
    """Return where the layers end, (LAYERS + 1,): that of the tail at its area over its height, the last one at 0."""
    edges = [AREA / math.exp(-0.5 * TAIL * TAIL), TAIL]
    while len(edges) < LAYERS:
        edges.append(math.sqrt(-2.0 * math.log(AREA / edges[-1] + math.exp(-0.5 * edges[-1] * edges[-1]))))
    return np.array([*edges, 0.0])


EDGES = _edges()

SMALLEST_SHAPE = 1e-300
SMALL, LOST = 1e-12, 1e-30
"""In a row that sums to SMALL or more, what is LOST or less is as good as zero."""


@leaf
def _sum(x, y):
    """Return x + y, modulo 2⁶⁴."""
    return x + y


@leaf
def _product(i):
    """Return i·GOLDEN, modulo 2⁶⁴."""
    return np.uint64(i) * GOLDEN


@leaf
def _scramble(x):
    """Return the bits of x scrambled, as splitmix64 does."""
    x = (x ^ (x >> A)) * FIRST
    x = (x ^ (x >> B)) * SECOND
    return x ^ (x >> C)


def _plain_sum(x, y):
    return np.uint64((int(x) + int(y)) % 2**64)


def _plain_product(i):
    return np.uint64(int(i) * int(GOLDEN) % 2**64)


def _plain_scramble(x):
    x = (int(x) ^ int(x) >> 30) * int(FIRST) % 2**64
    x = (x ^ x >> 27) * int(SECOND) % 2**64
    return np.uint64(x ^ x >> 31)


# In plain Python numpy warns where 64 bits overflow.
exact = (_plain_sum, _plain_product, _plain_scramble) if in_plain_python() else (_sum, _product, _scramble)
add, times_golden, scramble = exact


@leaf
def child(key, i):
    """Return number i of the stream of a key."""
    return scramble(add(key, times_golden(i + 1)))


@leaf
def mixed(key, number):
    """Return a key made of a key and a number."""
    return scramble(add(key, scramble(add(np.uint64(number), GOLDEN))))


@leaf
def uniform(key):
    """Return the number in (0, 1) made of the first 53 bits of a key."""
    return (float(key >> D) + 0.5) * STEP


@leaf
def normal(key):
    """Return the standard normal number of a key, made of its stream from number 2 on.

    A point is thrown into a layer of the ziggurat. Nearly always it lies below the next layer, hence under the curve.
    """
    n = 2
    while True:
        drawn = child(key, n)
        layer = np.int64(drawn & LAST_LAYER)  # none of these bits is one of the number's
        x = (2.0 * uniform(drawn) - 1.0) * EDGES[layer]
        if abs(x) < EDGES[layer + 1]:
            return x
        if layer > 0:
            low, high = math.exp(-0.5 * EDGES[layer] ** 2), math.exp(-0.5 * EDGES[layer + 1] ** 2)
            if low + uniform(child(key, n + 1)) * (high - low) < math.exp(-0.5 * x * x):
                return x
        else:
            return math.copysign(tail(child(key, n + 1)), x)
        n += 2


@leaf
def tail(key):
    """Return a standard normal number that is larger than TAIL."""
    n = 0
    while True:
        beyond = -math.log(uniform(child(key, n))) / TAIL
        if -2.0 * math.log(uniform(child(key, n + 1))) >= beyond * beyond:
            return TAIL + beyond
        n += 2


@leaf
def gamma(shape, key):
    """Return the Gamma variate of a key, of shape ½ or of a shape that is at least 1."""
    if shape == 0.5:
        x = normal(key)
        return 0.5 * x * x
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(key)
        v = 1.0 + c * x
        if v > 0.0:
            v, u, square = v * v * v, uniform(child(key, 0)), x * x
            if u < 1.0 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
                return d * v
        key = child(key, 1)


@leaf
def variate(shape, key):
    """Return the Gamma variate of a key; 0 where the shape is 0.

    Gamma(a) = Gamma(a + 1)·U^(1/a) for a < 1; the first factor is left out where the second is LOST.
    """
    if shape >= 1.0 or shape == 0.5:
        return gamma(shape, key)
    if shape == 0.0:
        return 0.0
    power = math.exp(math.log(uniform(key)) / max(shape, SMALLEST_SHAPE))
    return power if power < LOST else power * gamma(shape + 1.0, key)


@leaf
def logarithm(shape, key):
    """Return the logarithm of that variate, which may be too small for a number of its own."""
    if shape >= 1.0 or shape == 0.5:
        return math.log(gamma(shape, key))
    if shape == 0.0:
        return -math.inf
    return math.log(uniform(key)) / max(shape, SMALLEST_SHAPE) + math.log(gamma(shape + 1.0, key))


@leaf
def divide_logarithms(shapes, key, row):
    """Fill `row` (S,) with the draw from Dirichlet(shapes) of a key, even if all its variates are tiny."""
    largest, total = -math.inf, 0.0
    for i in range(len(row)):
        row[i] = logarithm(shapes[i], child(key, i))
        largest = max(largest, row[i])
    for i in range(len(row)):
        row[i] = math.exp(row[i] - largest) if largest > -math.inf else 0.0
        total += row[i]
    for i in range(len(row)):
        row[i] /= max(total, 1.0)  # 0 where no shape is positive


@compiled
def fill_keys(seed, episode, life, keys):
    """Fill the keys of all draws in an episode: number k has another one in every `life` episodes, in its turn."""
    for k in range(len(keys)):
        keys[k] = mixed(mixed(np.uint64(seed), k), (episode + k) // life)


@compiled
def fill_uniforms(key, tag, numbers):
    """Fill `numbers` (n,) with uniform ones of a key."""
    place = mixed(key, tag)
    for i in range(len(numbers)):
        numbers[i] = uniform(child(place, i))


@compiled
def refresh_normals(keys, tag, before, numbers):
    """Fill row k of `numbers` (K, n) with normal ones of key k, unless it was that of `before` (K,), which follows."""
    for k in range(len(numbers)):
        if keys[k] != before[k]:
            before[k] = keys[k]
            place = mixed(keys[k], tag)
            for i in range(numbers.shape[1]):
                numbers[k, i] = normal(child(place, i))


@compiled
def refresh_rows(keys, tag, parts, shapes, before, before_shapes, variates, drawn):
    """Fill drawn[r, :, k] with a draw from Dirichlet(shapes[parts[k], r]), by key k and the place r; (R, S, K).

    Each entry has a Gamma variate of its own, by its key and its shape, in `variates` (K, R, S). What is there already
    is kept: where neither key and part nor the shape have changed since `before` (K,) and `before_shapes` (P, R, S),
    which follow. An episode changes one entry of each row that it visits.
    """
    rows, width, count = drawn.shape
    changed, moved = np.zeros(rows, np.bool_), np.empty(shapes.shape, np.bool_)
    for p in range(len(shapes)):
        for r in range(rows):
            for i in range(width):
                moved[p, r, i] = shapes[p, r, i] != before_shapes[p, r, i]
                changed[r] |= moved[p, r, i]
                before_shapes[p, r, i] = shapes[p, r, i]
    for k in range(count):
        p, key = parts[k], mixed(mixed(keys[k], tag), parts[k])
        stale = key != before[k]
        before[k] = key
        for r in range(rows):
            if stale or changed[r]:
                place, total = mixed(key, r), 0.0
                for i in range(width):
                    if stale or moved[p, r, i]:
                        variates[k, r, i] = variate(shapes[p, r, i], child(place, i))
                    total += variates[k, r, i]
                if total >= SMALL:
                    for i in range(width):
                        drawn[r, i, k] = variates[k, r, i] / total
                else:
                    divide_logarithms(shapes[p, r], place, drawn[r, :, k])
