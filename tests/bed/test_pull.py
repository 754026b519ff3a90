"""The image on both nodes at once, from a registry that works, and from one that does not."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import registry
from .bed import Bed
from .faults import FaultyNode
from .network import LAN_ADDRESS
from .run import Ran
from .tool import dspark, result

NAME = "ghcr.io/anemll/dspark-vllm-gx10"
IMAGE = f"{NAME}:{registry.TAG}"
DAEMON = "/etc/docker/daemon.json"


@dataclass(frozen=True)
class Registry:
    """The stand-in for ghcr.io, as both nodes reach it."""

    folder: Path
    digest: str

    def fail(self, **faults: int) -> None:
        """See registry.Faults."""
        registry.set_faults(self.folder, **faults)


@pytest.fixture(name="stand_in")
def _stand_in(bed: Bed, tmp_path: Path) -> Iterator[Registry]:
    digest = registry.write_image(tmp_path / "registry")
    program = [sys.executable, "-I", registry.__file__, str(tmp_path / "registry"), LAN_ADDRESS]
    with subprocess.Popen(bed.on_lan(*program), stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        for node in bed.nodes:
            _reload(node, {"insecure-registries": ["ghcr.io"]})
        try:
            yield Registry(tmp_path / "registry", digest)
        finally:
            process.kill()
            for node in bed.nodes:
                _reload(node, {})
                _forget(node)


def _reload(node: FaultyNode, settings: dict[str, Any]) -> None:
    """dockerd takes a new list of insecure registries at SIGHUP: after TLS on 443 it then tries port 80."""
    node.path(DAEMON).write_text(json.dumps(settings))
    node.exec(["kill", "-HUP", node.read("/run/docker.pid").strip()]).check()
    listed = "" if not settings else "ghcr.io"
    while listed not in json.dumps(node.api.call("GET", "/info")["RegistryConfig"]["IndexConfigs"]):
        pass


def _forget(node: FaultyNode) -> None:
    """Remove what was pulled, also where it has no tag."""
    for image in node.api.call("GET", "/images/json"):
        if any(digest.startswith(NAME) for digest in image.get("RepoDigests") or ()):
            node.docker("rmi", "-f", image["Id"])


def pull(bed: Bed, *words: str, image: str = IMAGE) -> Ran:
    return dspark(bed, "pull", "--set", f"image={image}", "--output", "json", *words)


def causes(ran: Ran) -> dict[str, str | None]:
    assert ran.returncode == 8, ran
    nodes = result(ran)["nodes"]
    assert all(each["problem"] and each["remedy"] for each in nodes.values()), ran
    return {node: each["cause"] for node, each in nodes.items()}


def test_a_pull_gives_both_nodes_the_same_image_and_says_so(bed: Bed, stand_in: Registry) -> None:
    ran = pull(bed).check()
    told = result(ran)
    assert {node: each["problem"] for node, each in told["nodes"].items()} == {"head": "", "worker": ""}
    assert all(each["changed"] and each["bytes"] > 2 * registry.LAYER_BYTES for each in told["nodes"].values())
    assert told["nodes"]["head"]["digests"] == [f"{NAME}@{stand_in.digest}"]
    assert {each["id"]: each["status"] for each in told["findings"]}["image-same"] == "ok"
    assert [node.ssh_connections() for node in bed.nodes] == [1, 1]
    again = pull(bed).check()
    assert not any(each["changed"] for each in result(again)["nodes"].values())


def test_progress_is_told_while_bytes_come_slowly(bed: Bed, stand_in: Registry) -> None:
    stand_in.fail(bytes_a_second=1_500_000)
    ran = pull(bed).check()
    assert "MB so far" in ran.stderr
    assert all(each["seconds"] > 1 for each in result(ran)["nodes"].values())


def test_a_download_that_breaks_off_is_taken_up_again(bed: Bed, stand_in: Registry) -> None:
    stand_in.fail(cut_after=500_000, cuts=1)
    ran = pull(bed).check()
    assert "its download broke off" in ran.stderr


def test_a_download_that_always_breaks_off_is_given_up(bed: Bed, stand_in: Registry) -> None:
    stand_in.fail(cut_after=500_000, cuts=-1)
    ran = pull(bed, "--stall", "2s")
    assert causes(ran) == {"head": "stalled", "worker": "stalled"}
    assert "broke off" in result(ran)["nodes"]["head"]["problem"]


def test_a_registry_that_falls_silent_is_given_up(bed: Bed, stand_in: Registry) -> None:
    stand_in.fail(hang_after=500_000)
    assert causes(pull(bed, "--stall", "2s")) == {"head": "stalled", "worker": "stalled"}
    assert all(node.processes() == [] for node in bed.nodes)


@pytest.mark.parametrize(("status", "cause"), [(401, "denied"), (403, "denied"), (429, "rate-limit")])
def test_what_the_registry_refuses_is_told_by_its_cause(bed: Bed, stand_in: Registry, status: int, cause: str) -> None:
    stand_in.fail(status=status)
    ran = pull(bed)
    assert causes(ran) == {"head": cause, "worker": cause}
    assert "docker login ghcr.io" in result(ran)["nodes"]["head"]["remedy"]


def test_a_login_that_is_kept_and_refused_is_named_and_not_shown(bed: Bed, stand_in: Registry) -> None:
    stand_in.fail(status=403)
    kept = base64.b64encode(b"someone:very-secret").decode()
    config = json.dumps({"auths": {"ghcr.io": {"auth": kept}}})
    bed.worker.write(f"{bed.worker.home}/.docker/config.json", config, mode=0o600, owner=bed.worker.identity.uid)
    ran = pull(bed)
    causes(ran)
    remedies = {node: each["remedy"] for node, each in result(ran)["nodes"].items()}
    assert "docker logout ghcr.io" in remedies["worker"]
    assert "docker logout" not in remedies["head"]
    assert "very-secret" not in ran.stdout + ran.stderr
    assert kept not in ran.stdout + ran.stderr


@pytest.mark.usefixtures("stand_in")
def test_a_tag_that_is_not_there_is_not_found(bed: Bed) -> None:
    assert causes(pull(bed, image=f"{NAME}:no-such-tag")) == {"head": "not-found", "worker": "not-found"}


def test_a_digest_is_pulled_and_named_by_its_tag(bed: Bed, stand_in: Registry) -> None:
    ran = pull(bed, image=f"{NAME}:mine@{stand_in.digest}").check()
    statuses = {each["id"]: each["status"] for each in result(ran)["findings"]}
    assert statuses == {"image-present": "ok", "image-architecture": "ok", "image-same": "ok", "image-digest": "ok"}
    assert all(f"{NAME}:mine" in node.api.tags() for node in bed.nodes)


@pytest.mark.usefixtures("stand_in")
def test_a_digest_that_the_registry_does_not_have_is_not_found(bed: Bed) -> None:
    ran = pull(bed, image=f"{NAME}:{registry.TAG}@sha256:{'a' * 64}")
    assert causes(ran) == {"head": "not-found", "worker": "not-found"}


def test_a_registry_that_is_not_there_is_no_route(bed: Bed) -> None:
    assert causes(pull(bed)) == {"head": "no-route", "worker": "no-route"}


@pytest.mark.usefixtures("stand_in")
def test_a_full_disk_is_told_before_a_byte_is_pulled(bed: Bed) -> None:
    bed.worker.fill_disk()
    ran = pull(bed)
    assert ran.returncode == 3, ran
    assert "worker: 0.0 GiB are free" in ran.stderr


@pytest.mark.usefixtures("stand_in")
def test_a_dry_run_pulls_nothing(bed: Bed) -> None:
    ran = pull(bed, "-n").check()
    assert result(ran)["holds"] == {"head": "nothing", "worker": "nothing"}
    assert IMAGE not in bed.head.api.tags()


def test_an_image_that_is_built_on_the_nodes_can_not_be_pulled(bed: Bed) -> None:
    ran = dspark(bed, "pull", "-p", "stage-c-c12")
    assert ran.returncode == 2
    assert "docker save" in ran.stderr
