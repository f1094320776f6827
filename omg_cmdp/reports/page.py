"""The report of an experiment: one page that explains itself, with every figure and table as a file beside it.

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

from omg_cmdp.reports.agent_figures import agent_figures
from omg_cmdp.reports.comparisons import Verdict, compare_all, enough_seeds
from omg_cmdp.reports.contests import Contest, contests, places, regret_interval
from omg_cmdp.reports.drawing import Figure
from omg_cmdp.reports.figures import comparing_figures
from omg_cmdp.reports.formats import chance, count, estimate, listing, number, plural
from omg_cmdp.reports.rates import RateStudy, rate_figure, rate_studies, rate_table, rate_words
from omg_cmdp.reports.tables import SIGNIFICANT, Table, agents_table, comparisons_table
from omg_cmdp.studies.config import KINDS
from omg_cmdp.studies.results import Results

if TYPE_CHECKING:
    import pandas

SINGULAR = {"worlds": "world", "adversaries": "adversary", "agents": "agent", "seeds": "seed"}
AGAINST = "Compared with always playing the best policy:"
READING = """
<h2 id="reading">How to read this page</h2>
<p>Before each episode a <b>context</b> arrives: a patient, a visitor, a machine. The agent answers with a
<b>policy</b>, plays one episode of a few steps with it, and learns from what it saw. What each action earns and where
it leads depends on the context, in a way that the agent does not know at first.</p>
<p><b>Regret</b> is what an agent lost: in each episode, the expected reward of the best policy for this context minus
that of the policy that was played, summed over the episodes. It is computed exactly from the true world, not estimated
from rewards. Less is better; a curve that becomes flat belongs to an agent that has learned all it needs.</p>
<p>Everything was repeated with several <b>seeds</b>, which change the world's details and all chance; agents meet the
same ones. A <b>95 % interval</b> says how well these seeds determine the mean. An <b>adversary</b> decides which
context comes next.</p>
"""


def write_report(results: Results, directory: str | os.PathLike[str]) -> Path:
    """Write the report of `results` into `directory`, and return the path of its page."""
    folder, found = Path(directory), contests(results)
    if not found:
        raise ValueError("`results` must hold a seed that all agents of a contest have finished, got none")
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [READING, _ran(results)]
    studies = rate_studies(results)
    if studies:
        parts.append(_rates(studies, found, folder))
    if len(found) > 1:
        parts.append(_overview(found, folder))
    parts.extend(_contest(contest, folder, alone=len(found) == 1) for contest in found)
    configuration = results.configuration
    page = string.Template(resources.files("omg_cmdp.reports").joinpath("templates/report.html").read_text("utf-8"))
    path = folder / "report.html"
    text = page.substitute(
        title=html.escape(configuration["name"]),
        subtitle=html.escape(_subtitle(results)),
        headline=html.escape(
            " ".join(rate_words(study) for study in studies)
            if studies
            else f"{AGAINST} {headline(totals(found), found[0].hero, len(found))}"
        ),
        body="\n".join(parts),
        footer=_footer(results),
    )
    path.write_text(text, encoding="utf-8")
    return path


def totals(found: Sequence[Contest]) -> pandas.DataFrame:
    """Return the regret summed over contests: a row per seed, a column per agent that played in all, best first."""
    table = functools.reduce(operator.add, (contest.finals for contest in found))
    table = table.dropna(axis="columns", how="all").dropna()
    return table[table.mean().sort_values(kind="stable").index]


def headline(finals: pandas.DataFrame, hero: str, contests: int = 1) -> str:
    """Return the result in words, whoever won; `finals` has a row per seed, a column per agent, best first."""
    own, rivals = regret_interval(finals[hero]), [agent for agent in finals.columns if agent != hero]
    where = "" if contests == 1 else f" over {contests} contests"
    if not rivals:
        return f"{hero} lost {estimate(*own)} in total{where}."
    rival, best = rivals[0], regret_interval(finals[rivals[0]])
    if own.mean <= best.mean:
        share = f", {100.0 * own.mean / best.mean:.0f} % of what the runner-up lost" if best.mean > 0.0 else ""
        words = f"{hero} lost least: {estimate(*own)} in total{where}{share} ({rival}, {number(best.mean)})."
    else:
        ratio = own.mean / best.mean if best.mean > 0.0 else math.nan
        times = "" if math.isnan(ratio) else ", about as much" if ratio < 1.05 else f", {number(ratio)} times as much"
        words = f"{rival} lost least: {estimate(*best)} in total{where}. {hero} lost {estimate(*own)}{times}."
    pairs = compare_all({agent: finals[agent].to_numpy() for agent in (hero, *rivals)})
    p = pairs[0].adjusted  # the hero and its best rival
    if p <= SIGNIFICANT:
        words += (
            f" The difference is more than chance (p = {chance(p)}, corrected for {plural(len(pairs), 'comparison')})."
        )
    else:
        words += f" With {plural(len(finals), 'seed')} the difference may be chance (p = {chance(p)}, corrected)."
    worst = finals.columns[-1]
    if worst not in (hero, rival):
        words += f" {worst} lost most, {number(finals[worst].mean())}."
    return words


def _subtitle(results: Results) -> str:
    configuration = results.configuration
    sizes = [(len(configuration[table]), table) for table in ("worlds", "adversaries", "agents", "seeds")]
    grid = " × ".join(f"{many} {table if many > 1 else SINGULAR[table]}" for many, table in sizes)
    vary, episodes = list(configuration["vary"]), count(configuration["episodes"])
    told = f"{grid}, in several sizes {listing(vary)}" if vary else f"{grid}, {episodes} episodes each"
    described = configuration["description"].strip().rstrip(".")
    return f"{described[:1].upper()}{described[1:]}. {told}." if described else f"{told}."


def _ran(results: Results) -> str:
    """Return what was run: every part in its own words."""
    columns = []
    for table, kinds in KINDS.items():
        entries = []
        for name, resolved in results.configuration[table].items():
            options = {key: value for key, value in resolved.items() if key != "kind"}
            told = kinds[resolved["kind"]].description + (f" ({_options(options)})" if options else "")
            entries.append(f"<dt>{html.escape(name)}</dt><dd>{html.escape(told)}</dd>")
        columns.append(f"<div><h3>{table.capitalize()}</h3><dl>{''.join(entries)}</dl></div>")
    return f'<h2 id="ran">What was run</h2><div class="parts">{"".join(columns)}</div>'


def _options(options: Mapping[str, Any]) -> str:
    """Return options as a configuration has them."""
    values = {key: f"{{{_options(value)}}}" if isinstance(value, Mapping) else value for key, value in options.items()}
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def _rates(studies: Sequence[RateStudy], found: Sequence[Contest], folder: Path) -> str:
    """Return the section about what was varied."""
    known = {(contest.world, contest.adversary): contest for contest in found}
    figures = [rate_figure(study, study.bound(known)) for study in studies]
    tables = [rate_table(study) for study in studies]
    return f'<h2 id="rates">How regret grows</h2>{_figures(folder, figures)}{_tables(folder, *tables)}'


def _overview(found: Sequence[Contest], folder: Path) -> str:
    """Return the section about all contests together, with links to them."""
    finals = totals(found)
    spent = {agent: float(np.mean([contest.milliseconds(agent) for contest in found])) for agent in finals.columns}
    won = Counter(contest.agents[0] for contest in found)
    told = listing([f"{agent} in {many}" for agent, many in won.most_common()])
    links = "".join(f'<li><a href="#{each.name}">{html.escape(each.title)}</a></li>' for each in found)
    return (
        f'<h2 id="overview">The {len(found)} contests together</h2>'
        f"<p>A contest is one world under one adversary. Least regret: {html.escape(told)}.</p>"
        f"{_tables(folder, agents_table('overview', finals, spent))}<nav><p>The contests:</p><ul>{links}</ul></nav>"
    )


def _contest(contest: Contest, folder: Path, *, alone: bool) -> str:
    """Return the section about one contest; if it is the only one, the page's headline has said who won."""
    finals, hero = contest.finals, contest.hero
    spent = {agent: contest.milliseconds(agent) for agent in contest.agents}
    inside = agent_figures(contest)
    parts = [
        f'<h2 id="{contest.name}">{html.escape(contest.title)}</h2>',
        "" if alone else f"<p>{html.escape(headline(finals, hero))}</p>",
        _tables(folder, agents_table(contest.name, finals, spent)),
        _figures(folder, comparing_figures(contest)),
    ]
    comparisons = comparisons_table(contest.name, finals, hero)
    if comparisons is not None:
        parts += ["<h3>Chance or not</h3>", f"<p>{html.escape(_chance(contest))}</p>", _tables(folder, comparisons)]
    if inside:
        parts += [f"<h3>Inside {html.escape(hero)}</h3>", _figures(folder, inside)]
    return f"<section>{''.join(parts)}</section>"


