"""Both ranks' lines, over fake nodes."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from dspark_deploy.errors import Interrupted, NodeUnreachable, NotAsWanted
from dspark_deploy.flow.follow import follow_logs
from dspark_deploy.flow.logs import merged, sources_of
from dspark_deploy.flow.pair import OpenHosts
from dspark_deploy.flow.ranklines import LogQuery, RankLine, Source
from dspark_deploy.remote.host import LogLine
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock
from tests.samples import PAIR, container, node_facts

SECOND_RANK = "fedcba987654"


@pytest.fixture(name="hosts")
def _hosts() -> OpenHosts:
    """Both ranks run and have printed three lines each, a second apart."""
    nodes = {node: FakeHost(node_facts(node)) for node in ("head", "worker")}
    hosts = OpenHosts(lambda node: nodes[node])
    hosts.update(nodes)
    for node, host in nodes.items():
        host.engine_.add(container(node), *(f"{node} {number}" for number in (1, 2, 3)))
    return hosts


def fake(hosts: OpenHosts, node: str) -> FakeHost:
    host = hosts[node]
    assert isinstance(host, FakeHost)
    return host


def printed(hosts: OpenHosts, query: LogQuery) -> list[str]:
    sources = {node: Source(node, container(node), 0.0) for node in query.nodes}
    return [line.text for line in merged(hosts, sources, query) if query.wants(line)]


def test_lines_are_merged_on_time(hosts: OpenHosts) -> None:
    assert printed(hosts, LogQuery()) == ["head 1", "worker 1", "head 2", "worker 2", "head 3", "worker 3"]


def test_a_clock_that_is_off_does_not_change_the_order(hosts: OpenHosts) -> None:
    fake(hosts, "head").engine_.skew_s = 1.5  # so what it printed first came before its stamp says
    sources = sources_of(hosts, PAIR, ("head", "worker"), FakeClock())
    lines = list(merged(hosts, sources, LogQuery()))
    assert [line.text for line in lines] == ["head 1", "head 2", "worker 1", "head 3", "worker 2", "worker 3"]
    assert lines[0].at < "2026-09-01T10:00:00"


def test_one_rank_a_number_of_lines_and_a_pattern(hosts: OpenHosts) -> None:
    assert printed(hosts, LogQuery(nodes=("worker",), tail=2)) == ["worker 2", "worker 3"]
    assert printed(hosts, LogQuery(pattern=re.compile("[12]$"))) == ["head 1", "worker 1", "head 2", "worker 2"]


def test_of_a_progress_bar_the_last_state_counts() -> None:
    bar = LogLine("2026-09-01T10:00:00Z", "10 %\r20 %\r30 %\r")
    assert Source("head", container("head"), 0.0).mark(bar).text == "30 %"


def test_without_a_container_there_is_no_log(hosts: OpenHosts) -> None:
    for node in ("head", "worker"):
        fake(hosts, node).engine_.kept.clear()
    with pytest.raises(NotAsWanted):
        sources_of(hosts, PAIR, ("head", "worker"), FakeClock())


class Reader:
    """Follows in a thread of its own, as a user's terminal would. Lines are waited for, never slept for."""

    def __init__(self, hosts: OpenHosts, query: LogQuery) -> None:
        self._arrived: queue.SimpleQueue[RankLine | None] = queue.SimpleQueue()
        self._clock = FakeClock()
        sources = sources_of(hosts, PAIR, query.nodes, self._clock)
        self._lines = follow_logs(hosts, PAIR, sources, query, self._clock)
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """As by a Ctrl-C."""
        self._clock.interrupt()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _pump(self) -> None:
        with suppress(Interrupted):
            for line in self._lines:
                self._arrived.put(line)
        self._arrived.put(None)

    def until(self, text: str) -> list[str]:
        """The lines up to the first one that holds `text`."""
        seen = []
        while (line := self._arrived.get(timeout=10)) is not None:
            seen.append(f"{line.node} {line.text}")
            if text in line.text:
                return seen
        raise AssertionError(f"it ended without {text}: {seen}")

    def rest(self) -> list[str]:
        """The lines to its end."""
        seen = []
        while (line := self._arrived.get(timeout=10)) is not None:
            seen.append(f"{line.node} {line.text}")
        return seen


Follow = Callable[[OpenHosts, LogQuery], Reader]


@pytest.fixture(name="follow")
def _follow() -> Iterator[Follow]:
    """Readers, which end with the test."""
    with ExitStack() as stack:
        yield lambda hosts, query: stack.enter_context(closing(Reader(hosts, query)))


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks for new ranks come one after the other."""
    monkeypatch.setattr("dspark_deploy.flow.follow.LOOK_S", 0.01)
    monkeypatch.setattr("dspark_deploy.flow.follow.HOLD_S", 0.02)


def test_new_lines_come_as_they_are_printed_until_no_rank_runs(hosts: OpenHosts, follow: Follow) -> None:
    fake(hosts, "worker").engine_.skew_s = -0.5  # its lines come half a second after the head's of the same stamp
    reader = follow(hosts, LogQuery(follow=True, tail=1, new_rank_s=0))
    assert reader.until("worker 3") == ["head head 3", "worker worker 3"]
    fake(hosts, "head").engine_.say(container("head").id, "head 4")
    assert reader.until("head 4")[-1] == "head head 4"
    for node in ("head", "worker"):
        fake(hosts, node).engine_.die(container(node).id, 1)
    told = reader.rest()
    assert "head [dspark: the rank ended: spark-pair-vllm-1 is exited, exit code 1]" in told
    assert "worker [dspark: the rank ended: spark-pair-vllm-1 is exited, exit code 1]" in told


def test_a_new_container_of_the_pair_is_followed_from_its_beginning(hosts: OpenHosts, follow: Follow) -> None:
    reader = follow(hosts, LogQuery(nodes=("worker",), follow=True, tail=0, new_rank_s=1e9))
    engine = fake(hosts, "worker").engine_
    engine.vanish(container("worker").id)
    assert "was removed" in reader.until("the rank ended")[-1]
    engine.add(container("worker", SECOND_RANK, started_at="2026-09-01T10:00:03.500000000Z"), "first", "second")
    told = reader.until("second")
    assert told[-3:] == [
        f"worker [dspark: a new rank runs in spark-pair-vllm-1, release {SECOND_RANK}]",
        "worker first",
        "worker second",
    ]


def test_a_node_that_is_lost_and_comes_back_is_followed_on(hosts: OpenHosts, follow: Follow) -> None:
    reader = follow(hosts, LogQuery(nodes=("worker",), follow=True, tail=1, new_rank_s=1e9))
    reader.until("worker 3")
    engine = fake(hosts, "worker").engine_
    engine.failing = NodeUnreachable("worker: the cable is out", remedy="…", node="worker")
    engine.die(container("worker").id, 1)  # whatever ends the stream
    assert "the cable is out" in reader.until("not followed for now")[-1]
    engine.kept[container("worker").id] = container("worker")
    engine.say(container("worker").id, "worker 5")
    engine.failing = None
    told = reader.until("the node answers again")  # which a fake's stamps put behind the line
    assert "worker worker 5" in told
    assert "worker worker 3" not in told


def test_what_happened_to_a_rank_is_shown_whatever_is_looked_for() -> None:
    query = LogQuery(pattern=re.compile("Error"))
    assert query.wants(RankLine("head", "", "[dspark: the rank ended]", by_dspark=True))
    assert not query.wants(RankLine("head", "", "fine"))
