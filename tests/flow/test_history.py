"""What runs leave on the nodes, and the ways back, over fake nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.errors import (
    CheckRefused,
    ConfigError,
    DsparkError,
    Interrupted,
    LaunchFailed,
    NotAsWanted,
    StepFailed,
)
from dspark_deploy.execute.journal import read_journals
from dspark_deploy.flow.bring import Bring
from dspark_deploy.flow.history import prepare_rollback, rollback_target
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.up import PlanReport, plan_report
from dspark_deploy.plan.journal import BOOTING
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, Stand
from tests.samples import container


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def roll_back(stand: Stand, release: str | None = None) -> PairReport:
    up = stand.bring_up()
    target = prepare_rollback(stand.hosts, "spark-pair", release, stand.observer, up.clock)
    return Bring(up.limits, stand.observer, up.clock, up.confirm, stand.hosts, up.record).to(target)


def intend(stand: Stand, release: str | None = None) -> PlanReport:
    clock = FakeClock()
    journals = read_journals(stand.hosts, "spark-pair", clock)
    return plan_report(stand.hosts, rollback_target(stand.hosts, "spark-pair", release, journals, clock), clock)


def outcomes(host: FakeHost) -> list[tuple[str, str]]:
    return [(entry["command"], entry["outcome"]) for entry in host.history]


def test_every_start_is_told_by_both_nodes_and_a_second_up_leaves_no_trace(stand: Stand) -> None:
    report = stand.bring_up().up()
    stand.bring_up().up()
    for host in stand.hosts.values():
        (entry,) = host.history
        assert (entry["outcome"], entry["profile"], entry["release"]) == ("serving", "agent-1m", report.release)
        assert entry["seconds"]["start the worker"] >= 0


def test_a_failed_start_is_told_with_its_reason(stand: Stand) -> None:
    stand.worker.on_start = lambda host, started: host.engine_.die(started.id, 3)
    with pytest.raises(LaunchFailed):
        stand.bring_up().up()
    assert outcomes(stand.head) == [("up", "launch-failed")]
    assert "exit code 3" in stand.head.history[0]["message"]


def test_a_rollback_serves_the_release_before_with_its_own_files(stand: Stand) -> None:
    first = stand.bring_up().up()
    second = stand.bring_up("coding-1m").up()
    back = roll_back(stand)
    assert (back.release, back.profile, back.changed) == (first.release, "agent-1m", True)
    assert stand.running() == {"head": [first.release], "worker": [first.release]}
    assert f"this ends release {second.release}" in stand.asked[-1]


def test_a_plan_of_a_rollback_is_what_it_does_and_changes_nothing(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = "dspark_deploy.flow.up.read_files"
    monkeypatch.setattr(kept, lambda _host, _pair, release: {"compose.yaml": f"release: {release}\n"})
    first = stand.bring_up().up()
    second = stand.bring_up("coding-1m").up()
    done = {node: len(host.commands) for node, host in stand.hosts.items()}
    plan = intend(stand)
    assert (plan.release, plan.ends, plan.profile, plan.changes) == (first.release, second.release, "agent-1m", True)
    assert f"+release: {first.release}" in plan.diffs["head"]
    assert {node: len(host.commands) for node, host in stand.hosts.items()} == done
    assert stand.running() == {"head": [second.release], "worker": [second.release]}
    stand.observer.steps.clear()
    roll_back(stand)
    assert tuple(stand.observer.steps) == plan.steps


def test_a_plan_of_a_rollback_to_what_serves_changes_nothing(stand: Stand) -> None:
    first = stand.bring_up().up()
    plan = intend(stand, first.release)
    assert (plan.changes, plan.ends, plan.diffs) == (False, None, {})


def test_the_beginning_of_an_id_is_enough_and_going_where_one_is_changes_nothing(stand: Stand) -> None:
    first = stand.bring_up().up()
    assert first.release is not None
    assert not roll_back(stand, first.release[:5]).changed


def test_a_release_that_nobody_keeps_is_a_mistake_and_the_kept_ones_are_said(stand: Stand) -> None:
    first = stand.bring_up().up()
    with pytest.raises(ConfigError) as raised:
        roll_back(stand, "ffffffffffff")
    assert str(first.release) in raised.value.remedy


def test_a_release_that_one_node_lacks_is_refused(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.bring_up("coding-1m").up()
    folder = stand.worker.release_folder("spark-pair", str(first.release))
    stand.worker.files = {path: data for path, data in stand.worker.files.items() if not path.is_relative_to(folder)}
    with pytest.raises(CheckRefused) as raised:
        roll_back(stand)
    assert raised.value.node == "worker"


def test_a_release_whose_image_is_gone_is_refused_before_anything_stops(stand: Stand) -> None:
    stand.bring_up().up()
    second = stand.bring_up("coding-1m").up()
    stand.worker.engine_.images.clear()
    with pytest.raises(CheckRefused):
        roll_back(stand)
    assert stand.running() == {"head": [second.release], "worker": [second.release]}


def test_an_engine_that_is_gone_before_anything_stops_is_a_refusal(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.bring_up("coding-1m").up()
    stand.worker.engine_.failing = StepFailed("worker: no daemon", remedy="start it", node="worker")
    with pytest.raises(CheckRefused, match="no daemon") as raised:
        roll_back(stand, first.release)
    assert (raised.value.node, raised.value.remedy) == ("worker", "start it")


def test_with_no_other_release_there_is_nothing_to_go_back_to(stand: Stand) -> None:
    stand.bring_up().up()
    with pytest.raises(NotAsWanted):
        roll_back(stand)


def test_a_detached_boot_leaves_a_mark_that_the_next_up_completes(stand: Stand) -> None:
    serves, stand.head.on_start = stand.head.on_start, lambda _host, _container: None
    with pytest.raises(Interrupted):
        stand.bring_up(clock=FakeClock(interrupt_at=3)).up()
    assert all(BOOTING in host.marks for host in stand.hosts.values())
    assert stand.head.history == []
    serves(stand.head, next(iter(stand.head.engine_.kept.values())))
    report = stand.bring_up().up()
    assert not report.changed
    assert not any(host.marks for host in stand.hosts.values())
    assert outcomes(stand.worker) == [("up", "serving")]


def test_what_could_not_be_stopped_is_owed_and_made_good_by_the_next_up(stand: Stand) -> None:
    def dies_and_stays(host: FakeHost, started: object) -> None:
        del started
        (only,) = host.engine_.kept
        host.engine_.unstoppable.add(only)
        host.engine_.die(only)

    stand.worker.on_start = dies_and_stays
    with pytest.raises(NotAsWanted):
        stand.bring_up().up()
    assert list(stand.head.marks) == ["unconfirmed-worker"]
    stand.worker.engine_.unstoppable.clear()
    stand.worker.on_start = stand.start_worker
    report = stand.bring_up().up()
    assert stand.running() == {"head": [report.release], "worker": [report.release]}
    assert not stand.head.marks
    assert any("stopping it now" in warning for warning in stand.observer.warnings)


def test_a_stop_that_is_still_owed_and_fails_again_goes_no_further(stand: Stand) -> None:
    stand.head.marks["unconfirmed-worker"] = {"at": "t", "who": "w"}
    stuck = stand.worker.engine_.add(container("worker"))
    stand.worker.engine_.unstoppable.add(stuck.id)
    with pytest.raises(DsparkError):
        stand.bring_up().up()
    assert stand.order == []


def test_no_return_leaves_the_wreck(stand: Stand) -> None:
    stand.bring_up().up()
    stand.worker.on_start = lambda host, started: host.engine_.die(started.id)
    up = stand.bring_up("coding-1m")
    object.__setattr__(up.limits, "returns", False)
    with pytest.raises(LaunchFailed) as raised:
        up.up()
    assert "left as it is" in raised.value.why
    assert len(stand.worker.engine_.kept) == 1