def _chance(contest: Contest) -> str:
    """Return how to read the comparisons, and whether more seeds are needed."""
    seeds, hero, rival = len(contest.finals), contest.hero, contest.rivals[0]
    least, pairs = 2.0 ** (1 - seeds), math.comb(len(contest.agents), 2)
    words = (
        "Agents met the same seeds, and are compared seed by seed. p is the chance of a difference as large as this if "
        f"two agents were equally good, corrected for looking at {plural(pairs, 'pair')}; up to {SIGNIFICANT} a "
        "difference counts as more than chance. "
    )
    if least > SIGNIFICANT:
        words += f"With {plural(seeds, 'seed')} no p can be below {number(least)}: it takes 6 seeds at least. "
    level = 1.0 - SIGNIFICANT / len(contest.rivals)  # the rival is the best of so many
    watched = enough_seeds((contest.finals[hero] - contest.finals[rival]).sort_index(), level)
    if watched.verdict is Verdict.UNDECIDED:
        return words + (
            f"Another test, which may be repeated after every seed, has not decided yet whether {hero} or {rival} is "
            f"better; about {plural(watched.more, 'more seed')} may do."
        )
    better, worse = (hero, rival) if watched.verdict is Verdict.FIRST else (rival, hero)
    return words + (
        f"Another test, which may be repeated after every seed, found {better} better than {worse} after "
        f"{plural(watched.seeds, 'seed')}."
    )


