"""Agents compared in one call, from a notebook: the study that a file would describe, with objects in its place."""

from __future__ import annotations

import copy
import functools
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from omg_cmdp.contexts import Context, check_same_kind
from omg_cmdp.environments import ContextualMDP, SampledWorld, TableWorld, from_gymnasium
from omg_cmdp.progress import Bar, say_stopped
from omg_cmdp.records import context_rows
from omg_cmdp.validation import file_path, listed, positive_integer

if TYPE_CHECKING:
    import pandas

    from omg_lab.reports.drawing import Figure
    from omg_lab.reports.tables import ReportTable
    from omg_lab.studies.results import Results

__all__ = ["Comparison", "compare"]


def compare(
    environment: Any,
    contexts: Iterable[Context],
    agents: Sequence[str] | Mapping[str, Any],
    *,
    episodes: int,
    seeds: int | Sequence[int] = 5,
    adversary: str = "iid",
    progress: bool | None = None,
    **settings: Any,
) -> Comparison:
    """Let agents play in one environment, once for each seed, and compare them.

    A fresh agent is made for every seed; one that has learned before, or that two seeds would share, is refused. All
    agents meet the same contexts and noise. Where the environment has no tables, there is no regret, and what the
    agents earn is compared. Ctrl-C stops after the episode that is being played: the seeds that all agents have
    finished are compared, and `interrupted` is True. Before the first of them, and the second time, it ends the call.

    Parameters
    ----------
    environment : ContextualMDP, a world of `from_gymnasium`, or anything that this takes
        In a `ContextualMDP` regret is exact.
    contexts : list or table, such as a DataFrame
        The contexts that may come.
    agents : list of str, or mapping
        Kinds, as `omg-lab list` shows them; or a mapping from names to kinds, to tables as in a study file, or to
        classes and functions that make an agent. The arguments of these are supplied by their names: `world`, `space`,
        `contexts`, `episodes`, `seed`, `reward_range`, and, from the usual oracles for such contexts, `reward_oracle`
        and `dynamics_oracle`.
    episodes : int
        The number of episodes of each run.
    seeds : int or list of int
        The number of seeds, or the seeds themselves. The default, 5, is quick; tests between agents need at least 6.
    adversary : str
        The kind of adversary that says which context comes next: "iid", the default, draws them; "never_twice" takes
        each once.
    progress : bool, optional
        Whether to show a bar, with the time left. By default it appears after two seconds in a terminal or notebook.
    **settings
        The settings of `from_gymnasium`, such as `horizon` and `reward_range`, if a world is made of the environment.

    Examples
    --------
    >>> lake = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=5)
    >>> comparison = compare(lake, [0.4, 0.9], {"omg": "omg", "lazy": "uniform"}, episodes=10, seeds=2)
    >>> sorted(comparison.table().index)
    ['lazy', 'omg']
    """
    from omg_cmdp.documents import FileError
    from omg_lab.studies.config import checked_plan
    from omg_lab.studies.directory import open_study
    from omg_lab.studies.engines import play_here
    from omg_lab.studies.outside.folder import Folder
    from omg_lab.studies.results import load
    from omg_lab.studies.runner import Event, Progress

    world = _world(environment, contexts, settings)
    objects: dict[str, Any] = {"given:world": lambda: world}
    name = environment if isinstance(environment, str) else getattr(environment, "__name__", type(environment).__name__)
    content = {
        "name": "comparison",
        "description": f"Agents compared in {name}.",
        "episodes": positive_integer("episodes", episodes),
        "seeds": seeds if isinstance(seeds, int) else listed("seeds", seeds),
        "worlds": {name: {"kind": "given:world"}},
        "adversaries": {adversary: {}},
        "agents": {each: _table(agent, objects) for each, agent in _named(agents).items()},
    }
    try:
        plan = checked_plan(content, Folder(Path.cwd(), objects))
    except FileError as error:
        table = error.place[0] if error.place else "agents"
        argument = {"worlds": "environment", "adversaries": "adversary"}.get(table, table)
        raise ValueError(f"`{argument}`: {error.message}") from None
    tasks, interrupted = plan.tasks(), False
    bar = Bar("compare", sum(task.episodes for task in tasks), show=progress)

    def report(event: Event) -> None:
        if isinstance(event, Progress):
            run = next(i for i, task in enumerate(tasks) if task.name == event.run)
            note = f"run {run + 1} of {len(tasks)}: {tasks[run].agent.name}"
            bar.update(sum(task.episodes for task in tasks[:run]) + event.episode, note)

    with tempfile.TemporaryDirectory() as directory:
        store = open_study(plan, directory)
        try:
            with bar:
                play_here(tasks, store, report)
        except KeyboardInterrupt:
            finished = Counter(task.seed for task in tasks if store.is_finished(task.name))
            if len(plan.agents) not in finished.values():
                raise
            interrupted = True
            say_stopped("compare", bar.done, bar.total, "the seeds that all agents have finished are compared")
        results = load(directory)
        results.log  # noqa: B018 - read while there is the directory
    if len(results.failed):
        first = results.failed.iloc[0]
        raise RuntimeError(f"{first['run']} failed:\n{first['error']}")
    return Comparison(results, interrupted=interrupted)


