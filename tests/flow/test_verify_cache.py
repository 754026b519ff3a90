"""`verify-cache` over fake nodes: both are told, also when one is gone, and an interruption says what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dspark_deploy.errors import Interrupted, NodeUnreachable
from dspark_deploy.facts.snapshot import Progress
from dspark_deploy.flow.pair import OpenHosts, Reached
from dspark_deploy.flow.verify_cache import look_into
from dspark_deploy.remote.host import Host
from tests.fakes import FakeHost, FakeSession
from tests.flow.stand import FakeClock, Stand
from tests.samples import snapshot_document, snapshot_file

PARTIAL = {"files": [snapshot_file("/hub/", "config.json", problem="missing", size=None)]}


def reached(hosts: Mapping[str, Host], unreachable: Mapping[str, NodeUnreachable]) -> Reached:
    """Nodes that are open, and those that did not answer."""
    opened = OpenHosts(hosts.__getitem__)
    opened.update(hosts)
    return Reached(opened, unreachable)


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_both_nodes_are_told_in_a_word_and_in_findings(stand: Stand) -> None:
    stand.worker.snapshot = PARTIAL
    report = look_into(stand.intention(), reached(stand.hosts, {}), FakeClock())
    assert not report.complete
    assert {node: cache.verdict for node, cache in report.nodes.items()} == {"head": "complete", "worker": "partial"}
    assert report.nodes["worker"].faulty == ("config.json",)
    assert {(finding.node, finding.status) for finding in report.findings} >= {("head", "ok"), ("worker", "fail")}


def test_a_node_that_is_gone_leaves_the_other_s_answer(stand: Stand) -> None:
    gone = NodeUnreachable("worker: no route", remedy="plug it in", node="worker")
    report = look_into(stand.intention(), reached({"head": stand.head}, {"worker": gone}), FakeClock())
    assert {node: cache.verdict for node, cache in report.nodes.items()} == {
        "head": "complete",
        "worker": "unreachable",
    }
    assert report.unreachable == (gone,)
    assert not report.complete


class HashingHost(FakeHost):
    """A node that hashes: one document of progress, then the snapshot, or nothing more."""

    endless = False

    def start(self, program: str, request: object, *, timeout_s: float) -> FakeSession:
        assert program == "hash_cache"
        assert isinstance(request, dict)
        progress: dict[str, object] = {
            "progress": {"total_bytes": 4 << 30, "known_bytes": 1 << 30, "done_bytes": 2 << 30}
        }
        return HashingSession(self, {"locked": False}, [progress, {"snapshot": snapshot_document(request)}])


class HashingSession(FakeSession):
    def __init__(self, host: HashingHost, answer: dict[str, object], documents: list[dict[str, object]]) -> None:
        super().__init__(host, answer)
        self._documents = documents

    def receive(self, *, timeout_s: float) -> dict[str, object]:
        return self._documents.pop(0)


def test_deep_tells_how_far_each_node_is(stand: Stand) -> None:
    hosts = {node: HashingHost(host.facts) for node, host in stand.hosts.items()}
    told: list[tuple[str, Progress]] = []
    report = look_into(stand.intention(), reached(hosts, {}), FakeClock(), deep=lambda *it: told.append(it))
    assert report.complete
    assert report.deep
    assert sorted(told) == [(node, Progress(4 << 30, 1 << 30, 2 << 30)) for node in ("head", "worker")]


def test_an_interruption_says_how_much_is_kept(stand: Stand) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted("interrupted by SIGINT", remedy="run it again")

    hosts = {node: HashingHost(replace(host.facts)) for node, host in stand.hosts.items()}
    with pytest.raises(Interrupted) as raised:
        look_into(stand.intention(), reached(hosts, {}), FakeClock(), deep=interrupt)
    assert "2.00 GiB of 4.00 GiB" in raised.value.why
    assert "--deep" in raised.value.remedy
