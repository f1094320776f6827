"""The report of a study: one page that explains itself, with every figure and table as a file beside it.

report.html            no network, no scripts; for a phone, a wide screen and print, light and dark
figures/NAME.pdf       each figure, for a paper
tables/NAME.csv, .tex  each table
"""

from __future__ import annotations

import html
import json
import math
import os
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from omg_cmdp.persistence import whole_file
from omg_lab.reports.agent_figures import agent_figures
from omg_lab.reports.drawing import Figure
from omg_lab.reports.figures import comparing_figures
from omg_lab.reports.formats import count, listing, plural, unbroken
from omg_lab.reports.policies import shown_policies
from omg_lab.reports.rates import Sweep, rate_figure, rate_sentence, rate_table, sweeps
from omg_lab.reports.returns import Earnings, earnings, earnings_figure, earnings_table
from omg_lab.reports.returns import headline as earned_headline
from omg_lab.reports.scenarios import Scenario, played_worlds, scenarios
from omg_lab.reports.sentences import agent_sentences, chance_or_not, headline, sentences, title, totals
from omg_lab.reports.tables import Table, agents_table, comparisons_table
from omg_lab.studies.catalogue import KINDS, Part
from omg_lab.studies.results import Policies, Results

SINGULAR = {"worlds": "world", "adversaries": "adversary", "agents": "agent", "seeds": "seed"}
READING = """
<h2 id="reading">How to read this page</h2>
<p>Before each episode a <b>context</b> arrives: a patient, a visitor, a machine. The agent answers with a
<b>policy</b>, plays one episode of a few steps with it, and learns from what it saw. What each action earns and where
it leads depends on the context, in a way that the agent has to learn.</p>
<p><b>Regret</b> is what an agent lost: in each episode, the expected reward of the best policy for this context minus
that of the policy played, summed over the episodes. It is computed exactly from the true world, not estimated from
rewards. Less is better. If a curve becomes flat, the agent has learned all it needs.</p>
<p>Everything was repeated with several <b>seeds</b>, which change the details of the world and everything random; all
agents meet the same ones. A <b>95 % interval</b> says how well these seeds determine the mean. An <b>adversary</b>
decides which context comes next.</p>
"""


def write_report(results: Results, directory: str | os.PathLike[str]) -> Path:
    """Write the report of `results` into `directory`, and return the path of its page."""
    folder, found = Path(directory), scenarios(results) if len(results.runs) else []
    earned = earnings(results) if len(results.runs) else []
    if not found and not earned:
        raise ValueError("`results` must hold a seed that all agents of a scenario have finished, got none")
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [READING, _what_was_run(results)]
    varied = sweeps(results)
    if varied:
        parts.append(_rates(varied, found, folder))
    if len(found) > 1:
        parts.append(_overview(found, folder))
    policies = {} if varied else results.policies
    parts.extend(_scenario(scenario, folder, policies, alone=len(found) == 1) for scenario in found)
    parts.extend(_earnings(each, folder, policies) for each in earned)
    configuration = results.configuration
    page = string.Template(resources.files("omg_lab.reports").joinpath("templates/report.html").read_text("utf-8"))
    path = folder / "report.html"
    text = page.substitute(
        title=html.escape(title(configuration)),
        subtitle=html.escape(_subtitle(results)),
        headline=unbroken(html.escape(_headline(varied, found, earned))),
        body=unbroken("\n".join(parts)),
        footer=_footer(results),
    )
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _headline(varied: Sequence[Sweep], found: Sequence[Scenario], earned: Sequence[Earnings]) -> str:
    if varied:
        return " ".join(rate_sentence(sweep) for sweep in varied)
    if not found:
        return " ".join(earned_headline(each) for each in earned)
    return headline(totals(found), found[0].focus, len(found))


