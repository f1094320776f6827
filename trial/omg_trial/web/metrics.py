"""Metrics for Prometheus. Labels are names of the trial and of this package: no person, no context."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from omg_trial.watching.checks import findings
from omg_trial.watching.losses import losses
from omg_trial.watching.verdicts import SEVERITIES
from omg_trial.watching.view import TrialView

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Metrics to scrape: how long calls took, and the trial as it is at that moment."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.seconds = Histogram(
            "omg_cmdp_call_seconds",
            "From a call to its answer, which is on disk by then.",
            ["call"],
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def text(self, view: TrialView) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry) + generate_latest(_Now(view))


@dataclasses.dataclass
class _Now(Collector):
    """A trial in numbers."""

    view: TrialView

    def collect(self) -> Iterator[Metric]:
        view, state = self.view, self.view.state
        yield _gauge("events", "Events in the log.", state.number)
        yield _gauge("version", "Version of the model in use.", state.version.number)
        yield _gauge("people", "People in the trial.", len(state.people))
        yield _gauge("people_withdrawn", "People who have withdrawn.", len(state.withdrawn) + len(state.erased))
        yield _gauge("episodes", "Episodes of people in the trial.", len(state.episodes))
        yield _gauge("episodes_under_way", "Open episodes.", len(state.open))
        yield _gauge("rewards_overdue", "Decisions of seven days without a reward in time.", len(view.overdue))
        lost = losses(view)
        if lost is not None:
            yield _gauge("lost_at_most", "Lost against the best policy, at most, with 95 % confidence.", lost.total)
            yield _gauge("lost_at_most_in_seven_days", "The same, for the last seven days.", lost.week)
            yield _gauge("settled", "Share of recent decisions on which all plausible models agree.", lost.settled)
        yield _gauge("memory_megabytes", "Memory of the process.", view.process.memory)
        yield _gauge("disk_free_megabytes", "Free on the disk of the log.", view.process.disk)
        taken = collections.Counter(
            (view.trial.action_name(each.choice.action) or "", each.choice.source, " ".join(each.choice.rules))
            for each in view.week
        )
        gauge, labels = GaugeMetricFamily, ("action", "source", "rules")
        yield _family(gauge, "decisions_of_seven_days", "Decisions.", labels, sorted(taken.items()))
        refused = [((cause,), count) for cause, count in sorted(view.process.refusals.items())]
        yield _family(CounterMetricFamily, "refusals", "Refused calls since the start.", ("cause",), refused)
        checks = [((each.check,), SEVERITIES.index(each.severity)) for each in findings(view)]
        yield _family(gauge, "check", "0 green, 1 yellow, 2 red.", ("check",), checks)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"omg_cmdp_{name}", text, value=value)


def _family(
    kind: type[Any], name: str, text: str, labels: Sequence[str], numbers: Iterable[tuple[Sequence[str], float]]
) -> Metric:
    """Return a metric with a number for the values of its labels."""
    family: Metric = kind(f"omg_cmdp_{name}", text, labels=labels)
    for values, number in numbers:
        family.add_metric(values, number)  # type: ignore[attr-defined]
    return family
