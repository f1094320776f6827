"""Save, change one thing, restore: a state is refused by an oracle with another argument, or the change is harmless.

Every argument of every constructor, found by introspection, is changed in every way that its kind allows: numbers,
texts, tables, mappings, functions, lists of contexts, oracles inside oracles, models and their settings. An oracle that
takes the state nevertheless must be in `HARMLESS`, and answer and go on to the bit like the one that was saved.
"""

import collections
import contextlib
import copy
import functools
import inspect
from collections.abc import Mapping

import numpy as np
import pytest

from library.tests.oracles import catalogue
from library.tests.oracles.adapters.catalogue import refitted_oracle
from library.tests.oracles.catalogue import ACTIONS, DIMENSION, LABELS, SIZE, STATES, SUPPORT, VECTORS
from library.tests.oracles.test_state import HORIZON, answers, bits, is_refused, taught
from library.tests.varying import flat_call
from omg_cmdp import oracles
from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.models import DynamicsOptions, Options
from omg_cmdp.oracles.base import Oracle

HARMLESS = {
    "contexts in another order": "a mapping is looked up by context",
    "the same function under another name": "a function is known by what it says",
    "oracles in another order": "they are alike, as those of all steps may be",
}
TIED = {("AggregateRewards", "horizon"), ("AggregateDynamics", "horizon")}
"""Arguments that cannot be changed alone."""
USUAL = {
    "features": lambda context: np.roll(np.asarray(context, dtype=float), 1),
    "support": SUPPORT,
    "base": np.broadcast_to([0.5, 0.3, 0.2], SUPPORT.shape),
    "admissible": np.array([[True, True], [True, True], [True, False]]),
    "contexts": LABELS,
    "prior": 0.5,
}
"""Something for arguments that are None by default."""


class Recorder:
    """A room of oracles, which notes the calls of its classes."""

    def __init__(self, *rooms):
        self.calls, self.rooms = collections.defaultdict(list), rooms

    def __getattr__(self, name):
        made = next(getattr(room, name) for room in self.rooms if hasattr(room, name))
        if not (inspect.isclass(made) and issubclass(made, Oracle)):
            return made

        def make(*arguments, **named):
            self.calls[name].append((made, flat_call(made, *arguments, **named)))
            return made(*arguments, **named)

        return make


@functools.cache
def recorded():
    """Return class -> how the catalogues make one: the class, and all arguments by name."""
    recorder = Recorder(oracles, adapters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "oracles", recorder)
        catalogue.each_oracle(HORIZON)
        patch.setattr("library.tests.oracles.adapters.catalogue.adapters", recorder)
        for kind in ("Rewards", "Dynamics"):
            with pytest.MonkeyPatch.context(), contextlib.suppress(pytest.skip.Exception):
                refitted_oracle(kind, **SIZE, horizon=HORIZON)
    return dict(recorder.calls)


def arguments_of(made):
    """Return the names of all arguments of a class and their defaults; those of the options of adapters too."""
    found = {}
    for each in inspect.signature(made).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            kinds = Options if made.__name__.endswith("Rewards") else DynamicsOptions
            defaults = {"members": 4, "floor": 1e-4}
            found |= {name: defaults.get(name) for name in kinds.__annotations__}
        else:
            found[each.name] = each.default
    return found


def variants(argument, value):
    """Yield (what was changed, another value) for a value of any kind."""
    if value is None:
        yield "given", USUAL[argument]
    elif isinstance(value, bool):
        yield "the opposite", not value
    elif isinstance(value, (int, float)):
        yield from ((f"{other}", other) for other in (value + 1, value * 2, value / 2, value - 1, 2) if other != value)
    elif isinstance(value, str):
        yield from ((rate, rate) for rate in catalogue.RATES if rate != value)
    elif isinstance(value, np.ndarray):
        yield "rolled", np.roll(value, 1, axis=-1)
        yield "turned", value[::-1].copy()
    elif isinstance(value, Mapping):
        last = list(value)[-1]
        turned = value[last][::-1]
        yield "contexts in another order", dict(reversed(value.items()))
        yield "functions in another order", {label: tables[::-1] for label, tables in value.items()}
        yield "one context less", {label: tables for label, tables in value.items() if label != last}
        yield "another table in one context", value | {last: value[last][..., ::-1, :]}
        if not np.array_equal(turned, value[last]):
            yield "functions in another order in one context", value | {last: turned}
    elif isinstance(value, Oracle) or (isinstance(value, list) and isinstance(value[0], Oracle)):
        yield from parts(value)
    elif isinstance(value, (list, tuple)):
        yield "in another order", value[::-1]
        yield "one less", value[:-1]
        yield "another one", (*value[:-1], "another")
    elif argument == "model":
        yield from models(value)
    elif callable(value):
        yield "the same function under another name", lambda context: value(context)
        yield "functions or features in another order", lambda context: np.asarray(value(context))[::-1]
        yield "other tables", lambda context: np.roll(value(context), 1, axis=-1)
    else:
        raise AssertionError(f"say how to change {argument} = {value!r:.60}")