def _subtitle(results: Results) -> str:
    configuration = results.configuration
    sizes = [(len(configuration[table]), table) for table in ("worlds", "adversaries", "agents", "seeds")]
    grid = " × ".join(f"{many} {table if many > 1 else SINGULAR[table]}" for many, table in sizes)
    vary, episodes = list(configuration["vary"]), count(configuration["episodes"])
    text = f"{grid}, in several sizes {listing(vary)}" if vary else f"{grid}, {episodes} episodes each"
    if late := configuration.get("delay"):
        text += f", feedback {_late(late)}"
    rest = sentences(configuration["description"])[1]
    return f"{rest} {configuration['name']}: {text}.".strip()


def _what_was_run(results: Results) -> str:
    """Return the section that describes every world, adversary and agent."""
    columns = []
    for table, kinds in KINDS.items():
        entries = []
        for name, resolved in results.configuration[table].items():
            part = Part.of(name, resolved)
            outside = "given in the call" if part.kind.startswith("given:") else part.kind
            about = kinds[part.kind].description if part.kind in kinds else outside
            text = about + (f" ({_options(part.options)})" if part.options else "")
            entries.append(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>")
        columns.append(f"<div><h3>{table.capitalize()}</h3><dl>{''.join(entries)}</dl></div>")
    return f'<h2 id="ran">What was run</h2><div class="parts">{"".join(columns)}</div>'


def _late(delay: Any) -> str:
    """Return how late feedback is, in words."""
    return f"{count(delay)} episodes late" if isinstance(delay, int) else f"late ({_options(delay)})"


def _options(options: Mapping[str, Any]) -> str:
    """Return options as in a study file."""
    values = {key: f"{{{_options(value)}}}" if isinstance(value, Mapping) else value for key, value in options.items()}
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def _rates(varied: Sequence[Sweep], found: Sequence[Scenario], folder: Path) -> str:
    """Return the section about the sizes that were varied."""
    known = {(scenario.world, scenario.adversary): scenario for scenario in found}
    figures = [rate_figure(sweep, sweep.bound(known)) for sweep in varied]
    tables = [rate_table(sweep) for sweep in varied]
    return f'<h2 id="rates">How regret grows</h2>{_figures(folder, figures)}{_tables(folder, *tables)}'


def _overview(found: Sequence[Scenario], folder: Path) -> str:
    """Return the section about all scenarios together, with links to them."""
    finals = totals(found)
    explored = {agent: sum(scenario.exploring(agent) for scenario in found) for agent in finals.columns}
    spent = {agent: float(np.mean([scenario.milliseconds(agent) for scenario in found])) for agent in finals.columns}
    won = Counter(scenario.agents[0] for scenario in found)
    text = listing([f"{agent} in {many}" for agent, many in won.most_common()])
    links = "".join(f'<li><a href="#{each.name}">{html.escape(each.title)}</a></li>' for each in found)
    return (
        f'<h2 id="overview">The {len(found)} scenarios together</h2>'
        f"<p>A scenario is one world under one adversary. Least regret: {html.escape(text)}.</p>"
        f"{_tables(folder, agents_table('overview', finals, explored, spent))}"
        f"<nav><p>The scenarios:</p><ul>{links}</ul></nav>"
    )


def _scenario(scenario: Scenario, folder: Path, policies: Mapping[str, Policies], *, alone: bool) -> str:
    """Return the section about one scenario; if it is the only one, the headline of the page has its result."""
    finals, focus = scenario.finals, scenario.focus
    spent = {agent: scenario.milliseconds(agent) for agent in scenario.agents}
    explored = {agent: scenario.exploring(agent) for agent in scenario.agents}
    own_figures = agent_figures(scenario)
    parts = [
        f'<h2 id="{scenario.name}">{html.escape(scenario.title)}</h2>',
        "" if alone else f"<p>{html.escape(headline(finals, focus))}</p>",
        _tables(folder, agents_table(scenario.name, finals, explored, spent)),
        _figures(folder, comparing_figures(scenario)),
    ]
    comparisons = comparisons_table(scenario.name, finals, focus)
    if comparisons is not None:
        parts += [
            "<h3>Chance or not</h3>",
            f"<p>{html.escape(chance_or_not(scenario))}</p>",
            _tables(folder, comparisons),
        ]
    if own_figures:
        told = "".join(f"<p>{html.escape(text)}</p>" for text in agent_sentences(scenario))
        parts += [f"<h3>Inside {html.escape(focus)}</h3>", told, _figures(folder, own_figures)]
    parts.append(_advice(scenario, folder, policies))
    return f"<section>{''.join(parts)}</section>"


def _advice(scenario: Scenario | Earnings, folder: Path, policies: Mapping[str, Policies]) -> str:
    """Return what the agent in focus would do now, if that was kept."""
    pictures, decisions, reading = shown_policies(scenario, policies) if policies else ([], [], "")
    if not pictures:
        return ""
    heading = f"<h3>What {html.escape(scenario.focus)} would do now</h3><p>{html.escape(reading)}</p>"
    return f"{heading}{_figures(folder, pictures)}{_tables(folder, *decisions)}"


def _earnings(earned: Earnings, folder: Path, policies: Mapping[str, Policies]) -> str:
    """Return the section about a world whose truth is unknown."""
    parts = [
        f'<h2 id="{earned.name}">{html.escape(earned.title)}</h2>',
        f"<p>{html.escape(earned_headline(earned))}</p>",
        _tables(folder, earnings_table(earned)),
        _figures(folder, [earnings_figure(earned)]),
        _advice(earned, folder, policies),
    ]
    return f"<section>{''.join(parts)}</section>"


def _figures(folder: Path, figures: Iterable[Figure]) -> str:
    """Save the figures, and return their HTML."""
    shown = []
    for figure in figures:
        figure.save(folder / "figures")
        title, caption = html.escape(figure.title), html.escape(figure.caption)
        shown.append(f"<figure><h4>{title}</h4>{figure.svg()}<figcaption>{caption}</figcaption></figure>")
    full = " ".join(f"by-{columns}" for columns in (2, 3) if shown and len(shown) % columns == 0)
    return f'<div class="figures {full}">{"".join(shown)}</div>'


def _tables(folder: Path, *tables: Table) -> str:
    """Save the tables, and return their HTML."""
    for table in tables:
        table.save(folder / "tables")
    return "".join(table.html() for table in tables)


def _footer(results: Results) -> str:
    """Return what is needed to run the study again, and what went wrong."""
    configuration = results.configuration
    planned = len(played_worlds(configuration)) * math.prod(len(configuration[t]) for t in SINGULAR if t != "worlds")
    begun = ", ".join(f"{name} {results.provenance[name]}" for name in ("version", "commit", "date"))
    made = Counter(results.runs["made_with"])
    versions = "".join(f"<li>{plural(many, 'run')}: {html.escape(text)}</li>" for text, many in made.items())
    parts = [
        f"<p>Begun with omg-cmdp: {html.escape(begun)}. Played with:</p><ul>{versions}</ul>",
        f"<p>{count(len(results.runs))} of {count(planned)} runs are finished. A scenario is shown with the seeds that "
        "all its agents have finished.</p>",
    ]
    if len(results.failed):
        errors = Counter(str(error).strip().splitlines()[-1] for error in results.failed["error"])
        text = "".join(
            f"<li>{plural(many, 'run')}: <code>{html.escape(error)}</code></li>" for error, many in errors.items()
        )
        parts.append(f"<p>{plural(len(results.failed), 'run')} failed:</p><ul>{text}</ul>")
    resolved = json.dumps({**results.provenance, "configuration": configuration}, indent=2, ensure_ascii=False)
    parts.append(
        "<p>Every figure is in <code>figures/</code> as PDF, every table in <code>tables/</code> as CSV and LaTeX.</p>"
    )
    parts.append(f"<details><summary>Configuration and versions</summary><pre>{html.escape(resolved)}</pre></details>")
    return "".join(parts)
