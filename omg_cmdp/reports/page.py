"""The report of a study: one page that explains itself, with every figure and table as a file beside it.

report.html            no network, no scripts; for a phone, a wide screen and print, light and dark
figures/NAME.pdf       each figure, for a paper
tables/NAME.csv, .tex  each table
"""

from __future__ import annotations

import functools
import html
import json
import math
import operator
import os
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.persistence import whole_file
from omg_cmdp.reports.agent_figures import agent_figures
from omg_cmdp.reports.comparisons import Verdict, compare_all, enough_seeds
from omg_cmdp.reports.drawing import Figure
from omg_cmdp.reports.figures import comparing_figures
from omg_cmdp.reports.formats import chance, count, estimate, listing, number, plural
from omg_cmdp.reports.rates import Sweep, rate_figure, rate_sentence, rate_table, sweeps
from omg_cmdp.reports.scenarios import Scenario, played_worlds, regret_interval, scenarios
from omg_cmdp.reports.tables import SIGNIFICANT, Table, agents_table, comparisons_table
from omg_cmdp.studies.catalogue import KINDS
from omg_cmdp.studies.results import Results

if TYPE_CHECKING:
    import pandas

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
    if not found:
        raise ValueError("`results` must hold a seed that all agents of a scenario have finished, got none")
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [READING, _what_was_run(results)]
    varied = sweeps(results)
    if varied:
        parts.append(_rates(varied, found, folder))
    if len(found) > 1:
        parts.append(_overview(found, folder))
    parts.extend(_scenario(scenario, folder, alone=len(found) == 1) for scenario in found)
    configuration = results.configuration
    page = string.Template(resources.files("omg_cmdp.reports").joinpath("templates/report.html").read_text("utf-8"))
    path = folder / "report.html"
    text = page.substitute(
        title=html.escape(configuration["name"]),
        subtitle=html.escape(_subtitle(results)),
        headline=html.escape(
            " ".join(rate_sentence(sweep) for sweep in varied)
            if varied
            else f"Compared with always playing the best policy, {headline(totals(found), found[0].focus, len(found))}"
        ),
        body="\n".join(parts),
        footer=_footer(results),
    )
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def totals(found: Sequence[Scenario]) -> pandas.DataFrame:
    """Return the regret summed over scenarios: a row per seed, a column for every agent in all of them, best first."""
    table = functools.reduce(operator.add, (scenario.finals for scenario in found))
    table = table.dropna(axis="columns", how="all").dropna()
    return table[table.mean().sort_values(kind="stable").index]


def headline(finals: pandas.DataFrame, focus: str, scenario_count: int = 1) -> str:
    """Return the result in words; `finals` has a row per seed, a column per agent, best first."""
    own, rivals = regret_interval(finals[focus]), [agent for agent in finals.columns if agent != focus]
    where = "" if scenario_count == 1 else f" over {scenario_count} scenarios"
    if not rivals:
        return f"{focus} lost {estimate(*own)} in total{where}."
    rival, best = rivals[0], regret_interval(finals[rivals[0]])
    if own.mean <= best.mean:
        share = f", {100.0 * own.mean / best.mean:.0f} % of what the runner-up lost" if best.mean > 0.0 else ""
        words = f"{focus} lost least: {estimate(*own)} in total{where}{share} ({rival}, {number(best.mean)})."
    else:
        ratio = own.mean / best.mean if best.mean > 0.0 else math.nan
        times = "" if math.isnan(ratio) else ", about as much" if ratio < 1.05 else f", {number(ratio)} times as much"
        words = f"{rival} lost least: {estimate(*best)} in total{where}. {focus} lost {estimate(*own)}{times}."
    pairs = compare_all({agent: finals[agent].to_numpy() for agent in (focus, *rivals)})
    p = pairs[0].adjusted  # the focus and its best rival
    if p <= SIGNIFICANT:
        words += (
            f" The difference is more than chance (p = {chance(p)}, corrected for {plural(len(pairs), 'comparison')})."
        )
    else:
        words += f" With {plural(len(finals), 'seed')}, the difference may be chance (p = {chance(p)}, corrected)."
    worst = finals.columns[-1]
    if worst not in (focus, rival):
        words += f" {worst} lost most, {number(finals[worst].mean())}."
    return words


def _subtitle(results: Results) -> str:
    configuration = results.configuration
    sizes = [(len(configuration[table]), table) for table in ("worlds", "adversaries", "agents", "seeds")]
    grid = " × ".join(f"{many} {table if many > 1 else SINGULAR[table]}" for many, table in sizes)
    vary, episodes = list(configuration["vary"]), count(configuration["episodes"])
    text = f"{grid}, in several sizes {listing(vary)}" if vary else f"{grid}, {episodes} episodes each"
    described = configuration["description"].strip().rstrip(".")
    return f"{described[:1].upper()}{described[1:]}. {text}." if described else f"{text}."


