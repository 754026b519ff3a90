from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.facts.node import Noted
from dspark_deploy.facts.parse import parse_probe
from dspark_deploy.remote.local import LocalHost
from tests.remote.stub_docker import StubDocker

REQUEST = {"pair": "spark-pair", "at": "2026-09-01T10:00:00+00:00", "values": {"kernel": "6.14.0"}}
PROBE = {"pair": "spark-pair", "images": [], "paths": []}


@pytest.mark.usefixtures("docker")
def test_what_a_node_keeps_is_told_by_the_next_probe(local: LocalHost) -> None:
    assert parse_probe("head", local.call("probe", PROBE, timeout_s=15)).noted is None
    assert local.call("remember", REQUEST, timeout_s=15) == {}
    facts = parse_probe("head", local.call("probe", PROBE, timeout_s=15))
    assert facts.noted == Noted("2026-09-01T10:00:00+00:00", {"kernel": "6.14.0"})
    assert facts.state_mode == 0o700


@pytest.mark.parametrize("content", ["", "[]", '{"at": "x"}', '{"values": {}}', '{"at": "x", "values": 3}'])
def test_a_note_that_can_not_be_read_is_none(local: LocalHost, docker: StubDocker, home: Path, content: str) -> None:
    del docker
    folder = home / ".local/share/dspark/spark-pair"
    folder.mkdir(parents=True)
    (folder / "good.json").write_text(content)
    assert local.call("probe", PROBE, timeout_s=15)["noted"] is None


def test_a_folder_that_can_not_be_made_is_an_error(local: LocalHost, home: Path) -> None:
    (home / ".local").write_text("a file where the folder should be")
    with pytest.raises(StepFailed, match="can't be written"):
        local.call("remember", REQUEST, timeout_s=15)


def test_memory_is_told_by_itself(local: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 60 kB\nCmaFree: 5 kB\n")
    monkeypatch.setenv("DSPARK_NODE_ROOT", str(tmp_path))
    document = local.call("memory", {}, timeout_s=15)
    assert (document["total"], document["available"], document["cma_free"]) == (102400, 61440, 5120)
    assert json.dumps(document)
