"""Rate studies: worlds in several sizes, and exponents that are right where they are known."""

import numpy as np
import pandas
import pytest

from lab.tests.studies.examples import VARIED, changed, results_of
from omg_lab.reports.page import write_report
from omg_lab.reports.rates import rate_figure, rate_sentence, rate_table, sweeps
from omg_lab.studies.variations import EXPONENTS


def power_law(exponent, *, noise=0.0):
    """Return results whose regrets are a power of what was varied."""
    results = results_of(VARIED, episodes=40, seeds=3)
    sizes = results.runs["world"].str.extract(r"= (\d+)$")[0].astype(float)
    luck = np.random.default_rng(0).normal(size=len(sizes)) * noise
    return changed(results, runs=results.runs.assign(regret=3.0 * sizes**exponent * np.exp(luck)))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 2.5])
def test_the_exponent_of_a_power_is_found(exponent):
    for found in sweeps(power_law(exponent)):
        for rate in found.rates.values():
            assert rate.slope == pytest.approx(exponent, abs=1e-12)
        assert f"to the power {exponent:.2f}" in rate_sentence(found)


def test_growing_faster_than_the_theorem_is_said_and_slower_refutes_nothing():
    for exponent in (0.1, 3.0):
        for found in sweeps(power_law(exponent, noise=0.01)):
            faster = exponent > EXPONENTS[found.size]
            assert found.rates["omg"].refutes(found.expected) == faster
            assert ("more so far than" if faster else "less than") in rate_sentence(found)


def test_a_seed_counts_when_it_is_finished_in_all_sizes():
    results = power_law(0.5)
    runs = results.runs
    left = runs[~((runs["world"] == "linear, T = 80") & (runs["seed"] == 1) & (runs["agent"] == "omg"))]
    found = {each.size: each for each in sweeps(changed(results, runs=left))}
    assert list(found["T"].regrets["omg"].index) == [0, 2]
    assert list(found["H"].regrets["omg"].index) == [0, 1, 2]
    assert list(found["T"].regrets["uniform"].index) == [0, 1, 2]


@pytest.mark.slow  # draws the figures of six worlds
def test_the_report_of_a_rate_study_has_its_exponents(tmp_path):
    results = power_law(0.25)
    path = write_report(results, tmp_path)
    page = path.read_text(encoding="utf-8")
    assert "grows like T to the power 0.25" in page
    assert "grows like H to the power 0.25" in page
    assert (tmp_path / "figures" / "linear--iid-T-rate.pdf").exists()
    table = pandas.read_csv(tmp_path / "tables" / "linear--iid-H-rates.csv")
    assert table["exponent"].tolist() == pytest.approx([0.25, 0.25])
    assert table["theorem"].tolist() == [2.5, 2.5]


def test_the_table_has_the_theorem_s_exponent_beside_the_fitted_ones():
    first, *_ = sweeps(power_law(0.5))
    assert [line[-1] for line in rate_table(first).lines()] == ["0.5", "0.5"]
    assert rate_figure(first).caption.startswith(rate_sentence(first))


def test_what_is_not_varied_has_no_rates():
    assert sweeps(results_of()) == []
