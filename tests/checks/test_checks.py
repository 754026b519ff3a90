"""Each check speaks of exactly its fault, and a healthy pair raises none."""

from __future__ import annotations

from typing import Any

import pytest

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.changes import fingerprints
from dspark_deploy.checks.every import CHECKS, excuse, expect_known, judge
from dspark_deploy.checks.finding import failures, refuse
from dspark_deploy.errors import CheckRefused, ConfigError
from dspark_deploy.facts.node import Listener, Noted, Process
from tests.checks.cases import case, granted, inventory, look
from tests.checks.faults import FAILS, WARNS, Fault
from tests.samples import container, docker, image, memory


def test_a_healthy_idle_pair_has_nothing_but_good_to_say() -> None:
    assert {finding.status for finding in judge(case())} == {"ok"}


def test_a_healthy_serving_pair_has_nothing_but_good_to_say() -> None:
    runs: dict[str, Any] = {"granted": granted(), "gpu_memory_utilization": 0.85}
    head = {
        "containers": (container("head", started_at="2026-09-01T10:00:20.0Z", **runs),),
        "listeners": (Listener("0.0.0.0", 8888), Listener("192.168.177.11", 25000)),
        "memory": memory(available=14 * 2**30, free=2**30, cached=9 * 2**30),
        "gpu_processes": (Process(4711, "VLLM::Worker", container="head-0123456789ab"),),
    }
    worker = {"containers": (container("worker", **runs),), "memory": memory(available=14 * 2**30, free=2**30)}
    assert {finding.status for finding in judge(case(head, worker))} == {"ok"}


def test_without_a_profile_only_the_nodes_are_judged() -> None:
    findings = judge(case(profile=None))
    assert {finding.status for finding in findings} == {"ok"}
    assert not {"image-present", "memory-available"} & {finding.id for finding in findings}


@pytest.mark.parametrize("fault", FAILS, ids=str)
def test_a_fault_gets_its_own_failure_and_no_other(fault: Fault) -> None:
    found = judge(_case(fault))
    bad = [finding for finding in found if finding.status in {"fail", "warn"}]
    assert [(each.id, each.status, each.node) for each in bad] == [(fault.check, "fail", fault.node)]
    _says_what_it_should(fault, bad[0].message, bad[0].remedy, bad[0].failure_ids)


@pytest.mark.parametrize("fault", WARNS, ids=str)
def test_a_doubt_gets_its_own_warning_and_stops_nothing(fault: Fault) -> None:
    found = judge(_case(fault))
    bad = [finding for finding in found if finding.status in {"fail", "warn"}]
    assert [(each.id, each.status, each.node) for each in bad] == [(fault.check, "warn", fault.node)]
    _says_what_it_should(fault, bad[0].message, bad[0].remedy, bad[0].failure_ids)


def _case(fault: Fault) -> Case:
    return case(fault.head, fault.worker, pair=fault.pair, profile=fault.profile, given=fault.given, heard=fault.heard)


def _says_what_it_should(fault: Fault, message: str, remedy: str, failure_ids: tuple[str, ...]) -> None:
    assert fault.says in message
    assert remedy
    assert failure_ids == fault.failures


def test_every_fault_carries_rows_that_its_check_covers() -> None:
    covered = {check.id: set(check.failure_ids) for check in CHECKS}
    for fault in (*FAILS, *WARNS):
        assert set(fault.failures) <= covered[fault.check]


def test_every_check_has_a_fault_that_it_finds() -> None:
    from_flows = {"ssh-login"}  # a node that can't be reached has no facts
    assert {check.id for check in CHECKS} - {fault.check for fault in (*FAILS, *WARNS)} == from_flows


def test_check_ids_are_unique() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def test_images_with_other_ids_and_the_same_content_are_the_same() -> None:
    other = image(id="sha256:" + "2" * 64)
    assert failures(judge(case(worker={"images": (other,), "looks": (look(of=other),)}))) == ()


def test_an_image_that_was_loaded_knows_no_digest_and_that_is_fine() -> None:
    said = [each for each in judge(case()) if each.id == "image-digest"]
    assert [each.status for each in said] == ["ok", "ok"]
    assert "was loaded, not pulled" in said[0].message


def test_an_image_that_was_not_looked_into_is_unknown_with_its_reason() -> None:
    found = judge(case(worker={"looks": (), "missing": {"look": "no room for a container"}}))
    (said,) = [each for each in found if each.status == "skip"]
    assert (said.id, said.node) == ("image-layout", "worker")
    assert "no room for a container" in said.message


def test_a_port_of_another_address_is_no_conflict() -> None:
    pair = inventory(api={"bind": "10.77.0.1"})
    assert failures(judge(case({"listeners": (Listener("127.0.0.1", 8888),)}, pair=pair))) == ()


def test_own_containers_are_judged_as_if_they_were_gone() -> None:
    """A rank that serves holds memory, ports and the GPU; none of that stands in the way of the next start."""
    runs = container("head", granted=granted(), gpu_memory_utilization=0.5)
    head = {"containers": (runs,), "memory": memory(available=40 * 2**30)}
    worker = {"containers": (container("worker", granted=granted(), gpu_memory_utilization=0.5),)}
    (said,) = [each for each in judge(case(head, worker)) if each.id == "memory-available" and each.node == "head"]
    assert said.status == "warn"
    assert "once its own rank is stopped" in said.message


def test_the_largest_utilization_that_fits_is_named() -> None:
    found = judge(case(worker={"memory": memory(available=100 * 2**30)}))
    (said,) = [each for each in found if each.status == "fail"]
    assert "--set gpu_memory_utilization=0.84" in said.remedy


@pytest.mark.parametrize("version", ["2.20.0", "v2.36.0", "2.40.3+ds1", "5.0.1"])
def test_every_compose_from_the_oldest_on_is_new_enough(version: str) -> None:
    assert failures(judge(case(worker={"docker": docker(compose=version)}))) == ()


def test_a_restart_alone_is_no_change() -> None:
    now = fingerprints(case())["head"]
    noted = Noted("2026-08-30T09:00:00+00:00", {**now, "boot": "another", "GID index": "5"})
    (said,) = [each for each in judge(case({"noted": noted})) if each.id == "changed-since"]
    assert said.status == "ok"
    assert "it was restarted" in said.message


def test_a_refusal_names_the_first_failure_and_the_others() -> None:
    with pytest.raises(CheckRefused) as raised:
        refuse(judge(case({"rdma_devices": False}, {"images": ()})))
    assert "worker: image" in raised.value.message
    assert "head: /dev/infiniband" in raised.value.why
    assert "--skip" in raised.value.why


def test_what_is_skipped_on_request_stops_nothing_and_stays_visible() -> None:
    found = excuse(judge(case({"rdma_devices": False})), ("rdma-device",))
    assert failures(found) == ()
    (said,) = [each for each in found if each.status == "skip"]
    assert said.message == "skipped on request: head: /dev/infiniband holds no device"


def test_a_check_that_does_not_exist_can_not_be_skipped() -> None:
    expect_known(("image-same",))
    with pytest.raises(ConfigError, match="--skip image-sane") as raised:
        expect_known(("image-sane",))
    assert raised.value.remedy == "did you mean image-same?"
