"""The report is one page that stands alone, says what the numbers say, and fits the screens it is read on."""

import csv
import dataclasses
import html.parser
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest

from lab.tests.studies.examples import changed, results_of, run_study
from omg_lab.reports.page import _origin, write_report
from omg_lab.reports.scenarios import Scenario, scenarios
from omg_lab.reports.sentences import chance_or_not, exploring_pays, headline, title, where_exploring_pays
from omg_lab.reports.tables import ReportTable, agents_table, cell, comparisons_table
from omg_lab.reports.words import render, say

VOID = {"meta", "br", "wbr"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    written = tmp_path_factory.mktemp("report")
    assert write_report(results_of(), written) == written / "report.html"
    return written


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


class Outline(html.parser.HTMLParser):
    """Checks nesting, and collects elements, identifiers and links."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.ids, self.links = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.seen.append((tag, tuple(self.open)))
        self.ids.extend(value for key, value in attributes if key == "id")
        self.links.extend(named[key] for key in ("href", "src", "xlink:href") if key in named)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_its_names_are_unique(page):
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))


def test_the_page_stands_alone(page):
    assert "http" not in page
    assert "<script" not in page
    assert "@import" not in page
    outline = Outline(page)
    assert all(link.startswith("#") and link[1:] in outline.ids for link in outline.links)


def test_every_figure_has_a_heading_a_picture_with_a_title_and_a_caption(page):
    figures = re.findall(r"<figure>.*?</figure>", page, flags=re.DOTALL)
    assert len(figures) == 12
    for figure in figures:
        assert re.search(
            r'<h4>.+</h4><svg [^>]*role="img" aria-labelledby="([^"]+)"><title id="\1">.+?</title>', figure
        )
        assert re.search(r"<figcaption>.{60,}</figcaption>", figure)


def words(page):
    """Return the sentences of a page: paragraphs, captions and the headline."""
    told = re.findall(r"<(p|figcaption|caption)(?: [^>]*)?>(.*?)</\1>", page, flags=re.DOTALL)
    return [sentence for _, text in told for sentence in re.split(r"(?<=[.!?])\s+", re.sub(r"<[^>]*>", "", text))]


def test_no_sentence_begins_with_the_name_of_an_agent_or_a_small_letter(page):
    sentences = words(page)
    assert len(sentences) > 50
    assert not [each for each in sentences if re.search(r"[a-z)][.;:!?][A-Z]", each)], "a space is missing"
    assert [each for each in sentences if each[0].islower() and not each.startswith("small study: ")] == []


def test_no_line_is_broken_before_a_per_cent_sign(page):
    shown = re.sub(r"<(pre|style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "95\N{NO-BREAK SPACE}% interval" in shown
    assert not re.search(r"\d\s+%", shown.replace("\N{NO-BREAK SPACE}", ""))
    assert not re.search(r"\(p [=<]", shown)


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("a trial. Of two drugs.", "A trial"),
        ("", "small study"),
        ("  two\n lines ", "Two lines"),
        ("version 1.5 of it", "Version 1.5 of it"),
    ],
)
def test_the_title_is_what_the_study_says_of_itself(description, shown):
    assert title({"name": "small study", "description": description}) == shown


def test_rows_of_figures_are_full_wherever_they_are_set_side_by_side(page):
    rows = re.findall(r'<div class="figures ([^"]*)">(.*?)</figure></div>', page, flags=re.DOTALL)
    assert len(rows) == 6
    for classes, figures in rows:
        count = figures.count("<figure>")
        assert {f"by-{columns}" for columns in (2, 3) if count % columns == 0} == set(classes.split())


def test_each_figure_is_there_as_pdf_and_each_table_as_csv(folder):
    figures = {path.name for path in (folder / "figures").iterdir()}
    parts = ("totals", "regret", "errors", *(f"policy-{x}" for x in "abc"))
    assert figures == {f"{world}--iid-{part}.pdf" for world in ("treatment", "decoy") for part in parts}
    tables = {path.name for path in (folder / "tables").iterdir()}
    names = [
        f"{world}--iid-{part}" for world in ("treatment", "decoy") for part in ("agents", "comparisons", "policies")
    ]
    assert tables == {f"{name}.csv" for name in names}


@pytest.mark.slow
def test_writing_it_again_gives_the_same_page_and_builds_no_world(page, tmp_path, monkeypatch):
    for name in ("build_world", "build_adversary", "build_agent"):
        monkeypatch.setattr(f"omg_lab.studies.catalogue.{name}", None)
        monkeypatch.setattr(f"omg_lab.studies.plan.{name}", None)
    assert write_report(results_of(), tmp_path).read_text(encoding="utf-8") == page


def test_csv_holds_the_exact_numbers(folder):
    scenario = scenarios(results_of())[0]
    with (folder / "tables" / f"{scenario.name}-agents.csv").open(encoding="utf-8") as file:
        rows = {row["agent"]: row for row in csv.DictReader(file)}
    assert list(rows) == scenario.agents
    for agent, row in rows.items():
        assert float(row["regret"]) == scenario.finals[agent].mean()
        assert float(row["low"]) < float(row["regret"]) < float(row["high"])


@pytest.mark.slow
def test_names_descriptions_and_errors_are_text_and_never_markup(tmp_path):
    results = results_of()
    alone = results.runs[(results.runs["agent"] == "uniform") & (results.runs["world"] == "decoy")]
    hostile = {**results.configuration, "name": "<i>", "description": "<b>&$x. <script>alert(1)</script> ${body}"}
    failed = pandas.DataFrame({"run": ["a", "b"], "error": ["Traceback\nValueError: <odd>\n"] * 2})
    path = write_report(changed(results, configuration=hostile, runs=alone, failed=failed), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<h1>&lt;b&gt;&amp;$x</h1>" in text
    assert "&lt;/script&gt; ${body} &lt;i&gt;: 2 worlds" in text
    assert "2 runs: <code>ValueError: &lt;odd&gt;</code>" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "episodes", "told"),
    [
        ("[worlds.decoy]\n[agents.informed]\n[agents.omg]\ngamma = 'theory'", 20, "informed lost least: 0 "),
        ("[worlds.bandit]\n[agents.ucbvi]\ncover = 'blind'", 20, "ucbvi lost"),
        ("[worlds.decoy]\n[agents.omg]\n[agents.greedy]", 1, "of 4 runs are finished"),
        ("[worlds.decoy]\n[agents.'$a_$ <i> %']\nkind = 'omg'\n[agents.greedy]", 20, "Inside $a_$ &lt;i&gt; %"),
    ],
    ids=["no regret", "no model", "one episode", "odd names"],
)
def test_there_is_a_report_of_anything_that_runs(text, episodes, told, tmp_path):
    results = results_of("episodes = {episodes}\nseeds = {seeds}\n" + text, episodes=episodes, seeds=2)
    page = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert told in page
    assert Outline(page).open == []
    assert not re.search(r"\bnan\b|\binf\b", page)


@pytest.mark.slow
def test_a_report_is_made_of_a_directory(tmp_path):
    results = run_study("episodes = 30\nseeds = 2\n[worlds.decoy]\n[agents.omg]\n[agents.greedy]", tmp_path)
    page = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert "4 of 4 runs are finished" in page
    assert (tmp_path / "figures" / "decoy--iid-regret.pdf").exists()


def scenario(**means):
    """Return a scenario of eight seeds around each mean."""
    noise = np.linspace(-0.1, 0.1, 8)
    runs = pandas.DataFrame(
        [
            {"agent": agent, "seed": seed, "episodes": 10, "regret": regret, "best_policy_regret": regret / 2}
            for agent, mean in means.items()
            for seed, regret in enumerate(mean + noise if np.isscalar(mean) else mean)
        ]
    )
    log = runs.assign(episode=10, seconds_deciding=1e-3, seconds_learning=0.0)
    kinds = {"agents": {agent: {"kind": agent} for agent in means}}
    runs = runs.assign(regret_last_half=runs["regret"] / 4, largest_difference=200.0, earnable=100.0)
    return Scenario(world="x", adversary="y", configuration=kinds, runs=runs, log=log)


def test_regret_stands_beside_what_could_be_earned_and_exploring_has_no_negative_price():
    one = scenario(omg=3.0, greedy=40.0)
    assert "All in all, omg earned 97.0 % of what could be earned." in headline(one)
    assert shown(agents_table(one))["earned of the optimum"] == ["97.0 %", "60.0 %"]
    wrong = dataclasses.replace(one, runs=one.runs.assign(best_policy_regret=50.0))
    assert shown(agents_table(wrong))["spent on exploring"] == ["–", "–"]
    assert "exploring cost nothing" in say("price_of_exploring", focus="omg", lost=3.0, price=-0.1, late=0.0)
    unknown = dataclasses.replace(one, runs=one.runs.assign(earnable=np.nan))
    assert "earned of the optimum" not in shown(agents_table(unknown))
    assert "of what could be earned" not in headline(unknown)


@pytest.mark.parametrize(
    ("greedy", "said"),
    [
        (
            40.0,
            "Exploring pays in this world: greedy, which never explores, earned 60.0 % of what could be earned, and",
        ),
        (3.5, "Exploring need not pay in this world: greedy, which never explores, earned 96.5 % of what could be"),
        ([0, 0, 0, 0, 9, 9, 9, 9], "These seeds do not show whether exploring pays in this world"),
    ],
)
def test_a_world_says_whether_exploring_pays_in_it(greedy, said):
    [text] = exploring_pays(scenario(omg=3.0, greedy=np.array(greedy, float) if isinstance(greedy, list) else greedy))
    assert text.startswith(said)
    assert ("more than chance (p" in text) == (greedy == 40.0)
    assert exploring_pays(scenario(omg=3.0, uniform=9.0)) == []


def test_a_page_of_several_worlds_says_which_is_which():
    lock, trial = (
        dataclasses.replace(scenario(omg=3.0, greedy=g), world=w) for w, g in (("lock", 40.0), ("trial", 3.5))
    )
    assert where_exploring_pays([lock, trial, scenario(omg=3.0, uniform=9.0)]) == (
        "Exploring pays in lock. It need not pay in trial, where a greedy agent does as well."
    )
    assert where_exploring_pays([scenario(omg=3.0, uniform=9.0)]) == ""


def shown(table):
    """Return the texts of a table by heading."""
    return {heading: [*texts] for heading, texts in zip(table.columns, zip(*table.lines(), strict=True), strict=True)}


def test_the_headline_says_who_won_whoever_it_was():
    won = headline(scenario(omg=3.0, greedy=4.0, uniform=9.0))
    assert won.startswith("Against the best policy for each context, omg lost least: 3.00 (95 % interval")
    assert "75 % of what the runner-up lost (greedy, 4.00)." in won
    assert "omg was ahead of greedy on 8: that omg is ahead on most seeds is more than chance (p = 0.024)" in won
    assert "and it is not decided whose mean regret is better (p = 1.000)" in won
    assert "Most was lost by uniform: 9.00" in won
    lost = headline(scenario(omg=6.0, greedy=4.0))
    assert "greedy lost least: 4.00" in lost
    assert "omg lost 6.00" in lost
    assert "1.50 times as much" in lost
    assert "that greedy is ahead on most seeds is more than chance" in lost


def test_the_headline_does_not_call_luck_a_win():
    told = headline(scenario(omg=3.0, greedy=3.01 + np.linspace(0.1, -0.1, 8)))
    assert "With 8 seeds, omg was ahead of greedy on 4: this does not show which of the two is ahead on most" in told


def test_an_agent_that_is_ahead_on_most_seeds_and_fails_rarely_is_not_called_better_on_average():
    rare = scenario(omg=np.array([1.0] * 19 + [101.0]), greedy=np.full(20, 2.0))
    told = headline(rare)
    assert "greedy lost least: 2.00" in told
    assert "that omg is ahead on most seeds is more than chance" in told
    assert "it is not decided whose mean regret is better" in told
    assert "could differ by 200" in chance_or_not(rare)


def test_too_few_seeds_are_said_to_be_too_few():
    few = scenario(omg=np.arange(3.0), greedy=9.0 + np.arange(3.0), uniform=20.0 + np.arange(3.0))
    assert "With 3 seeds the test of most seeds cannot decide: it needs 7, even if all of them agree." in chance_or_not(
        few
    )


def test_without_a_bound_averages_are_not_compared():
    one = scenario(omg=3.0, greedy=4.0)
    for largest in (np.nan, 0.5):  # unknown, or exceeded
        unknown = dataclasses.replace(one, runs=one.runs.assign(largest_difference=largest))
        assert unknown.pairs["greedy"].mean is None
        assert "their means are not compared" in headline(unknown)
        assert "Averages are not tested" in chance_or_not(unknown)
        assert shown(comparisons_table(unknown, unknown.pairs.values()))["better on average"] == ["not tested"]


def test_a_table_shows_comparisons_with_the_focus():
    one = scenario(omg=3.0, greedy=4.0, uniform=9.0)
    table = comparisons_table(one, one.pairs.values())
    assert shown(table)["second"] == ["greedy", "uniform"]
    assert shown(table)["first lost less on"] == ["8 of 8", "8 of 8"]
    assert shown(table)["better on most seeds"] == ["omg (0.024)", "omg (0.024)"]
    assert all(text.startswith("undecided (1.000): ") for text in shown(table)["better on average"])
    assert [(row["first"], row["second"]) for row in table.rows] == [("omg", "greedy"), ("omg", "uniform")]
    assert len(one.compare()) == 3


def test_an_agent_without_regret_has_a_table_too():
    table = shown(agents_table(scenario(informed=np.zeros(8), omg=1.0)))
    assert table["mean regret"][0] == "0"
    assert table["in the last half"] == ["0 %", "25 %"]
    assert table["spent on exploring"] == ["0", "0.500"]
    assert table["× best"] == ["–", "–"]


def test_no_interval_of_a_regret_is_below_zero():
    table = agents_table(scenario(omg=np.array([0.0, 0.0, 9.0])))
    assert table.rows[0]["low"] == 0.0
    assert shown(table)["95 % interval"] == ["0 to 15.9"]


def test_names_are_never_live_in_a_spreadsheet(tmp_path):
    hostile = ["=1+1", "*", "+a", "-a", "@a", "a=b"]
    raw = [{"name": name, "regret": -1.5} for name in hostile]
    columns = {"a": cell("name"), "b": lambda row: "1"}
    table = ReportTable(name="x", caption="a", rows=raw, columns=columns)
    with table.save(tmp_path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["'=1+1", "*", "'+a", "'-a", "'@a", "a=b"]
    assert {row["regret"] for row in rows} == {"-1.5"}


def test_a_page_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    results = results_of()
    (tmp_path / "report.html").write_text("the old one")

    def full(path, target):
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(results, tmp_path)
    assert (tmp_path / "report.html").read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["report.html"]


def test_runs_of_several_versions_are_told_apart():
    results = results_of()
    runs = results.runs.assign(made_with=["omg-cmdp 1", *["omg-cmdp 2"] * (len(results.runs) - 1)])
    text = render("footer.html", **_origin(changed(results, runs=runs), ()))
    assert "<li>1 run: omg-cmdp 1</li>" in text
    assert f"<li>{len(runs) - 1} runs: omg-cmdp 2</li>" in text


MEASURE = """<script>addEventListener("load", () => {
    const root = document.documentElement, drawn = [...document.querySelectorAll("figure svg")];
    const size = (svg, text) =>
        parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    parent.postMessage({
        inner: innerWidth, scroll: root.scrollWidth, ink: getComputedStyle(drawn[0]).color,
        text: Math.min(...drawn.flatMap(svg => [...svg.querySelectorAll("text")].map(text => size(svg, text)))),
    }, "*");
})</script>"""
FRAME = """<!DOCTYPE html><script>addEventListener("message", message => {
    for (const [name, value] of Object.entries(message.data)) document.body.setAttribute("data-" + name, value);
})</script><body><iframe src="measured.html" width="WIDTH" height="900" style="border: 0"></iframe>"""


def browse(page, tmp_path, width, *options):
    """Return what a page measures in a frame of this width; a window of Chromium itself is never narrower than 500."""
    (tmp_path / "measured.html").write_text(page.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom", *options)
    command = [CHROMIUM, *flags, (tmp_path / "frame.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return dict(re.findall(r'data-(\w+)="([^"]*)"', shown))


browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@browser
@pytest.mark.parametrize("width", [400, 1400])
def test_a_browser_shows_the_page_without_scrolling_sideways_and_with_readable_text(page, tmp_path, width):
    measured = browse(page, tmp_path, width)
    assert int(measured["inner"]) == width
    assert int(measured["scroll"]) <= width
    assert float(measured["text"]) >= 9.0  # pixels


@pytest.mark.slow
@browser
def test_figures_are_drawn_light_on_dark_in_dark_mode(page, tmp_path):
    light, dark = (browse(page, tmp_path, 800, f"--blink-settings=preferredColorScheme={scheme}") for scheme in (1, 0))
    brightness = [sum(map(int, re.findall(r"\d+", measured["ink"])[:3])) for measured in (light, dark)]
    assert brightness[0] < 150
    assert brightness[1] > 600
