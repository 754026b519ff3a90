"""Each check fails on exactly its fault, and a healthy pair raises none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dspark_deploy.checks.every import check_start
from dspark_deploy.checks.finding import failures, refuse
from dspark_deploy.errors import CheckRefused
from dspark_deploy.facts.node import Docker, Listener, PathFact
from dspark_deploy.plan.deployment import Deployment
from tests.plan.deployments import deploy, example_inventory
from tests.samples import container, image, pair_facts


@pytest.fixture(scope="module", name="wanted")
def _wanted() -> Deployment:
    example = example_inventory()
    homes = {node: {"hf_home": "~/.cache/huggingface"} for node in ("head", "worker")}
    changes = {node: getattr(example, node).model_copy(update=change) for node, change in homes.items()}
    return deploy("agent-1m", inventory=example.model_copy(update=changes), facts=pair_facts())


def test_a_healthy_idle_pair_has_no_failure_and_no_warning(wanted: Deployment) -> None:
    findings = check_start(wanted, pair_facts())
    assert {finding.status for finding in findings} == {"ok"}


def test_a_healthy_serving_pair_has_no_failure(wanted: Deployment) -> None:
    facts = pair_facts(
        head={
            "containers": (container("head"),),
            "listeners": (Listener("0.0.0.0", 8888), Listener("192.168.177.11", 25000)),
        },
        worker={"containers": (container("worker"),)},
    )
    assert failures(check_start(wanted, facts)) == ()


FAULTS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("docker-access", {}, {"docker": Docker("down", "Cannot connect to the Docker daemon")}, "worker"),
    ("docker-access", {"docker": Docker("permission", "permission denied")}, {}, "head"),
    ("docker-access", {"docker": Docker("absent", "docker: not found")}, {}, "head"),
    ("compose-version", {}, {"docker": Docker("ok", version="28", compose=None)}, "worker"),
    ("compose-version", {}, {"docker": Docker("ok", version="28", compose="2.19.1")}, "worker"),
    ("image-present", {}, {"images": ()}, "worker"),
    ("image-architecture", {}, {"architecture": "x86_64"}, "worker"),
    ("image-same", {}, {"images": (image(layers=("sha256:aa", "sha256:zz")),)}, ""),
    ("image-same", {}, {"images": (image(config="beef"),)}, ""),
    ("mount-source", {}, {"paths": (PathFact("/home/ubuntu/.cache/huggingface", "absent"),)}, "worker"),
    ("mount-source", {"paths": (PathFact("/home/nvidia/.cache/huggingface", "file"),)}, {}, "head"),
    ("rdma-device", {"rdma_devices": False}, {}, "head"),
    ("ports-free", {"listeners": (Listener("127.0.0.1", 8888),)}, {}, "head"),
    ("ports-free", {"listeners": (Listener("::", 25000),)}, {}, "head"),
    ("two-machines", {}, {"boot_id": "boot-head", "hostname": "spark-head"}, ""),
    ("foreign-containers", {}, {"containers": (container("worker", labels={}),)}, "worker"),
]


@pytest.mark.parametrize(("check", "head", "worker", "node"), FAULTS)
def test_a_fault_gets_its_own_finding_and_no_other(
    wanted: Deployment, check: str, head: dict[str, Any], worker: dict[str, Any], node: str
) -> None:
    failed = failures(check_start(wanted, pair_facts(head=head, worker=worker)))
    assert [(finding.id, finding.node or "") for finding in failed] == [(check, node)]
    assert failed[0].remedy


def test_images_with_other_ids_and_the_same_content_are_the_same(wanted: Deployment) -> None:
    facts = pair_facts(worker={"images": (image(id="sha256:" + "2" * 64),)})
    assert failures(check_start(wanted, facts)) == ()


def test_a_port_of_another_address_is_no_conflict(wanted: Deployment) -> None:
    bound = replace(wanted, api=replace(wanted.api, bind="10.77.0.1"))
    facts = pair_facts(head={"listeners": (Listener("127.0.0.1", 8888),)})
    assert failures(check_start(bound, facts)) == ()


def test_a_refusal_names_the_first_failure_and_the_others(wanted: Deployment) -> None:
    facts = pair_facts(head={"rdma_devices": False}, worker={"images": ()})
    with pytest.raises(CheckRefused) as raised:
        refuse(check_start(wanted, facts))
    assert "worker: image" in raised.value.message
    assert "head: /dev/infiniband" in raised.value.why