@final
class Comparison:
    """The result of `compare`: a table, a figure, a report. In a notebook it shows the first two.

    Parameters
    ----------
    results : Results
        The results of a study with one world and one adversary: `runs`, a row per run, and `log`, a row per episode.
    interrupted : bool, default False
        Whether Ctrl-C ended it before the last seed.

    Examples
    --------
    >>> from omg_lab.worlds import Decoy
    >>> world = Decoy(context_count=2, reward_class_size=4)
    >>> comparison = compare(world, world.contexts, ["greedy"], episodes=5, seeds=2)
    >>> len(comparison.results.runs), list(comparison.table().index)
    (2, ['greedy'])
    """

    def __init__(self, results: Results, *, interrupted: bool = False) -> None:
        self.results, self.interrupted = results, interrupted

    def table(self) -> pandas.DataFrame:
        """Return a row for each agent, best first: total regret or, without tables, what it earned in an episode."""
        import pandas

        return pandas.DataFrame(self._shown[0].rows).set_index("agent")

    def plot(self) -> Any:
        """Return a figure of matplotlib: cumulative regret or, without tables, what was earned as agents learned."""
        return self._shown[1].canvas

    def report(self, directory: str | os.PathLike[str]) -> Path:
        """Write report.html, figures and tables into `directory`, and return the path of the page."""
        from omg_lab.reports.page import write_report

        return write_report(self.results, file_path(directory, "directory"))

    @functools.cached_property
    def _shown(self) -> tuple[ReportTable, Figure]:
        from omg_lab.reports.figures import course
        from omg_lab.reports.scenarios import scenarios
        from omg_lab.reports.tables import agents_table

        (scenario,) = scenarios(self.results)
        return agents_table(scenario), course(scenario)

    def __repr__(self) -> str:
        table, runs = self.table(), self.results.runs
        seeds, rest = runs["seed"].nunique(), len(table) - 3
        lines = [f"Comparison of {len(table)} agents in {runs['world'].iloc[0]}, {seeds} seeds, best first"]
        numbers = table.select_dtypes("number").columns[0]
        lines += [f"{agent}: {numbers} {value:.4g}" for agent, value in table[numbers].head(3).items()]
        return "\n  ".join([*lines, f"and {rest} more, which `table()` lists"][: 5 if rest > 0 else -1])

    def _repr_html_(self) -> str:
        table, figure = self._shown
        return f"{table.html()}{figure.svg()}"


def _table(agent: Any, objects: dict[str, Any]) -> dict[str, Any]:
    """Return the table of an agent in a study: a kind, a table, or a class or function, which is added to `objects`."""
    from omg_lab.studies.catalogue import AGENTS

    if isinstance(agent, str):
        return {"kind": agent}
    if isinstance(agent, Mapping):
        return dict(agent)
    if not callable(agent):
        rule = "names of kinds, tables, or classes and functions that make an agent"
        raise ValueError(f"`agents` must be {rule}, got {agent!r:.60}")
    kind = next((name for name, known in AGENTS.items() if known.make is agent), f"given:agent{len(objects)}")
    objects[kind] = agent
    return {"kind": kind}


def _named(agents: Any) -> dict[str, Any]:
    if isinstance(agents, Mapping):
        return {str(name): agent for name, agent in agents.items()}
    names = listed("agents", agents)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"`agents` must be a mapping from names, or a list of kinds, got {agents!r:.60}")
    return {name: name for name in names}


def _world(environment: Any, contexts: Iterable[Context], settings: Mapping[str, Any]) -> Any:
    """Return the environment as a world with these contexts."""
    if not isinstance(environment, (ContextualMDP, SampledWorld)):
        if not (isinstance(environment, str) or callable(environment) or hasattr(environment, "reset")):
            rule = "a ContextualMDP, a world of `from_gymnasium`, or what that takes"
            raise ValueError(f"`environment` must be {rule}, got {environment!r:.60}")
        return from_gymnasium(environment, contexts, **settings)
    if settings:
        names = ", ".join(settings)
        raise ValueError(f"the environment is a world already and takes no settings; leave out {names}")
    world: Any = copy.copy(environment)
    world.contexts = tuple(listed("contexts", context_rows("contexts", contexts)))
    if not world.contexts:
        raise ValueError("`contexts` must hold at least one context, got none")
    if isinstance(environment, (TableWorld, SampledWorld)):
        for context in world.contexts:
            check_same_kind("contexts", context, environment.contexts[0])
    return world
