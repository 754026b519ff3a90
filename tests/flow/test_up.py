"""`up` over fake nodes: every way it can end, and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import CheckRefused, Declined, Interrupted, LaunchFailed, NotAsWanted, StepFailed
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.wish import Limits
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, Stand
from tests.samples import image

NOTHING: dict[str, list[str]] = {"head": [], "worker": []}


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_up_starts_the_worker_first_and_says_what_serves(stand: Stand) -> None:
    report = stand.bring_up().up()
    assert stand.order == ["worker", "head"]
    assert (report.state, report.profile, report.family) == ("serving", "agent-1m", "anemll")
    assert report.base_url == "http://10.77.0.1:8888/v1"
    assert report.changed
    assert report.release is not None
    assert stand.running() == {"head": [report.release], "worker": [report.release]}
    assert stand.asked == []


def test_a_second_up_asks_the_api_and_changes_nothing(stand: Stand) -> None:
    first = stand.bring_up().up()
    done = {node: len(host.done) for node, host in stand.hosts.items()}
    again = stand.bring_up().up()
    assert not again.changed
    assert (again.release, again.pushed_bytes) == (first.release, 0)
    new = [what for node, host in stand.hosts.items() for what, _ in host.done[done[node] :]]
    assert set(new) == {"probe", "verify_cache"}


def test_a_rank_that_dies_is_named_with_its_last_lines_and_everything_is_stopped(stand: Stand) -> None:
    def dies(host: FakeHost, container: Container) -> None:
        host.engine_.die(container.id, 3, "RuntimeError: no luck")

    stand.worker.on_start = dies
    with pytest.raises(LaunchFailed) as raised:
        stand.bring_up().up()
    assert raised.value.node == "worker"
    assert "exit code 3" in raised.value.message
    assert "no luck" in raised.value.why
    assert stand.running() == NOTHING
    assert stand.order == []


def test_both_logs_of_a_failed_start_are_kept(stand: Stand) -> None:
    def dies(host: FakeHost, container: Container) -> None:
        host.engine_.die(container.id, 1, "no KV cache")

    stand.head.on_start = dies
    with pytest.raises(LaunchFailed):
        stand.bring_up().up()
    (run,) = (stand.folder / "state" / "dspark" / "spark-pair" / "runs").iterdir()
    assert "no KV cache" in (run / "head.log").read_text()
    assert "rendezvous" not in (run / "head.log").read_text()
    assert (run / "worker.log").read_text().endswith("backend=nccl\n")
    assert run.stat().st_mode & 0o077 == 0


def test_a_worker_that_only_runs_is_not_enough(stand: Stand) -> None:
    stand.worker.on_start = lambda _host, _container: None
    with pytest.raises(LaunchFailed, match="rendezvous"):
        stand.bring_up().up()
    assert stand.order == []
    assert stand.running() == NOTHING


def test_a_head_that_never_answers_ends_at_the_limit(stand: Stand) -> None:
    stand.head.on_start = lambda _host, _container: None
    with pytest.raises(LaunchFailed, match="within 30 s"):
        stand.bring_up(limits=Limits(api_s=30, rendezvous_s=20)).up()
    told = [each.elapsed_s for each in stand.observer.progresses]
    assert max(later - earlier for earlier, later in pairwise(told)) < 10
    assert told[-1] > 25
    assert stand.running() == NOTHING


def test_the_wrong_length_is_no_success(stand: Stand) -> None:
    stand.max_model_len = 4096
    with pytest.raises(LaunchFailed, match="4096"):
        stand.bring_up().up()
    assert stand.running() == NOTHING


def test_a_missing_image_stops_it_before_anything_changes(stand: Stand) -> None:
    stand.worker.facts = replace(stand.worker.facts, images=())
    with pytest.raises(CheckRefused):
        stand.bring_up().up()
    looked = {what for host in stand.hosts.values() for what, _ in host.done}
    assert looked == {"probe", "verify_cache", "link"}


def test_another_profile_asks_and_a_no_changes_nothing(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.agrees = False
    with pytest.raises(Declined):
        stand.bring_up("coding-1m").up()
    assert len(stand.asked) == 1
    assert stand.running() == {"head": [first.release], "worker": [first.release]}


def test_another_profile_stops_the_old_release_and_starts_its_own(stand: Stand) -> None:
    first = stand.bring_up().up()
    second = stand.bring_up("coding-1m").up()
    assert second.release != first.release
    assert stand.running() == {"head": [second.release], "worker": [second.release]}


def test_a_change_that_fails_brings_back_what_served(stand: Stand) -> None:
    first = stand.bring_up().up()

    def dies_once(host: FakeHost, container: Container) -> None:
        stand.worker.on_start = stand.start_worker
        host.engine_.die(container.id, 1, "bad luck")

    stand.worker.on_start = dies_once
    with pytest.raises(LaunchFailed) as raised:
        stand.bring_up("coding-1m").up()
    assert "serves again" in raised.value.why
    assert stand.running() == {"head": [first.release], "worker": [first.release]}


def test_a_return_that_fails_too_is_said(stand: Stand) -> None:
    stand.bring_up().up()
    stand.worker.on_start = lambda host, container: host.engine_.die(container.id, 1, "bad luck")
    with pytest.raises(NotAsWanted, match="could not be brought back"):
        stand.bring_up("coding-1m").up()


def test_what_can_not_be_stopped_is_said(stand: Stand) -> None:
    def dies_and_stays(host: FakeHost, container: Container) -> None:
        host.engine_.unstoppable.add(container.id)
        host.engine_.die(container.id)

    stand.worker.on_start = dies_and_stays
    with pytest.raises(NotAsWanted) as raised:
        stand.bring_up().up()
    assert raised.value.node == "worker"


def test_a_broken_pair_of_the_same_release_is_restarted_without_a_question(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.head.api = None
    again = stand.bring_up(limits=Limits(api_s=5, rendezvous_s=5)).up()
    assert again.changed
    assert again.release == first.release
    assert stand.order == ["worker", "head"] * 2
    assert stand.asked == []


def test_a_pair_whose_image_tag_moved_is_not_as_wanted(stand: Stand) -> None:
    stand.bring_up().up()
    moved = image(id="sha256:" + "9" * 64)
    for host in stand.hosts.values():
        host.facts = replace(host.facts, images=(moved,))
        host.engine_.images = {moved.reference: moved.id}
    assert stand.bring_up().up().changed
    assert len(stand.asked) == 1


def test_an_interruption_before_both_ranks_run_undoes_it(stand: Stand) -> None:
    stand.worker.on_start = lambda _host, _container: None
    with pytest.raises(Interrupted) as raised:
        stand.bring_up(clock=FakeClock(interrupt_at=3)).up()
    assert "stopped on both nodes" in raised.value.why
    assert stand.running() == NOTHING


def test_an_interruption_while_the_api_is_awaited_leaves_both_booting(stand: Stand) -> None:
    stand.head.on_start = lambda _host, _container: None
    with pytest.raises(Interrupted, match="go on booting"):
        stand.bring_up(clock=FakeClock(interrupt_at=3)).up()
    assert all(len(releases) == 1 for releases in stand.running().values())


def test_a_failed_push_leaves_no_container_and_no_old_one_stopped(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.worker.failing["receive"] = StepFailed("worker: no space left on device", remedy="free it", node="worker")
    with pytest.raises(StepFailed):
        stand.bring_up("coding-1m").up()
    assert stand.running() == {"head": [first.release], "worker": [first.release]}


def test_a_record_that_can_not_be_written_is_a_warning(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    assert stand.bring_up().up().state == "serving"
    assert any("record" in warning for warning in stand.observer.warnings)


@pytest.mark.parametrize("status", [500, 404])
def test_an_api_that_lists_its_model_and_fails_to_answer_is_no_success(stand: Stand, status: int) -> None:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        return stand.answer(method, path, body) if method == "GET" else (status, {"error": "engine is dead"})

    def serves(host: FakeHost, _container: Container) -> None:
        host.api = answer

    stand.head.on_start = serves
    with pytest.raises(LaunchFailed, match=str(status)):
        stand.bring_up().up()
    assert stand.running() == NOTHING
