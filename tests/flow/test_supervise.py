"""`supervise` over fake nodes and a clock that does not wait: what it does, what it leaves alone, and what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import Interrupted, LockLost, NodeUnreachable, NotAsWanted, StepFailed
from dspark_deploy.facts.node import Container
from dspark_deploy.plan.journal import UNCONFIRMED
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, Stand
from tests.flow.supervised import PAIR, QuickClock, Server, Watch
from tests.samples import memory, node_facts


@pytest.fixture(name="watch")
def _watch(tmp_path: Path) -> Watch:
    return Watch(Stand(tmp_path), FakeClock())


def test_a_healthy_pair_left_alone_for_ten_minutes_is_never_touched(watch: Watch) -> None:
    watch.clock = QuickClock(interrupt_at=600.0)
    containers = {node: watch.rank(node) for node in watch.stand.hosts}
    files = {node: dict(host.files) for node, host in watch.stand.hosts.items()}
    with pytest.raises(Interrupted):
        watch.supervisor().run()
    assert watch.kinds() == ["watches", "serves", "ends"]
    assert {node: watch.rank(node) for node in watch.stand.hosts} == containers
    assert {node: dict(host.files) for node, host in watch.stand.hosts.items()} == files
    done = {what for node, host in watch.stand.hosts.items() for what, _ in host.done[watch.before[node] :]}
    assert done == {"probe", "journal", "run"}  # it only looks; what is run is `cat` of the manifest
    assert 10 <= watch.server.canaries <= 14  # one in 50 s


@pytest.mark.parametrize("node", ["head", "worker"])
def test_a_rank_that_dies_is_brought_back_worker_first(watch: Watch, node: str) -> None:
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.kill(node)
    supervisor.turn()
    supervisor.turn()
    assert watch.kinds() == ["serves", "restarts", "restarted", "serves"]
    assert watch.stand.order == ["worker", "head"]
    assert f"the rank on the {node} is exited with exit code 137" in watch.texts("restarts")[0]
    assert f"release {watch.release} serves again: " in watch.texts("restarted")[0]
    assert watch.stand.running() == {"head": [watch.release], "worker": [watch.release]}


def test_each_restart_is_a_run_with_a_record_and_entries_in_the_history(watch: Watch) -> None:
    watch.kill("worker")
    watch.supervisor().turn()
    for host in watch.stand.hosts.values():
        begun, served = [entry for entry in host.history if entry["command"] == "supervise"]
        assert (begun["outcome"], served["outcome"]) == ("restarting", "serving")
        assert begun["message"].startswith("died: the rank on the worker")
        assert begun["run"] == served["run"]
        assert (watch.stand.folder / "state/dspark" / PAIR / "runs" / served["run"] / "run.json").exists()


def test_it_wakes_at_a_death_and_says_so(watch: Watch) -> None:
    watch.clock = FakeClock(interrupt_at=2.0)
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.kill("head")
    supervisor._contact.woke.wait(5)
    with pytest.raises(Interrupted):
        supervisor.run()
    assert watch.texts("event")[0] == "head: die of spark-pair-vllm-1, exit code 137"
    assert watch.stand.order == ["worker", "head"]


def test_a_rank_that_dies_at_once_every_time_is_given_up_with_the_reason(watch: Watch) -> None:
    watch.stand.worker.on_start = lambda host, started: host.engine_.die(started.id, 3, "RuntimeError: no luck")
    watch.kill("worker")
    with pytest.raises(NotAsWanted) as raised:
        watch.supervisor().run()
    assert watch.kinds().count("restarts") == 3
    assert raised.value.message.startswith("spark-pair is given up: 3 restarts in a row failed")
    assert "exit code 3" in raised.value.message
    assert watch.stand.running() == {"head": [], "worker": []}
    assert watch.clock.now() >= 30 + 60  # the pauses between


def test_a_release_that_a_node_keeps_no_more_is_given_up_with_that_reason(watch: Watch) -> None:
    worker = watch.stand.worker
    assert watch.release is not None
    folder = worker.release_folder(PAIR, watch.release)
    worker.files = {path: content for path, content in worker.files.items() if not path.is_relative_to(folder)}
    watch.kill("worker")
    with pytest.raises(NotAsWanted) as raised:
        watch.supervisor().run()
    assert f"worker: release {watch.release} is not kept there whole" in raised.value.message


def test_the_limit_holds_for_a_supervise_that_is_started_anew(watch: Watch) -> None:
    watch.stand.worker.on_start = lambda host, started: host.engine_.die(started.id, 3)
    watch.kill("worker")
    with pytest.raises(NotAsWanted):
        watch.supervisor().run()
    watch.said.clear()
    with pytest.raises(NotAsWanted):
        watch.supervisor().turn()
    assert watch.kinds() == ["gives-up"]


def test_after_a_persons_up_the_count_begins_anew(watch: Watch) -> None:
    watch.stand.worker.on_start = lambda host, started: host.engine_.die(started.id, 3)
    watch.kill("worker")
    with pytest.raises(NotAsWanted):
        watch.supervisor().run()
    watch.stand.worker.on_start = watch.stand.start_worker
    again = watch.stand.bring_up()
    again.record._began = again.record._began.replace(year=2100)  # after the restarts, which took no time
    again.up()
    watch.said.clear()
    watch.supervisor().turn()
    assert watch.kinds() == ["serves"]


def test_a_pair_that_generates_nothing_is_restarted_after_its_time(watch: Watch) -> None:
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.prints_only()
    watch.server.running = 1
    while not watch.texts("restarts"):
        assert watch.clock.now() < 200
        watch.clock.sleep(5)
        supervisor.turn()
    assert 60 <= watch.clock.now() <= 70
    assert "nothing moves for 60 s" in watch.texts("restarts")[0]


def test_an_api_that_only_refuses_is_restarted_within_a_minute_or_so(watch: Watch) -> None:
    supervisor = watch.supervisor()
    watch.server.status = 503
    while not watch.texts("restarts"):
        assert watch.clock.now() < 100
        watch.clock.sleep(5)
        supervisor.turn()
    assert "HTTP 503" in watch.texts("restarts")[0]


def test_a_key_that_is_not_taken_is_told_and_mended_by_no_restart(watch: Watch) -> None:
    supervisor = watch.supervisor()
    watch.server.status = 401
    for _ in range(20):
        watch.clock.sleep(30)
        supervisor.turn()
    assert watch.kinds() == ["waits"]
    assert "it asks for a key" in watch.texts("waits")[0]


def test_a_long_prefill_is_never_taken_for_a_wedge(watch: Watch) -> None:
    """Half an hour without a token, while the prompt's blocks are taken one by one."""
    supervisor = watch.supervisor()
    supervisor.turn()

    def read_on(server: Server) -> None:
        server.used += 0.001

    watch.server.running, watch.server.each_reading = 1, read_on
    for _ in range(60):
        watch.clock.sleep(30)
        supervisor.turn()
    assert watch.kinds() == ["serves"]


