"""The checks inside `up`: what is let pass, what is asked for again after a stop, what is kept for the next run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dspark_deploy.errors import CheckRefused, ConfigError, LaunchFailed, StepFailed
from dspark_deploy.flow.intention import load_intention
from dspark_deploy.flow.wish import Wish
from tests.flow.stand import FakeClock, Stand
from tests.samples import memory

GIB = 2**30
LITTLE = memory(available=50 * GIB)


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_what_is_skipped_on_request_is_shown_and_recorded(stand: Stand) -> None:
    stand.worker.facts = replace(stand.worker.facts, memory=LITTLE)
    with pytest.raises(CheckRefused, match=r"worker: 50\.0 GiB are available"):
        stand.bring_up().up()
    bring_up = stand.bring_up()
    report = replace(bring_up, intention=replace(bring_up.intention, skip=("memory-available",))).up()
    assert [each.split(":")[0] for each in report.skipped] == ["memory-available"]
    assert report.record is not None
    record = json.loads((Path(report.record) / "run.json").read_text())
    assert record["skipped"] == list(report.skipped)
    assert [each["id"] for each in record["findings"]] == ["memory-available"]


def test_a_fabric_whose_index_is_doubtful_can_be_tried(stand: Stand) -> None:
    text = (stand.folder / "inventory.yaml").read_text()
    (stand.folder / "inventory.yaml").write_text(
        text.replace("{host: spark-worker}", "{host: spark-worker, fabric: {gid_index: 3}}")
    )
    with pytest.raises(CheckRefused, match="GID index 3 is not usable"):
        stand.bring_up().up()
    bring_up = stand.bring_up()
    assert replace(bring_up, intention=replace(bring_up.intention, skip=("gid-pinned",))).up().state == "serving"


def test_an_unknown_check_can_not_be_skipped(stand: Stand) -> None:
    wish = Wish(inventory=Path("inventory.yaml"), directory=stand.folder, home=stand.folder, skip=("memory",))
    with pytest.raises(ConfigError, match="--skip memory: there is no such check"):
        load_intention(wish)


def test_memory_that_comes_back_late_is_waited_for(stand: Stand) -> None:
    stand.bring_up().up()
    stand.worker.memories = [LITTLE, LITTLE, memory()]
    clock = FakeClock()
    report = stand.bring_up("coding-1m", clock=clock).up()
    assert report.profile == "coding-1m"
    assert "wait until what the old ranks held is free" in stand.observer.steps
    assert clock.now() >= 2


def test_memory_that_does_not_come_back_brings_the_old_release_back(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.worker.memories = [LITTLE]
    clock = FakeClock()
    with pytest.raises(LaunchFailed, match=r"worker: 50\.0 GiB of memory are free 60 s after the stop") as raised:
        stand.bring_up("coding-1m", clock=clock).up()
    assert clock.now() >= 60
    assert "serves again" in raised.value.why
    assert stand.running() == {"head": [first.release], "worker": [first.release]}


def test_nothing_is_waited_for_where_nothing_ran(stand: Stand) -> None:
    stand.worker.memories = [LITTLE]
    assert stand.bring_up().up().state == "serving"
    assert "wait until what the old ranks held is free" not in stand.observer.steps


def test_memory_that_is_skipped_is_not_waited_for_either(stand: Stand) -> None:
    stand.bring_up().up()
    stand.worker.memories = [LITTLE]
    bring_up = stand.bring_up("coding-1m")
    skipping = replace(bring_up, intention=replace(bring_up.intention, skip=("memory-available",)))
    assert skipping.up().profile == "coding-1m"


def test_a_good_start_is_kept_on_both_nodes_and_a_second_one_is_not_kept_again(stand: Stand) -> None:
    stand.bring_up().up()
    noted = {node: host.facts.noted for node, host in stand.hosts.items()}
    assert all(each is not None and each.values["kernel"] == "6.14.0-1013-nvidia" for each in noted.values())
    stand.bring_up().up()
    assert [what for what, _ in stand.head.done].count("remember") == 1


def test_a_change_since_is_a_warning_of_the_next_start(stand: Stand) -> None:
    stand.bring_up().up()
    system = replace(stand.worker.facts.system, kernel="6.17.0-1001-nvidia")
    stand.worker.facts = replace(stand.worker.facts, system=system)
    stand.bring_up().up()
    assert any("kernel 6.14.0-1013-nvidia -> 6.17.0-1001-nvidia" in each for each in stand.observer.warnings)


def test_what_can_not_be_kept_is_a_warning_and_stops_nothing(stand: Stand) -> None:
    stand.worker.failing["remember"] = StepFailed("worker: the disk is full", remedy="free it", node="worker")
    assert stand.bring_up().up().state == "serving"
    assert any("can't say what has changed" in each for each in stand.observer.warnings)


def test_the_link_is_tried_again_once_a_node_was_restarted(stand: Stand) -> None:
    stand.bring_up().up()
    stand.bring_up().up()
    assert [what for what, _ in stand.head.done].count("link") == 1
    stand.worker.facts = replace(stand.worker.facts, boot_id="another-boot")
    stand.bring_up().up()
    assert [what for what, _ in stand.head.done].count("link") == 2


def test_a_link_that_does_not_carry_is_refused(stand: Stand) -> None:
    stand.head.hears = {"full": False}
    with pytest.raises(CheckRefused, match="9000 bytes do not come from worker to head"):
        stand.bring_up().up()


def test_an_image_of_the_other_family_is_refused(stand: Stand) -> None:
    stand.head.layout = stand.worker.layout = "stage-c"
    with pytest.raises(CheckRefused, match="not laid out as anemll") as raised:
        stand.bring_up().up()
    assert "--family stage-c" in raised.value.remedy
    assert stand.order == []
