"""Figures say what the numbers say, and look the same each time."""

import functools
import re

import numpy as np
import pytest

from lab.tests.studies.examples import changed, results_of
from omg_cmdp.theory import bounds
from omg_cmdp.theory.constants import Assumptions, most_tuples
from omg_lab.reports import agent_figures, figures
from omg_lab.reports.drawing import POINTS, looks, thinned
from omg_lab.reports.formats import number
from omg_lab.reports.scenarios import scenarios
from omg_lab.reports.sentences import TERMS, agent_sentences
from omg_lab.worlds import TreatmentTrial


def scenario(name="treatment", results=None):
    return next(each for each in scenarios(results or results_of()) if each.world == name)


def every_figure(each):
    return figures.comparing_figures(each) + agent_figures.agent_figures(each)


@functools.cache
def drawn_once(world):
    return every_figure(scenario(world))


@pytest.mark.parametrize("count", [1, 2, 399, 400, 401, 10_000, 28_001])
@pytest.mark.parametrize("geometric", [False, True])
def test_thinning_keeps_both_ends_and_no_more_points_than_it_says(count, geometric):
    places = thinned(count, geometric=geometric)
    assert len(places) <= POINTS
    assert places[0] == 0
    assert places[-1] == count - 1
    assert (np.diff(places) > 0).all()


def test_no_two_of_thirty_agents_look_alike():
    worn = looks([str(i) for i in range(30)]).values()
    assert len({(look["color"], look["linestyle"], look["marker"]) for look in worn}) == 30


@pytest.mark.parametrize("world", [pytest.param("treatment", marks=pytest.mark.slow), "decoy"])
def test_every_figure_has_a_title_a_caption_and_the_focus_in_it(world):
    drawn = drawn_once(world)
    assert [figure.name.rpartition("-")[2] for figure in drawn] == [
        *("totals", "regret", "errors"),
    ]
    assert all(figure.title and ("omg" in figure.caption) for figure in drawn[1:])


@pytest.mark.slow
def test_the_same_numbers_give_the_same_bytes(tmp_path):
    first, second = drawn_once("treatment")[1], figures.course(scenario())
    assert first.svg() == second.svg()
    (tmp_path / "again").mkdir()
    assert first.save(tmp_path).read_bytes() == second.save(tmp_path / "again").read_bytes()


def test_an_inline_picture_needs_no_network_and_follows_the_page_s_colour():
    picture = drawn_once("treatment")[2].svg()
    assert picture.startswith("<svg viewBox=")
    assert "http" not in picture
    assert "<script" not in picture
    assert "currentColor" in picture
    assert len(picture) < 100_000


def test_the_names_in_two_pictures_of_a_page_differ():
    named = [set(re.findall(r'id="([^"]*)"', figure.svg())) for figure in drawn_once("treatment")]
    assert sum(map(len, named)) == len(set().union(*named))


@pytest.mark.parametrize("world", ["treatment", "decoy"])
def test_what_a_picture_refers_to_is_in_it(world):
    for figure in drawn_once(world):
        picture = figure.svg()
        used = set(re.findall(r'(?:url\(#|href="#)([^")]*)', picture))
        assert used <= set(re.findall(r'id="([^"]*)"', picture))


@pytest.mark.parametrize(("slope", "side"), [(3.0, "below"), (0.1, "above")])
def test_parted_bands_are_reported_with_the_side_and_the_episode(slope, side):
    """All agents lose 1 per episode, but one from episode 100 on `slope`: bands of ± 1 % part soon after."""
    results = results_of()
    t, rival = results.log["episode"], results.log["agent"] != "omg"
    lost = np.where(rival & (t > 100), 100.0 + slope * (t - 100), t)
    log = results.log.assign(cumulative_regret=lost * (1.0 + 0.001 * results.log["seed"]))
    caption = figures.course(scenario(results=changed(results, log=log))).caption
    found = re.match(
        rf"From episode (\d+) on, the band of omg is {side} that of the best of the others, greedy\.", caption
    )
    assert found
    assert 100 < int(found[1]) < 110


