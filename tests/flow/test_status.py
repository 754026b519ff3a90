"""The pair's word and all that belongs to it, over fake nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.facts.recall import GpuInside
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.flow.look import PairLook
from dspark_deploy.flow.pair import OpenHosts, Reached
from dspark_deploy.flow.report import StatusReport
from dspark_deploy.flow.status import StatusReader
from dspark_deploy.plan.journal import AGREED, ranks_word
from dspark_deploy.plan.situation import State
from tests.fakes import FakeHost
from tests.flow.stand import MODEL, FakeClock, Stand

LOST = NodeUnreachable("worker: no answer", why="it is off", remedy="switch it on", node="worker")
COUNTERS = {
    "num_requests_running": 0,
    "num_requests_waiting": 0,
    "prompt_tokens_total": 5,
    "generation_tokens_total": 5,
}
SLOW = "WARNING Auto-enabling VLLM_USE_BREAKABLE_CUDAGRAPH=1. Set VLLM_USE_BREAKABLE_CUDAGRAPH=0 to opt out."


class Served(Stand):
    """A pair that serves. `counters` are what /metrics tells, `wedged` whether it generates no more, `locked`
    whether it asks for a key.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.counters: dict[str, float] = dict(COUNTERS)
        self.wedged = self.locked = False
        self.version: dict[str, Any] = {"version": "0.25.2"}
        self.asked_for: list[str] = []

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked_for.append(path)
        if path == "/metrics":
            return 200, "".join(f"vllm:{name} {value}\n" for name, value in self.counters.items())
        if path == "/version":
            return 200, self.version
        if path.startswith("/v1/") and self.locked:
            return 401, {"error": "Unauthorized"}
        if path == "/v1/completions" and self.wedged:
            return 500, {"error": "the engine is dead"}
        if path == "/v1/completions":
            self.counters["prompt_tokens_total"] += 1
            self.counters["generation_tokens_total"] += 1
        return super().answer(method, path, body)

    def reader(self, clock: FakeClock | None = None) -> StatusReader:
        """Looks at this pair, once or often."""
        hosts = OpenHosts(lambda node: self.hosts[node])
        hosts.update(self.hosts)
        clock = clock or FakeClock()
        return StatusReader(PairLook("spark-pair", Reached(hosts, {}), bundled_rules(), clock), clock)


@pytest.fixture(name="pair")
def _pair(tmp_path: Path) -> Served:
    return Served(tmp_path)


@pytest.fixture(name="serving")
def _serving(pair: Served) -> Served:
    pair.bring_up().up()
    return pair


def rank(host: FakeHost) -> str:
    """The container's id."""
    (only,) = host.engine_.kept
    return only


def troubles(report: StatusReport) -> list[tuple[str | None, str]]:
    return [(trouble.node, trouble.remedy) for trouble in report.troubles]


def test_a_pair_that_serves_is_told_with_its_load_and_version(serving: Served) -> None:
    report = serving.reader().read()
    assert (report.state, report.version, report.stand_in) == (State.SERVING, "0.25.2", None)
    assert report.load is not None
    assert (report.load.running, report.load.generation_tps) == (0, None)
    assert report.generation is not None
    assert report.generation.detail == "one token was generated when asked"
    assert report.served_name == MODEL
    assert (report.troubles, report.untold) == ((), {})


def test_a_stand_in_says_so_itself(serving: Served) -> None:
    serving.version["stand_in"] = "no model ran"
    assert serving.reader().read().stand_in == "no model ran"


def test_of_a_busy_server_two_readings_give_rates(serving: Served) -> None:
    serving.counters["num_requests_running"] = 2
    clock = FakeClock()
    sleep = clock.sleep

    def works(seconds: float) -> None:
        serving.counters["generation_tokens_total"] += 60 * seconds
        sleep(seconds)

    clock.sleep = works  # type: ignore[method-assign]  # the server works while the reader waits
    load = serving.reader(clock).read().load
    assert load is not None
    assert load.generation_tps == pytest.approx(60, rel=0.01)


def test_while_it_is_watched_it_is_not_asked_for_a_token_at_every_look(serving: Served) -> None:
    clock = FakeClock()
    reader = serving.reader(clock)
    for _ in range(5):
        assert reader.read().state is State.SERVING
        clock.sleep(2)
    assert serving.asked_for.count("/v1/completions") == 1
    clock.sleep(30)
    reader.read()
    assert serving.asked_for.count("/v1/completions") == 2


def test_between_two_looks_the_counters_give_the_rates(serving: Served) -> None:
    clock = FakeClock()
    reader = serving.reader(clock)
    reader.read()
    clock.sleep(2)
    serving.counters["generation_tokens_total"] += 100
    load = reader.read().load
    assert load is not None
    assert load.generation_tps == pytest.approx(50, rel=0.01)


