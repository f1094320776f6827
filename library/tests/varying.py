"""Arguments of constructors that are numbers, and other values for them."""

import inspect
import re

REST = inspect.Parameter.VAR_KEYWORD
NUMBERS = ("int", "float", "bool", "Tuned")


def numeric_arguments(make):
    """Return the arguments that are or may be numbers, with defaults; what **options passes on to a base counts too."""
    listed = inspect.signature(make).parameters.values()
    passes = isinstance(make, type) and any(each.kind is REST for each in listed)
    inner = numeric_arguments(make.__bases__[0]) if passes else {}
    return inner | {each.name: each.default for each in listed if _is_number(str(each.annotation))}


def _is_number(annotation):
    alternatives = re.sub(r"\[[^\[\]]*\]", "", annotation).split("|")
    return any(each.strip() in NUMBERS for each in alternatives)


def flat_call(make, *arguments, **named):
    """Return all arguments of a call by their names."""
    signature = inspect.signature(make)
    bound = dict(signature.bind(*arguments, **named).arguments)
    rest = [each.name for each in signature.parameters.values() if each.kind is REST]
    return bound | {name: value for each in rest for name, value in bound.pop(each, {}).items()}


def another(make, call, argument, value):
    """Return make(**call) with another number than `value` as this argument, the first one accepted; else None."""
    near = [value + 1, value * 2, value / 2, value - 1] if isinstance(value, (int, float)) else []
    for number in [not value] if isinstance(value, bool) else [*near, 2, 7, 0.25, 0.5]:
        try:
            if number != value:
                return make(**call | {argument: number})
        except ValueError:
            continue
    return None
