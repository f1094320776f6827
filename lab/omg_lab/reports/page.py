"""The report of a study: one page that explains itself, with every figure and table as a file beside it.

report.html            no network, no scripts; for a phone, a wide screen and print, light and dark
figures/NAME.pdf       each figure, for a paper
tables/NAME.csv        each table
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from omg_cmdp.persistence import whole_file
from omg_lab.reports.agent_figures import agent_figures
from omg_lab.reports.drawing import Figure
from omg_lab.reports.figures import comparing_figures
from omg_lab.reports.formats import count, listing
from omg_lab.reports.policies import shown_policies
from omg_lab.reports.scenarios import Scenario, scenarios
from omg_lab.reports.sentences import (
    agent_sentences,
    chance_or_not,
    exploring_pays,
    headline,
    sentences,
    title,
    where_exploring_pays,
)
from omg_lab.reports.tables import ReportTable, agents_table, comparisons_table
from omg_lab.reports.words import render, say
from omg_lab.studies.catalogue import KINDS, Part
from omg_lab.studies.config import unchecked_plan
from omg_lab.studies.plan import TABLES
from omg_lab.studies.results import Results

SINGULAR = {"worlds": "world", "adversaries": "adversary", "agents": "agent", "seeds": "seed"}


class ReportSection(NamedTuple):
    """A part of the page: a heading, paragraphs, then tables and rows of figures."""

    title: str
    name: str = ""
    """The identifier of its heading; a section without one belongs to the section before."""
    words: Sequence[str] = ()
    parts: Sequence[ReportTable | list[Figure]] = ()
    links: Sequence[Scenario] = ()


def write_report(results: Results, directory: str | os.PathLike[str]) -> Path:
    """Write the report of `results` into `directory`, and return the path of its page."""
    folder, plan = Path(directory), unchecked_plan(results.configuration)
    found = scenarios(results)
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    page = render(
        "report.html",
        title=title(results.configuration),
        subtitle=_subtitle(results.configuration),
        headline=_headline(results, found),
        ran={table: getattr(plan, table) for table in TABLES},
        omg=next((part.name for part in plan.agents if part.kind == "omg"), None),
        describe=_description,
        sections=_saved(_sections(results, found), folder),
        **_origin(results, found),
    )
    with whole_file(folder / "report.html") as temporary:
        temporary.write_text(page, encoding="utf-8")
    return folder / "report.html"


def _saved(sections: Iterator[ReportSection], folder: Path) -> Iterator[ReportSection]:
    """Write the figures and tables of each section; one section after another, as figures take much memory."""
    for section in sections:
        for part in section.parts:
            for each in part if isinstance(part, list) else [part]:
                each.save(folder / ("figures" if isinstance(each, Figure) else "tables"))
        yield section


def _sections(results: Results, found: Sequence[Scenario]) -> Iterator[ReportSection]:
    exact = [scenario for scenario in found if scenario.exact]
    if len(exact) > 1:
        words = ["A scenario is one world under one adversary. Regrets of different worlds have no common scale."]
        yield ReportSection("All scenarios", "overview", words, links=exact)
    for each in found:
        # If there is one scenario, the headline of the page has its result.
        words = [*([headline(each)] if len(found) > 1 else []), *exploring_pays(each)]
        yield ReportSection(each.title, each.name, words, [agents_table(each), comparing_figures(each)])
        if each.rivals:
            words = [chance_or_not(each)]
            yield ReportSection(
                "Could the difference be chance?", words=words, parts=[comparisons_table(each, each.pairs.values())]
            )
        if each.exact and (figures := agent_figures(each)):
            yield ReportSection(f"Inside {each.focus}", words=agent_sentences(each), parts=[figures])
        pictures, tables, reading = shown_policies(each, results.policies)
        if pictures:
            yield ReportSection(f"What {each.focus} would do now", words=[reading], parts=[pictures, *tables])


def _headline(results: Results, found: Sequence[Scenario]) -> str:
    if not found:
        return say("nothing_to_show", finished=len(results.runs))
    exact = [scenario for scenario in found if scenario.exact]
    if len(exact) < 2:
        return " ".join(map(headline, exact or found))
    won = Counter(scenario.agents[0] for scenario in exact)
    best = listing([f"{agent} in {many}" for agent, many in won.most_common()])
    return f"Of {len(exact)} scenarios, least was lost by {best}. {where_exploring_pays(exact)}".strip()


def _missing(results: Results, found: Sequence[Scenario]) -> Iterator[str]:
    """Yield which agents have seeds to finish, for each scenario that has some, and whether it is shown."""
    finished, shown = set(results.runs["run"]), {(each.world, each.adversary) for each in found}
    seeds: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for task in unchecked_plan(results.configuration).tasks():
        agents = seeds.setdefault((task.world.name, task.adversary.name), {})
        agents.setdefault(task.agent.name, []).append(task.name in finished)
    for place, agents in seeds.items():
        if not all(map(all, agents.values())):
            counts = [f"{agent} {sum(done)} of {len(done)}" for agent, done in agents.items()]
            yield say("missing", world=place[0], adversary=place[1], counts=counts, shown=place in shown)


def _subtitle(configuration: Mapping[str, Any]) -> str:
    sizes = [(len(configuration[table]), table) for table in SINGULAR]
    grid = " × ".join(f"{many} {table if many > 1 else SINGULAR[table]}" for many, table in sizes)
    text = f"{grid}, {count(configuration['episodes'])} episodes each"
    if late := configuration.get("delay"):
        text += f", feedback {f'{count(late)} episodes late' if isinstance(late, int) else f'late ({_options(late)})'}"
    rest = sentences(configuration["description"])[1]
    return f"{rest} {configuration['name']}: {text}.".strip()


def _description(table: str, part: Part) -> str:
    """Return what a world, adversary or agent is, and its options."""
    outside = "given in the call" if part.kind.startswith("given:") else part.kind
    about = KINDS[table][part.kind].description if part.kind in KINDS[table] else outside
    return about + (f" ({_options(part.options)})" if part.options else "")


def _options(options: Mapping[str, Any]) -> str:
    """Return options as in a study file."""
    values = {key: f"{{{_options(value)}}}" if isinstance(value, Mapping) else value for key, value in options.items()}
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def _origin(results: Results, found: Sequence[Scenario]) -> dict[str, Any]:
    """Return what is needed to run the study again, and what went wrong."""
    resolved = {**results.provenance, "configuration": results.configuration}
    return {
        "begun": ", ".join(f"{name} {results.provenance[name]}" for name in ("version", "commit", "date")),
        "made_with": Counter(results.runs.get("made_with", ())),
        "finished": len(results.runs),
        "planned": len(unchecked_plan(results.configuration).tasks()),
        "missing": list(_missing(results, found)),
        "failed": len(results.failed),
        "errors": Counter(str(error).strip().splitlines()[-1] for error in results.failed["error"]),
        "resolved": json.dumps(resolved, indent=2, ensure_ascii=False),
    }