def test_lines_about_work_are_life_and_other_lines_are_not(watch: Watch) -> None:
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.server.running = 1
    watch.prints_only("TileLang begins to compile kernel `sparse_mla_fwd`")
    for _ in range(6):
        watch.clock.sleep(30)
        supervisor.turn()
    assert not watch.texts("restarts")
    watch.prints_only('INFO: "GET /metrics HTTP/1.1" 200', "No available shared memory broadcast block found")
    for _ in range(6):
        watch.clock.sleep(30)
        supervisor.turn()
    assert watch.texts("restarts")


def test_another_run_goes_first(watch: Watch) -> None:
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.kill("head")
    watch.stand.head.lock_owner = {"who": "you@laptop", "command": "dspark down"}
    supervisor.turn()
    supervisor.turn()
    assert watch.kinds() == ["serves", "aside"]
    assert "`dspark down` of you@laptop" in watch.texts("aside")[0]
    assert watch.stand.order == []


def test_after_a_down_nothing_is_meant_to_serve(watch: Watch) -> None:
    for host in watch.stand.hosts.values():
        host.engine_.kept.clear()
        host.history.append(
            {"run": "r", "at": "2100-01-01T00:00:00+00:00", "who": "you", "command": "down", "outcome": "down"}
        )
    supervisor = watch.supervisor()
    supervisor.turn()
    supervisor.turn()
    assert watch.kinds() == ["waits"]
    assert "`dspark down` of you at 2100" in watch.texts("waits")[0]


def test_what_was_meant_to_be_stopped_is_stopped_first(watch: Watch) -> None:
    mark = {"at": "2026-09-01T10:00:00+00:00", "who": "you", "reason": "no answer"}
    watch.stand.worker.marks[f"{UNCONFIRMED}worker"] = mark
    supervisor = watch.supervisor()
    supervisor.turn()
    assert watch.kinds() == ["warns", "settled"]
    assert watch.stand.worker.marks == {}
    assert watch.stand.running()["worker"] == []