def parts(value):
    """Yield other oracles to be made of: in another order, fewer, or one with another argument."""
    several = value if isinstance(value, list) else [value]
    if len(several) > 1:
        yield "oracles in another order", several[::-1]
        yield "one oracle less", several[:-1]
    name = type(several[-1]).__name__
    for _, call in recorded()[name]:
        for argument in call.keys() - {"horizon"}:
            for what, changed in variants(argument, call[argument]):
                with contextlib.suppress(ValueError):
                    other = build(name, call | {argument: changed})
                    named = what if what in HARMLESS else f"{name}: {argument}, {what}"
                    if other.horizon == several[-1].horizon and bits(other.state()) != bits(several[-1].state()):
                        yield named, [*several[:-1], other] if isinstance(value, list) else other


def models(value):
    """Yield models with another setting, and another model."""
    if hasattr(value, "get_params"):
        from sklearn.base import clone

        for name, own in value.get_params().items():
            for other in (
                (not own,) if isinstance(own, bool) else (own * 2, own + 1) if own and type(own) in (int, float) else ()
            ):
                yield f"model with {name} = {other}", clone(value).set_params(**{name: other})


def contexts_of(name, call):
    """Return contexts that an oracle made by this call accepts."""
    if name in adapters.__all__:
        return [np.array([0.3, 0.9]), np.array([0.5, 0.1])]
    for contexts in (LABELS, VECTORS, catalogue.SIMPLEX):
        oracle = build(name, call)
        try:
            return contexts if [oracle.predict(context) for context in contexts] else None
        except (ValueError, TypeError, KeyError):
            continue
    raise AssertionError(f"no contexts for {name} {call}")


def build(name, call):
    """Return an oracle by a recorded call; oracles in it are copied, for they learn."""
    made = getattr(oracles, name)
    copied = {key: copy.deepcopy(value) if key in ("oracle", "oracles") else value for key, value in call.items()}
    return made(**copied)


def outcome(name, call, argument, value, contexts, rng):
    """Return what becomes of a state: "refused", "harmless", "not made", or "ACCEPTED"."""
    saved = taught(build(name, call), contexts, rng)
    try:
        other = build(name, call | {argument: value})
    except (ValueError, TypeError, RuntimeError):
        return "not made"
    before = bits(other.state())
    try:
        other.load_state(saved.state())
    except ValueError:
        is_refused(other, saved.state())
        assert bits(other.state()) == before, "a refused state must change nothing"
        return "refused"
    try:
        same = answers(other, contexts) == answers(saved, contexts)
        seed = rng.integers(2**32)
        ours, theirs = (taught(each, contexts, np.random.default_rng(seed)) for each in (saved, other))
        return "harmless" if same and answers(ours, contexts) == answers(theirs, contexts) else "ACCEPTED"
    except ValueError:
        return "ACCEPTED"


CASES = [(name, argument) for name, calls in recorded().items() for argument in arguments_of(calls[0][0])]


# Models of scikit-learn take seconds; every other case is a sample of all.
SAMPLED = [
    pytest.param(*case, marks=pytest.mark.slow if i % 3 or "Refitted" in case[0] else ())
    for i, case in enumerate(CASES)
]


@pytest.mark.parametrize(("name", "argument"), SAMPLED)
def test_a_state_is_refused_or_the_change_is_harmless(name, argument, rng):
    found = collections.Counter()
    for made, call in recorded()[name]:
        contexts = contexts_of(name, call)
        value = call.get(argument, arguments_of(made)[argument])
        for what, other in variants(argument, value):
            became = outcome(name, call, argument, other, contexts, rng)
            assert became != "ACCEPTED", f"{name}: {argument}, {what}"
            assert became != "harmless" or what in HARMLESS, f"{name}: {argument}, {what} is harmless, say why"
            found[became] += 1
    assert found["refused"] or (name, argument) in TIED, found


