"""`status` in Prometheus' text format, for a node exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dspark_deploy.errors import ConfigError
from dspark_deploy.plan.situation import State

if TYPE_CHECKING:
    from dspark_deploy.flow.report import StatusReport


def prometheus_text(report: StatusReport) -> str:
    """The whole page."""
    return generate_latest(_registry(report)).decode()


def write_prometheus(report: StatusReport, path: Path) -> None:
    """The page in a file: a reader sees the whole old one or the whole new one. Raises ConfigError.

    A link stays one; a device or a pipe is never replaced by a file, which root could do.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise ConfigError(
                f"{path} can't be written: it is no regular file",
                remedy="name a file; without a name the page goes to standard output",
            )
        write_to_textfile(str(target), _registry(report))
    except OSError as error:
        raise ConfigError(
            f"{path} can't be written: {error.strerror}", remedy="name a file in a folder that you may write to"
        ) from error


def _registry(report: StatusReport) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Status(report))
    return registry


class _Status(Collector):
    """One look as metrics. What could not be told has no sample: a missing value is no zero."""

    def __init__(self, report: StatusReport) -> None:
        self._report = report

    def collect(self) -> Iterable[Metric]:
        """See Collector."""
        yield from self._pair()
        yield from self._ranks()
        if self._report.load is not None:
            yield from self._load()

    def _pair(self) -> Iterable[Metric]:
        report = self._report
        state = GaugeMetricFamily("dspark_state", "1 for the pair's state, 0 for the others.", labels=("pair", "state"))
        for each in State:
            state.add_metric((report.pair, str(each)), float(report.state is each))
        yield state
        up = GaugeMetricFamily("dspark_up", "1 while the pair serves.", labels=("pair",))
        up.add_metric((report.pair,), float(report.state is State.SERVING))
        yield up
        names = ("pair", "profile", "family", "release", "model", "version", "stand_in")
        told = (report.pair, report.profile, report.family, report.release, report.served_name, report.version)
        info = GaugeMetricFamily("dspark_info", "What the pair runs.", labels=names)
        info.add_metric((*(each or "" for each in told), "1" if report.stand_in else "0"), 1.0)
        yield info
        looked = GaugeMetricFamily("dspark_looked_timestamp_seconds", "When it was looked at.", labels=("pair",))
        looked.add_metric((report.pair,), datetime.fromisoformat(report.at).timestamp())
        yield looked
        costly = GaugeMetricFamily(
            "dspark_costly_warnings",
            "Lines of the ranks' logs that make it slow or unsafe.",
            labels=("pair", "failure"),
        )
        for failure in sorted({each.failure or each.signature for each in report.costly}):
            costly.add_metric((report.pair, failure), 1.0)
        yield costly

    def _ranks(self) -> Iterable[Metric]:
        labels = ("pair", "node", "rank")
        running = GaugeMetricFamily("dspark_rank_running", "1 while the rank's container runs.", labels=labels)
        reached = GaugeMetricFamily("dspark_node_reached", "1 while the node can be asked.", labels=labels)
        uptime = GaugeMetricFamily("dspark_rank_uptime_seconds", "Since the container's start.", labels=labels)
        restarts = GaugeMetricFamily("dspark_rank_restarts", "Of this container, by its engine.", labels=labels)
        gpu = GaugeMetricFamily("dspark_rank_gpu_usable", "1 while its container can use the GPU.", labels=labels)
        for rank in self._report.ranks:
            which = (self._report.pair, rank.node, str(rank.rank))
            reached.add_metric(which, float(rank.state != "unreachable"))
            if rank.state == "unreachable":
                continue
            running.add_metric(which, float(rank.state == "running"))
            if rank.container is not None:
                restarts.add_metric(which, float(rank.restarts))
            if rank.uptime_s is not None:
                uptime.add_metric(which, rank.uptime_s)
            if rank.gpu is not None and rank.gpu.usable is not None:
                gpu.add_metric(which, float(rank.gpu.usable))
        yield from (reached, running, uptime, restarts, gpu)

    def _load(self) -> Iterable[Metric]:
        load = self._report.load
        if load is None:
            return
        values = {
            "dspark_requests_running": ("Requests that are worked on.", load.running),
            "dspark_requests_waiting": ("Requests that wait for a place.", load.waiting),
            "dspark_kv_pool_used_ratio": ("Share of the KV pool that is held, 0 to 1.", load.kv_usage),
            "dspark_prompt_tokens_per_second": ("Between two readings.", load.prompt_tps),
            "dspark_generation_tokens_per_second": ("Between two readings.", load.generation_tps),
            "dspark_draft_acceptance_ratio": ("Accepted of drafted tokens, 0 to 1.", load.acceptance),
        }
        for name, (about, value) in values.items():
            if value is not None:
                gauge = GaugeMetricFamily(name, about, labels=("pair",))
                gauge.add_metric((self._report.pair,), float(value))
                yield gauge
        preemptions = CounterMetricFamily("dspark_preemptions", "Since the server's start.", labels=("pair",))
        preemptions.add_metric((self._report.pair,), float(load.preemptions))
        yield preemptions