def test_a_node_that_comes_back_without_its_rank_is_waited_for(watch: Watch) -> None:
    supervisor = watch.supervisor()
    supervisor.turn()
    gone = NodeUnreachable("worker: the SSH connection is gone", remedy="wait", node="worker")
    watch.stand.worker.engine_.failing = gone
    watch.unreachable.add("worker")
    watch.clock.sleep(20)
    supervisor.turn()
    supervisor.turn()
    assert watch.kinds() == ["serves", "waits", "waits"]
    watch.clock.sleep(20)
    watch.unreachable.clear()
    watch.stand.worker.engine_.failing = None
    watch.stand.worker.engine_.kept.clear()
    watch.stand.worker.facts = replace(watch.stand.worker.facts, boot_id="another")
    supervisor.turn()
    assert watch.texts("event") == ["worker: answers again", "worker: was started anew: another boot than before"]
    assert watch.texts("restarts") == ["the worker was started anew, and the worker has no rank"]
    assert watch.stand.order == ["worker", "head"]


def test_a_daemon_that_is_down_is_waited_for(watch: Watch) -> None:
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.stand.head.engine_.failing = StepFailed("head: the docker daemon does not run", remedy="wait", node="head")
    supervisor.turn()
    assert watch.texts("waits") == ["head: the docker daemon does not run"]
    watch.stand.head.engine_.failing = None
    watch.kill("head")
    supervisor.turn()
    assert watch.stand.order == ["worker", "head"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"netdevs": ()}, "worker: no interface has the fabric address 192.168.177.12 yet"),
        ({"netdevs": [replace(each, up=False) for each in node_facts("worker").netdevs]}, "has no link"),
        ({"memory": memory(available=30 * 2**30)}, "worker: 30.0 GiB of memory are available"),
    ],
)
def test_no_restart_is_spent_on_a_node_that_is_not_ready(watch: Watch, changes: dict[str, Any], says: str) -> None:
    healthy = watch.stand.worker.facts
    supervisor = watch.supervisor()
    watch.stand.worker.facts = replace(healthy, **changes)
    watch.kill("worker")
    for _ in range(3):
        supervisor.turn()
    assert watch.kinds() == ["waits"]
    assert says in watch.texts("waits")[0]
    assert watch.stand.head.lock_owner is None
    watch.stand.worker.facts = healthy
    supervisor.turn()
    assert watch.stand.order == ["worker", "head"]


def test_ranks_that_hung_in_a_cut_have_their_time_anew_once_the_link_is_back(watch: Watch) -> None:
    healthy = watch.stand.worker.facts
    supervisor = watch.supervisor()
    supervisor.turn()
    watch.prints_only()
    watch.server.running = 1
    watch.stand.worker.facts = replace(healthy, netdevs=tuple(replace(each, up=False) for each in healthy.netdevs))
    for _ in range(60):
        watch.clock.sleep(5)
        supervisor.turn()
    assert sum("has no link" in each for each in watch.texts("waits")) == 1
    watch.stand.worker.facts = healthy
    for _ in range(6):
        watch.clock.sleep(5)
        supervisor.turn()
    watch.server.generated += 1  # half a minute later the step that hung goes on
    supervisor.turn()
    assert not watch.texts("restarts")
    assert watch.kinds()[-1] == "serves"


def test_another_release_than_the_meant_one_is_left_alone(watch: Watch) -> None:
    for node, host in watch.stand.hosts.items():
        rank = watch.rank(node)
        host.engine_.kept[rank.id] = replace(rank, labels={**rank.labels, "dspark.release": "bbbbbbbbbbbb"})
    watch.kill("head")
    supervisor = watch.supervisor()
    supervisor.turn()
    assert watch.kinds() == ["waits"]
    assert "bbbbbbbbbbbb on the worker" in watch.texts("waits")[0]


def test_a_lock_that_was_taken_away_ends_the_restart_and_not_the_watch(watch: Watch) -> None:
    def lose(_host: FakeHost, _started: Container) -> None:
        raise LockLost("the lock was taken away from this run", remedy="look")

    watch.stand.worker.on_start = lose
    supervisor = watch.supervisor()
    watch.kill("worker")
    supervisor.turn()
    supervisor.turn()
    assert watch.kinds() == ["restarts", "aside", "waits"]
    assert watch.stand.running()["worker"] == [watch.release]  # nothing is undone: another run may be using it
    watch.stand.worker.on_start = watch.stand.start_worker
    watch.clock.sleep(30)
    supervisor.turn()
    assert watch.stand.order == ["worker", "head"]


def test_a_dry_run_looks_once_and_does_nothing(watch: Watch) -> None:
    watch.kill("worker")
    intended = watch.supervisor().intend()
    assert (intended.kind, intended.text) == ("restarts", "the rank on the worker is exited with exit code 137")
    assert watch.stand.order == []
