"""The public names, found by introspection: functions, constructors and methods, by their dotted names."""

import enum
import importlib
import inspect
import types

ROOMS = (
    *(f"omg_cmdp.{room}" for room in ("mdp", "planning", "oracles", "agents", "environments")),
    *(f"omg_cmdp.{room}" for room in ("adversaries", "delays", "runs", "logs", "theory", "theory.bounds")),
    *(
        "omg_cmdp.theory.errors",
        "omg_cmdp.checks",
        "omg_cmdp.loading",
        "omg_lab.worlds",
        "omg_lab.rivals",
        "omg_lab.audit",
        "omg_lab",
    ),
    *(f"omg_trial.{room}" for room in ("client", "desk", "export", "log.database", "replay", "trial_file", "tokens")),
    "omg_trial.web.server",
)
"""Where public names live; `reports`, `studies` and `cli` are behind the command line, and have none.

Those of the trial are what docs/api/trial.md has. Its calls over HTTP are attacked by trial/tests/test_web.py.
"""


def public(rooms=ROOMS):
    """Yield (dotted name, object) of everything public, each once, under the room that has it first."""
    seen = set()
    for room in rooms:
        module = importlib.import_module(room)
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
            try:
                found = getattr(module, name)
            except ImportError:  # of an extra that is not installed
                continue
            if id(found) not in seen and not isinstance(found, types.ModuleType):
                seen.add(id(found))
                yield f"{room.partition('.')[2] or room}.{name}", found


def kind_without_calls(found):
    """Return why there is nothing to attack here: what is no function, and cannot be made, or checks nothing."""
    if not callable(found):
        return "a constant"
    if not inspect.isclass(found):
        return "" if inspect.signature(found).parameters else "a function without arguments"
    if inspect.isabstract(found) or getattr(found, "_is_protocol", False):
        return "abstract: its methods are called on the classes made of it"
    if issubclass(found, tuple):
        return "a record that we make, and that checks nothing"
    if issubclass(found, (enum.Enum, Exception)):
        return "an enumeration or an exception"
    return ""


def methods(found):
    """Yield the names of the methods with arguments that are ours; class methods too."""
    for name in dir(found):
        attribute = inspect.getattr_static(found, name)
        if name.startswith("_") or not isinstance(attribute, (types.FunctionType, classmethod)):
            continue
        bound = getattr(found, name)
        arguments = list(inspect.signature(bound).parameters)
        ours = bound.__module__.startswith("omg_")
        if ours and len(arguments) > (0 if isinstance(attribute, classmethod) else 1):
            yield name


def annotations(call):
    """Return argument -> (its annotation as text, whether None is its default)."""
    found = {}
    maker = call.__init__ if inspect.isclass(call) else call
    for name, parameter in inspect.signature(call).parameters.items():
        text = getattr(parameter.annotation, "__forward_arg__", parameter.annotation)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            options = getattr(importlib.import_module(maker.__module__), str(text)[len("Unpack[") : -1], None)
            named = {key: getattr(each, "__forward_arg__", str(each)) for key, each in _hints(options).items()}
            found |= {key: (each, False) for key, each in named.items()}
        else:
            found[name] = (str(text), parameter.default is None)
    return found


def _hints(options):
    ancestors = reversed(getattr(options, "__orig_bases__", ())) if options is not None else ()
    found = {}
    for ancestor in ancestors:
        found |= getattr(ancestor, "__annotations__", {})
    return found | getattr(options, "__annotations__", {})
