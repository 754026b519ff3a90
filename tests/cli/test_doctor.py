"""`doctor` as people read it."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from dspark_deploy.checks.finding import Finding
from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.doctor import report_text
from dspark_deploy.cli.group import cli, main
from dspark_deploy.flow.doctor import DoctorReport

REPORT = DoctorReport(
    pair="spark-pair",
    profile="agent-1m",
    family="anemll",
    image="ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
    findings=(
        Finding("clock-skew", "ok", "head: the clock is right", "head", group="nodes"),
        Finding("docker-access", "ok", "head: Docker 28.2.2", "head", group="docker"),
        Finding("docker-context", "warn", "head: another context", "head", "use default", group="docker"),
        Finding("image-present", "ok", "head: there", "head", group="image"),
        Finding("image-layout", "skip", "head: not known", "head", group="image"),
        Finding("image-present", "fail", "worker: not there", "worker", "dspark pull", group="image"),
    ),
    unread={"worker": {"gpus": "nvidia-smi: not found on PATH"}},
    warnings=("the API listens on every address",),
    recorded=("kept/head.json",),
)


def test_groups_with_failures_come_first_and_in_each_the_worst() -> None:
    assert click.unstyle(report_text(REPORT)).splitlines() == [
        "spark-pair, profile agent-1m (family anemll, ghcr.io/anemll/dspark-vllm-gx10:0.1.1)",
        "",
        "image",
        "[FAIL] worker: not there",
        "       -> dspark pull",
        "[--]   head: not known",
        "[OK]   head: there",
        "",
        "docker",
        "[WARN] head: another context",
        "       -> use default",
        "[OK]   head: Docker 28.2.2",
        "",
        "nodes",
        "[OK]   head: the clock is right",
        "",
        "not read",
        "[--]   worker: gpus: nvidia-smi: not found on PATH",
        "",
        "profile",
        "[WARN] the API listens on every address",
        "",
        "1 failed, 1 doubtful, 1 not told, 3 good",
        "recorded: kept/head.json",
    ]


def test_recording_and_replaying_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "doctor" not in cli.commands:
        register_all()
    assert main(["doctor", "--record", str(tmp_path), "--replay", str(tmp_path)]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_a_folder_without_a_recording_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "doctor" not in cli.commands:
        register_all()
    assert main(["doctor", "--replay", str(tmp_path)]) == 2
    assert "head.json" in capsys.readouterr().err


def test_a_node_that_is_not_reached_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register_all()
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("name: p\nhead: {host: me@127.0.0.1:1}\nworker: {host: me@127.0.0.2:1}\n")
    assert main(["doctor", "-i", str(inventory)]) == 5
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("worker (me@127.0.0.2:1)") == 1
    assert main(["doctor", "-i", str(inventory), "--output", "json"]) == 5
    assert [error["node"] for error in json.loads(capsys.readouterr().out)["errors"]] == ["head", "worker"]