def test_a_wedged_pair_tells_how_it_answered(serving: Served) -> None:
    serving.wedged = True
    report = serving.reader().read()
    assert report.state is State.WEDGED
    (trouble,) = report.troubles
    assert "HTTP 500" in trouble.facts[0]
    assert "`dspark up`" in trouble.remedy


def test_a_pair_whose_key_is_missing_here_is_not_advised_to_be_ended(serving: Served) -> None:
    serving.locked = True
    report = serving.reader().read()
    assert report.state is State.UNKNOWN
    assert "DSPARK_API_KEY" in report.detail
    assert "dspark down" not in report.detail


def test_a_split_pair_tells_which_rank_ended(serving: Served) -> None:
    serving.worker.engine_.die(rank(serving.worker), 137)
    report = serving.reader().read()
    assert (report.state, report.troubles[0].node) == (State.SPLIT, "worker")
    assert "exit code 137" in report.troubles[0].facts[0]


def test_a_lost_node_gives_its_own_remedy_and_comes_back(serving: Served) -> None:
    reader = serving.reader()
    serving.worker.engine_.failing = LOST
    report = reader.read()
    assert (report.state, troubles(report)) == (State.UNKNOWN, [("worker", "switch it on")])
    serving.worker.engine_.failing = None
    reader.look.reopen()
    assert reader.read().state is State.SERVING


def test_a_node_that_stays_away_is_told_again_and_again(serving: Served) -> None:
    reader = serving.reader()
    serving.worker.engine_.failing = LOST
    reader.read()
    serving.hosts = {"head": serving.head}  # so that opening it fails

    def gone(node: str) -> FakeHost:
        raise NodeUnreachable(f"{node}: no route", remedy="plug it in", node=node)

    reader.look.hosts._open_one = gone
    reader.look.reopen()
    assert troubles(reader.read()) == [("worker", "plug it in")]


def test_what_a_node_remembers_stands_with_its_rank(serving: Served) -> None:
    folder = f"/hub/models--{serving.intention().workload.model.id}".replace("ai/", "ai--")
    serving.head.recalls = {
        "noted": {"at": "2026-09-01T10:00:00+00:00", "values": {}},
        "hashed": [{"at": "2026-08-01T00:00:00Z", "folder": f"{folder}/snapshots/x", "verdict": "complete"}],
        "gpu": {"usable": False, "detail": "Failed to initialize NVML"},
    }
    head, worker = serving.reader().read().ranks
    assert (head.good_at, head.gpu) == (
        "2026-09-01T10:00:00+00:00",
        GpuInside(usable=False, detail="Failed to initialize NVML"),
    )
    assert head.cache is not None
    assert (head.cache.verdict, head.image_as_tagged) == ("complete", True)
    assert (worker.cache, worker.good_at) == (None, None)


def test_an_image_that_was_tagged_anew_is_told(serving: Served) -> None:
    reference = next(iter(serving.worker.engine_.images))
    serving.worker.engine_.images[reference] = "sha256:another"
    assert [each.image_as_tagged for each in serving.reader().read().ranks] == [True, False]


def test_what_the_logs_warn_of_is_told(serving: Served) -> None:
    serving.head.engine_.say(rank(serving.head), SLOW)
    assert [each.failure for each in serving.reader().read().costly] == ["F89"]


def test_what_can_not_be_read_is_told_and_the_rest_all_the_same(serving: Served) -> None:
    serving.head.failing["recall"] = NodeUnreachable("head: cut", remedy="…", node="head")
    report = serving.reader().read()
    assert report.state is State.SERVING
    assert report.untold == {"what the head remembers": "head: cut"}


def test_what_takes_its_time_is_asked_once_and_again_of_another_rank(serving: Served) -> None:
    clock = FakeClock()
    reader = serving.reader(clock)
    for _ in range(3):
        reader.read()
    recalls = [detail["container"] for what, detail in serving.worker.done if what == "recall"]
    assert recalls == [rank(serving.worker)]
    serving.worker.engine_.die(rank(serving.worker), 1)
    reader.read()
    recalls = [detail["container"] for what, detail in serving.worker.done if what == "recall"]
    assert recalls == [rank(serving.worker), None]


def test_when_the_ranks_were_last_compared_is_told(serving: Served) -> None:
    ranks = [host.engine_.kept[rank(host)] for host in (serving.head, serving.worker)]
    word = ranks_word(*((each.id, each.started_at) for each in ranks))
    serving.head.marks[AGREED] = {"at": "2026-09-02T00:00:00+00:00", "who": "me@desk", "reason": word}
    assert serving.reader().read().agreed_at == "2026-09-02T00:00:00+00:00"


def test_the_report_is_plain_data(serving: Served) -> None:
    from dspark_deploy.cli.envelope import plain  # noqa: PLC0415  the one thing of cli/ that a flow's test needs

    document = json.loads(json.dumps(plain(serving.reader().read())))
    assert set(document) >= {"state", "profile", "family", "release", "base_url", "ranks", "load", "troubles"}
