"""An image is looked into by way of a container that is made, never started, and removed."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.facts.parse import parse_look
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.programs._look import _first_file
from tests.remote.stub_docker import StubDocker

IMAGE = "sha256:" + "1" * 64
ENVS = "/packages/vllm/envs.py"
REQUEST: dict[str, Any] = {
    "pair": "spark-pair",
    "image": IMAGE,
    "paths": ["/bin/vllm", ENVS, "/opt/vllm"],
    "names_in": [ENVS, "/other"],
}
SOURCE = """
VLLM_TYPED: str
environment_variables: dict[str, Callable[[], Any]] = {
    "VLLM_HOST_IP": lambda: os.getenv("VLLM_HOST_IP", ""),
    'VLLM_PORT': get_port,
    "LOCAL_RANK" : lambda: 0,
}
"""
LIST = "GET /containers/json?all=1&filters=%7B%22label%22:%20%5B%22dspark.look%22%5D%7D"


@pytest.fixture(name="engine")
def _engine(docker: StubDocker) -> StubDocker:
    docker.answer(LIST, [])
    docker.answer("POST /containers/create", {"Id": "c1"}, status=201)
    for path in REQUEST["paths"][:2]:
        docker.answer(f"HEAD /containers/c1/archive?path={path}", "")
    docker.answer(f"GET /containers/c1/archive?path={ENVS}", f"base64:{_tar(SOURCE)}")
    docker.answer("DELETE /containers/c1?force=1&v=1", "", status=204)
    return docker


def _tar(text: str) -> str:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("envs.py")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(buffer.getvalue()).decode()


def test_paths_and_variables_are_told_and_the_container_is_gone(local: LocalHost, engine: StubDocker) -> None:
    look = parse_look(local.call("look", REQUEST, timeout_s=15))
    assert look.image_id == IMAGE
    assert (look.present, look.absent) == (("/bin/vllm", ENVS), ("/opt/vllm",))
    assert look.names == {ENVS: ("VLLM_HOST_IP", "VLLM_PORT")}
    asked = [what for what, _, _ in engine.asked()]
    assert not any("/start" in what for what in asked)
    assert asked[-1] == "DELETE /containers/c1?force=1&v=1"


def test_a_probe_looks_into_an_image_that_it_does_not_know_and_only_once(local: LocalHost, engine: StubDocker) -> None:
    engine.answer("GET /images/an:image/json", {"Id": IMAGE})
    request = {"pair": "spark-pair", "images": ["an:image"], "paths": []}
    wanted = {"paths": REQUEST["paths"], "names_in": REQUEST["names_in"]}
    for _ in range(2):
        (look,) = local.call("probe", {**request, "look": wanted}, timeout_s=15)["looks"]
        assert look["present"] == ["/bin/vllm", ENVS]
    assert local.call("probe", request, timeout_s=15)["looks"] == []
    assert [what for what, _, _ in engine.asked()].count("POST /containers/create") == 1


def test_a_probe_that_can_not_look_says_why(local: LocalHost, engine: StubDocker) -> None:
    engine.answer("GET /images/an:image/json", {"Id": IMAGE})
    engine.answer("POST /containers/create", {"message": "no space left on device"}, status=500)
    wanted = {"paths": REQUEST["paths"], "names_in": REQUEST["names_in"]}
    request = {"pair": "spark-pair", "images": ["an:image"], "paths": [], "look": wanted}
    document = local.call("probe", request, timeout_s=15)
    assert document["missing"]["look"] == "the docker daemon answered 500: no space left on device"
    assert document["docker"]["access"] == "ok"


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_file_is_found_behind_what_a_tar_says_of_it(kind: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind, pax_headers={"comment": "long " * 200}) as archive:
        entry = tarfile.TarInfo("envs.py" if kind == tarfile.USTAR_FORMAT else "x" * 150)
        entry.size = 700
        archive.addfile(entry, io.BytesIO(b"a" * 700))
    assert _first_file(buffer.getvalue()) == b"a" * 700


def test_a_tar_without_a_file_is_empty() -> None:
    assert _first_file(b"") == b""
    assert _first_file(bytes(1024)) == b""


def test_the_container_is_labelled_and_has_nothing_of_the_node(local: LocalHost, engine: StubDocker) -> None:
    local.call("look", REQUEST, timeout_s=15)
    (made,) = [given for what, given, _ in engine.asked() if what == "POST /containers/create"]
    assert made["Image"] == IMAGE
    assert made["Labels"] == {"dspark.look": "1"}
    assert made["HostConfig"] == {"NetworkMode": "none"}


def test_the_node_keeps_the_answer_for_its_owner_alone(local: LocalHost, engine: StubDocker, home: Path) -> None:
    del engine
    answer = local.call("look", REQUEST, timeout_s=15)
    folder = home / ".local/share/dspark/spark-pair"
    kept = folder / "images" / f"{'1' * 64}.json"
    assert json.loads(kept.read_text()) == answer
    assert [path.stat().st_mode & 0o077 for path in (folder, folder / "images", kept)] == [0, 0, 0]


def test_a_home_that_can_not_be_written_costs_the_memory_and_not_the_answer(
    local: LocalHost, engine: StubDocker, home: Path
) -> None:
    del engine
    (home / ".local").write_text("a file where the folder should be")
    assert local.call("look", REQUEST, timeout_s=15)["image_id"] == IMAGE


def test_what_a_look_left_behind_is_removed_and_one_that_goes_on_is_not(local: LocalHost, engine: StubDocker) -> None:
    now = int(time.time())
    engine.answer(LIST, [{"Id": "old", "Created": now - 3600}, {"Id": "new", "Created": now}])
    engine.answer("DELETE /containers/old?force=1&v=1", "", status=204)
    local.call("look", REQUEST, timeout_s=15)
    removed = [what for what, _, _ in engine.asked() if what.startswith("DELETE")]
    assert removed == ["DELETE /containers/old?force=1&v=1", "DELETE /containers/c1?force=1&v=1"]


def test_an_engine_that_makes_no_container_is_quoted(local: LocalHost, engine: StubDocker) -> None:
    engine.answer("POST /containers/create", {"message": "no space left on device"}, status=500)
    with pytest.raises(StepFailed, match="can't be looked into") as raised:
        local.call("look", REQUEST, timeout_s=15)
    assert raised.value.why == "the docker daemon answered 500: no space left on device"


def test_a_container_is_removed_also_where_reading_it_fails(local: LocalHost, engine: StubDocker) -> None:
    engine.answer("HEAD /containers/c1/archive?path=/bin/vllm", "", status=500)
    with pytest.raises(StepFailed):
        local.call("look", REQUEST, timeout_s=15)
    assert engine.asked()[-1][0] == "DELETE /containers/c1?force=1&v=1"
