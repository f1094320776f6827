"""Numbers and lists as text for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
THIN = "\N{NARROW NO-BREAK SPACE}"


def number(value: float) -> str:
    r"""Return three significant digits.

    >>> [number(x) for x in (0.0, 0.01234, 3.0, 41.26, 2627.4, -7.5e-9, 3.8e6, float("nan"))]
    ['0', '0.0123', '3.00', '41.3', '2\u202f627', '−7.5·10⁻⁹', '3.8·10⁶', '–']
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    sign, size = "−" if value < 0.0 else "", abs(value)
    if size == 0.0:
        return "0"
    if not 1e-3 <= size < 999_999.5:
        mantissa, exponent = f"{size:.1e}".split("e")
        return f"{sign}{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    if size >= 99.95:
        return sign + count(round(size))
    return f"{sign}{size:.{2 - math.floor(math.log10(size * 1.0005))}f}"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent.

    >>> percent(0.256), percent(-0.001), percent(0.9987, 1), percent(math.nan)
    ('26 %', '0 %', '99.9 %', '–')
    """
    return "–" if math.isnan(share) else f"{100.0 * share:z.{digits}f} %"


def not_negative(value: float) -> str:
    """Return a price; a dash if it is negative, as it may be where a model errs.

    >>> not_negative(1.5), not_negative(-0.119)
    ('1.50', '–')
    """
    return "–" if value < 0.0 else number(value)


def power(value: float, _: object = None) -> str:
    r"""Return a power of ten, as the tick of an axis.

    >>> [power(x) for x in (0.01, 1.0, 1e4, 1e7)]
    ['0.01', '1', '10⁴', '10⁷']
    """
    if 1e-3 < value < 1e4:
        return f"{value:g}" if value < 1000.0 else count(round(value))
    return f"10{str(round(math.log10(value))).translate(_SUPERSCRIPTS)}"


def count(value: int) -> str:
    r"""Return an integer with its thousands set apart.

    >>> count(12345)
    '12\u202f345'
    """
    return f"{value:,}".replace(",", THIN) if value >= 1000 else str(value)


def estimate(mean: float, low: float, high: float) -> str:
    """Return a mean with its 95 % interval, in words; a single seed has none.

    >>> estimate(41.0, 36.2, 45.8), estimate(41.0, math.nan, math.nan)
    ('41.0 (95 % interval 36.2 to 45.8)', '41.0 (a single seed)')
    """
    text = "a single seed" if math.isnan(low) else f"95 % interval {interval(low, high)}"
    return f"{number(mean)} ({text})"


def interval(low: float, high: float) -> str:
    """Return an interval in words; a single seed has none.

    >>> interval(36.2, 45.8), interval(math.nan, math.nan)
    ('36.2 to 45.8', '–')
    """
    return "–" if math.isnan(low) else f"{number(low)} to {number(high)}"


def chance(p: float) -> str:
    """Return a p-value, with its sign.

    >>> chance(0.0078125), chance(0.0001)
    ('= 0.008', '< 0.001')
    """
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def listing(words: Sequence[str]) -> str:
    """Return a list in words.

    >>> listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def plural(many: int, noun: str) -> str:
    """Return how many there are of a thing.

    >>> plural(1, "seed"), plural(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count(many)} {noun}{'' if many == 1 else 's'}"