def test_the_three_terms_sum_to_the_regret_that_the_words_tell():
    each = scenario()
    end = float(each.finals["omg"].mean())
    told = agent_sentences(each)[1]
    parts = [float(each.curves("omg", f"cumulative_{name}")[1][:, -1].mean()) for name in TERMS]
    assert np.isclose(sum(parts), end)
    assert f"The regret of omg, {number(end)}," in told
    assert all(number(part) in told for part in parts)


def test_the_bound_in_words_is_the_theorem_s():
    theory = scenario().theory
    space = TreatmentTrial().space  # with several start states, and actions that are not admissible
    sizes = {"states": 5, "actions": 3, "horizon": 6, "tuples": most_tuples(space), "episodes": 300, "delta": 0.05}
    regrets = {"reward_regret": theory.reward_regret, "dynamics_regret": theory.dynamics_regret}
    assert theory == Assumptions(**sizes, **regrets)
    told = agent_sentences(scenario())[-1]
    assert number(bounds.corrected(Assumptions(**sizes, **regrets))) in told
    assert number(bounds.as_printed(Assumptions(**sizes, **regrets))) in told
    assert number(6 * 300) in told  # the most that can be lost


def test_the_largest_certificate_is_told_beside_what_the_theorem_asks_for():
    each = scenario()
    worst, allowed = float(each.curves("omg", "certificate")[1].max()), 1.0 / (16.0 * 300)
    told = f"The largest was {number(worst)}, {'within' if worst <= allowed else 'above'} the 1/(16T)"
    assert told in agent_sentences(each)[2]


def test_the_regret_in_words_is_what_was_not_known_and_the_price_of_exploring():
    each = scenario("decoy")
    lost = each.finals["omg"].mean()
    unknown = each.curves("omg", "cumulative_best_policy_regret")[1][:, -1].mean()
    assert each.exploring("omg") == pytest.approx(lost - unknown)
    assert each.exploring("greedy") == 0.0
    told = agent_sentences(each)[0]
    assert told.startswith(
        f"In total omg lost {number(lost)}. Of this, {number(unknown)} is due to what it did not know yet"
    )
    assert f"{number(lost - unknown)} is the price of exploring" in told
    late = each.curves("omg", "exploration")[1][:, 270:].mean()
    assert f"played {number(late)} per episode below" in told


@pytest.mark.parametrize("world", ["treatment", "decoy"])
def test_no_more_than_two_bands_are_drawn_and_they_differ_in_more_than_colour(world):
    drawn = figures.course(scenario(world))
    bands = drawn.canvas.axes[0].collections
    assert 1 <= len(bands) <= 2
    assert len({band.get_hatch() for band in bands}) == len(bands)
    assert ("hatched" in drawn.caption) == (len(bands) == 2)


def test_errors_stay_under_what_the_oracles_bounds_allow_and_known_dynamics_have_none():
    each = scenario()
    for name in agent_figures.ERRORS:
        assert each.curves("omg", f"cumulative_{name}")[1].max() <= getattr(each.theory, name)
    assert "The transitions of this world are known" in drawn_once("decoy")[2].caption


def test_an_agent_without_a_model_has_no_figures_about_it():
    results = results_of()
    kept = changed(results, runs=results.runs[results.runs["agent"] == "uniform"])
    blind = kept.log.assign(gamma=np.nan, certificate=np.nan, plan_gap=np.nan, reward_error=np.nan)
    each = scenario(results=changed(kept, log=blind))
    assert each.focus == "uniform"
    assert agent_figures.agent_figures(each) == []


def test_a_seed_that_some_agent_has_not_finished_does_not_count():
    results = results_of()
    runs = results.runs[~((results.runs["agent"] == "greedy") & (results.runs["seed"] == 3))]
    each = scenario(results=changed(results, runs=runs))
    assert list(each.finals.index) == [0, 1, 2]
    assert each.curves("omg", "regret")[1].shape == (3, 300)


def test_a_single_seed_is_drawn_without_bands_and_says_so():
    results = results_of()
    each = scenario(results=changed(results, runs=results.runs[results.runs["seed"] == 0]))
    told = " ".join(figure.caption for figure in every_figure(each))
    assert "a single seed" in told.lower()
    assert "nan" not in told
    assert "–" not in told