def _figures(folder: Path, figures: Iterable[Figure]) -> str:
    """Save the figures, and return them for the page."""
    shown = []
    for figure in figures:
        figure.save(folder / "figures")
        words = (
            f"<h4>{html.escape(figure.title)}</h4>{figure.svg()}<figcaption>{html.escape(figure.caption)}</figcaption>"
        )
        shown.append(f"<figure>{words}</figure>")
    return f'<div class="figures">{"".join(shown)}</div>'


def _tables(folder: Path, *tables: Table) -> str:
    """Save the tables, and return them for the page."""
    for table in tables:
        table.save(folder / "tables")
    return "".join(table.html() for table in tables)


def _footer(results: Results) -> str:
    """Return what is needed to run it again, and what went wrong."""
    configuration = results.configuration
    planned = len(places(configuration)) * math.prod(len(configuration[t]) for t in SINGULAR if t != "worlds")
    made = ", ".join(f"{name} {results.provenance[name]}" for name in ("version", "commit", "date"))
    parts = [
        f"<p>Made with omg-cmdp: {html.escape(made)}.</p>",
        f"<p>{count(len(results.runs))} of {count(planned)} runs are finished. What is shown of a contest is from the "
        "seeds that all its agents have finished.</p>",
    ]
    if len(results.failed):
        errors = Counter(str(error).strip().splitlines()[-1] for error in results.failed["error"])
        told = "".join(
            f"<li>{plural(many, 'run')}: <code>{html.escape(error)}</code></li>" for error, many in errors.items()
        )
        parts.append(f"<p>{plural(len(results.failed), 'run')} failed:</p><ul>{told}</ul>")
    resolved = json.dumps({**results.provenance, "configuration": configuration}, indent=2, ensure_ascii=False)
    parts.append(
        "<p>Every figure is in <code>figures/</code> as PDF, every table in <code>tables/</code> as CSV and LaTeX.</p>"
    )
    parts.append(f"<details><summary>Configuration and versions</summary><pre>{html.escape(resolved)}</pre></details>")
    return "".join(parts)