def test_every_argument_of_every_oracle_is_changed():
    public = {name for name in oracles.__all__ if name.endswith(("Rewards", "Dynamics"))}
    assert {name for name, _ in CASES} == public
    assert len(CASES) > 4 * len(public)


def test_models_that_print_alike_are_told_apart():
    """scikit-learn shortens what it prints, numpy does, and a class of one's own prints its address only."""
    pytest.importorskip("sklearn")
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline

    class Mean:
        def __init__(self, prior):
            self.prior = prior

        def fit(self, inputs, rewards):
            self.mean = np.mean([self.prior, *rewards])

        def predict(self, inputs):
            return np.full(len(inputs), self.mean)

    weights = np.ones(5000)
    widths = [50] * 500
    for model, other in (
        (KernelRidge(alpha=weights), KernelRidge(alpha=np.where(np.arange(5000) == 2500, 2.0, weights))),
        (MLPRegressor(widths), MLPRegressor([*widths[:250], 51, *widths[251:]])),
        (make_pipeline(MLPRegressor(widths)), make_pipeline(MLPRegressor([*widths[:250], 51, *widths[251:]]))),
        (MLPRegressor(random_state=np.random.RandomState(0)), MLPRegressor(random_state=np.random.RandomState(1))),
        (Mean(0.1), Mean(0.9)),
    ):
        saved = adapters.RefittedRewards(model, **SIZE, horizon=HORIZON).state()
        adapters.RefittedRewards(copy.deepcopy(model), **SIZE, horizon=HORIZON).load_state(saved)
        is_refused(adapters.RefittedRewards(other, **SIZE, horizon=HORIZON), saved)


def test_a_state_says_what_it_cannot_tell_apart(rng):
    tables = {label: rng.random((2, STATES, ACTIONS)) for label in LABELS}
    listed, function = (oracles.FiniteRewards(each, horizon=HORIZON) for each in (tables, tables.get))
    assert str(taught(listed, LABELS, rng).state()["not compared"]) == "nothing"
    assert "other contexts than the 3 compared" in str(taught(function, LABELS, rng).state()["not compared"])
    # A context that cannot be written as text is no witness.
    unwritten = oracles.FiniteRewards(lambda context: tables[0], horizon=HORIZON)
    state = taught(unwritten, [frozenset("a"), 1 + 2j], rng).state()
    assert "other contexts than the 0 compared" in str(state["not compared"])


@pytest.mark.parametrize("text", ["[" * 100_000, "1", "[[1]]", '[["{}", 1.0, 0.0]]', ""])
def test_witnesses_that_no_oracle_has_written_are_refused(text, rng):
    function = oracles.FiniteRewards({label: rng.random((2, STATES, ACTIONS)) for label in LABELS}.get, horizon=HORIZON)
    saved = taught(function, LABELS, rng).state()
    is_refused(function, {**saved, "compared": np.array(text)})


def test_features_that_differ_in_their_last_bits_are_the_same(rng):
    """On another machine an exponential may be rounded differently."""
    sizes = {**SIZE, "dimension": DIMENSION, "horizon": HORIZON}
    here = oracles.LinearRewards(**sizes, features=lambda context: context * 0.5)
    saved = taught(here, VECTORS, rng).state()
    oracles.LinearRewards(**sizes, features=lambda context: np.nextafter(context * 0.5, 1.0)).load_state(saved)
    is_refused(oracles.LinearRewards(**sizes, features=lambda context: context * (0.5 + 1e-9)), saved)


def test_what_callers_do_with_their_tables_later_changes_nothing(rng):
    """A dictionary is copied at the door, and what an oracle returns cannot be written to."""
    tables = {label: rng.random((2, STATES, ACTIONS)) for label in LABELS}
    oracle = oracles.FiniteRewards(tables, horizon=HORIZON)
    before = oracle.predict("two")
    for table in tables.values():
        table[...] = 0.9
    tables.clear()
    assert np.array_equal(oracle.predict("two"), before)
    functions = oracle.functions("two")
    with pytest.raises(ValueError, match="read-only"):
        functions[...] = 0.9
    with pytest.raises(ValueError, match="WRITEABLE"):
        functions.setflags(write=True)