def _what_was_run(results: Results) -> str:
    """Return the section that describes every world, adversary and agent."""
    columns = []
    for table, kinds in KINDS.items():
        entries = []
        for name, resolved in results.configuration[table].items():
            options = {key: value for key, value in resolved.items() if key != "kind"}
            text = kinds[resolved["kind"]].description + (f" ({_options(options)})" if options else "")
            entries.append(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>")
        columns.append(f"<div><h3>{table.capitalize()}</h3><dl>{''.join(entries)}</dl></div>")
    return f'<h2 id="ran">What was run</h2><div class="parts">{"".join(columns)}</div>'


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
    spent = {agent: float(np.mean([scenario.milliseconds(agent) for scenario in found])) for agent in finals.columns}
    won = Counter(scenario.agents[0] for scenario in found)
    text = listing([f"{agent} in {many}" for agent, many in won.most_common()])
    links = "".join(f'<li><a href="#{each.name}">{html.escape(each.title)}</a></li>' for each in found)
    return (
        f'<h2 id="overview">The {len(found)} scenarios together</h2>'
        f"<p>A scenario is one world under one adversary. Least regret: {html.escape(text)}.</p>"
        f"{_tables(folder, agents_table('overview', finals, spent))}<nav><p>The scenarios:</p><ul>{links}</ul></nav>"
    )


def _scenario(scenario: Scenario, folder: Path, *, alone: bool) -> str:
    """Return the section about one scenario; if it is the only one, the headline of the page has its result."""
    finals, focus = scenario.finals, scenario.focus
    spent = {agent: scenario.milliseconds(agent) for agent in scenario.agents}
    own_figures = agent_figures(scenario)
    parts = [
        f'<h2 id="{scenario.name}">{html.escape(scenario.title)}</h2>',
        "" if alone else f"<p>{html.escape(headline(finals, focus))}</p>",
        _tables(folder, agents_table(scenario.name, finals, spent)),
        _figures(folder, comparing_figures(scenario)),
    ]
    comparisons = comparisons_table(scenario.name, finals, focus)
    if comparisons is not None:
        parts += ["<h3>Chance or not</h3>", f"<p>{html.escape(_chance(scenario))}</p>", _tables(folder, comparisons)]
    if own_figures:
        parts += [f"<h3>Inside {html.escape(focus)}</h3>", _figures(folder, own_figures)]
    return f"<section>{''.join(parts)}</section>"


def _chance(scenario: Scenario) -> str:
    """Return how to read the comparisons, and whether more seeds are needed."""
    seeds, focus, rival = len(scenario.finals), scenario.focus, scenario.rivals[0]
    least, pairs = 2.0 ** (1 - seeds), math.comb(len(scenario.agents), 2)
    words = (
        "All agents met the same seeds, and are compared seed by seed. p is the chance of a difference this large if "
        f"both agents were equally good, corrected for {plural(pairs, 'comparison')}; if it is at most {SIGNIFICANT}, "
        "the difference counts as more than chance. "
    )
    if least > SIGNIFICANT:
        words += f"With {plural(seeds, 'seed')}, p cannot be below {number(least)}: at least 6 seeds are needed. "
    level = 1.0 - SIGNIFICANT / len(scenario.rivals)  # the rival is the best of these
    watched = enough_seeds((scenario.finals[focus] - scenario.finals[rival]).sort_index(), level)
    if watched.verdict is Verdict.UNDECIDED:
        return words + (
            f"A second test, which may be repeated after every seed, has not yet decided whether {focus} or {rival} is "
            f"better; about {plural(watched.more, 'more seed')} may be enough."
        )
    better, worse = (focus, rival) if watched.verdict is Verdict.FIRST else (rival, focus)
    return words + (
        f"A second test, which may be repeated after every seed, found {better} better than {worse} after "
        f"{plural(watched.seeds, 'seed')}."
    )


def _figures(folder: Path, figures: Iterable[Figure]) -> str:
    """Save the figures, and return their HTML."""
    shown = []
    for figure in figures:
        figure.save(folder / "figures")
        title, caption = html.escape(figure.title), html.escape(figure.caption)
        shown.append(f"<figure><h4>{title}</h4>{figure.svg()}<figcaption>{caption}</figcaption></figure>")
    return f'<div class="figures">{"".join(shown)}</div>'


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
