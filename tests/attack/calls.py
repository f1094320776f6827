"""Malformed calls on every public name: 20 000 at effort 1.

A call begins as a valid one, and one or two of its arguments are replaced. It must return, or raise a ValueError or
TypeError that names an argument in a sentence; where an argument's annotation excludes the replacement, it
must raise. Whatever has a state has the same one after an error.
"""

import contextlib
import inspect
import tempfile

import numpy as np

from tests.attack.malformed import examples, methods, names
from tests.attack.malformed.judge import bits, problem
from tests.attack.malformed.nasty import VALUES, twisted
from tests.attack.outcome import Outcome

CALLS = 20_000
EACH = 5
"""Calls per name: the first one loads and compiles, so a few calls go to a few names."""

RARELY = dict.fromkeys(
    (
        *("checks.check_agent", "checks.check_oracle", "runs.play", "runs.shortfall", "runs.simulate"),
        *("environments.from_gymnasium", "environments.gymnasium_space", "audit.combine", "omg_lab.compare"),
        *("omg_lab.Comparison.report", "environments.SampledWorld.sample"),
    ),
    0.2,
)
"""Calls that take longer, and their share."""


class Target:
    """A public function, constructor or method, and a valid call of it."""

    def __init__(self, name, call, arguments, make=None):
        self.name, self._call, self._arguments, self._make = name, call, arguments, make
        self._instance, self._is_warm = None, False
        self.annotations = names.annotations(call)

    def prepared(self):
        """Return (call, valid arguments, the instance or None); an instance is kept until it changes."""
        if self._make is None:
            return self._call, self._arguments(), None
        if self._instance is None:
            self._instance = self._make()
        method = getattr(self._instance, self.name.rsplit(".", 1)[1])
        return method, self._arguments(self._instance), self._instance

    def attacked(self, replace):
        """Call with `replace(valid arguments)` in the place of some, and return what is wrong; "" if nothing is."""
        if not self._is_warm:  # compiles for as long as it takes
            call, good, _ = self.prepared()
            call(**good)
            self._instance, self._is_warm = None, True
        call, good, instance = self.prepared()
        before = bits([instance])
        replaced = replace(good)
        values = {name: value for name, (_, value) in replaced.items()}
        found = problem(self.name, self.annotations, call, good, values, instance)
        if found or bits([instance]) != before:
            self._instance = None
        labels = ", ".join(f"{name}={label}" for name, (label, _) in replaced.items())
        return found and f"{self.name}({labels}): {found}"


def targets(rooms=names.ROOMS):
    """Return every target, and the names that have neither an example nor a reason."""
    found, unknown = [], []
    for name, value in names.public(rooms):
        known = name in examples.EXAMPLES
        if known:
            found.append(Target(name, value, examples.EXAMPLES[name]))
        elif name not in examples.REASONS and not names.kind_without_calls(value):
            unknown.append(name)
        make = examples.INSTANCES.get(name) or (_maker(name, value) if known and inspect.isclass(value) else None)
        for method in names.methods(value) if make is not None else ():
            full = f"{name}.{method}"
            try:
                arguments = methods.arguments(full)
            except KeyError:
                unknown.append(full)
                continue
            if arguments is not None:
                found.append(Target(full, getattr(value, method), arguments, make))
    return found, unknown


def _maker(name, kind):
    return lambda: kind(**examples.EXAMPLES[name]())


def attack(effort: float, seed: int) -> Outcome:
    """Make random malformed calls."""
    outcome, generator = Outcome(), np.random.default_rng(seed)
    found, unknown = targets()
    outcome.broken += [f"{name}: neither an example nor a reason to have none" for name in unknown]
    calls = int(CALLS * effort)
    found = [found[place] for place in generator.permutation(len(found))[: max(1, calls // EACH)]]
    weights = np.array([len(target.annotations) * RARELY.get(target.name, 1.0) for target in found])
    chosen = generator.choice(len(found), calls, p=weights / weights.sum())
    # Elsewhere, because what is malformed may be the name of a file.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for place in np.sort(chosen):
            outcome.tried += 1
            broken = found[place].attacked(lambda good: _replacements(good, generator))
            outcome.broken += [broken] if broken else []
    return outcome


def _replacements(good, generator):
    """Return argument -> (name of a wrong value, the value), for one argument, or now and then for two."""
    count = 1 + (generator.random() < 0.25)
    return {name: _wrong(good[name], generator) for name in generator.permutation(list(good))[:count].tolist()}


def _wrong(good, generator):
    """Return a wrong value and its name, often one close to the good value."""
    close = list(twisted(good, generator))
    if close and generator.random() < 0.4:
        return close[generator.integers(len(close))]
    label = list(VALUES)[generator.integers(len(VALUES))]
    return label, VALUES[label]()
