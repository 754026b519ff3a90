"""What runs left on this machine: shown, packed for a report, explained."""

from __future__ import annotations

import errno
import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.export import export_run
from dspark_deploy.flow.runs import find_run, is_run_id, logs_of_run, show_run
from dspark_deploy.flow.wish import Wish

FIRST, SECOND = "20260901T101530-a1b2c3", "20260902T080000-d4e5f6"
HOSTNAME, USER, ALIAS, ADDRESS = "canary-machine", "canaryuser", "canary-alias.example", "203.0.113.77"
SECRET = "sk-canarycanarycanary"
CANARIES = (HOSTNAME, USER, ALIAS, ADDRESS, SECRET, "canarykey", "CANARY+plain", "4c:bb:47:0c:a0:a7")
FACTS = {
    "head": {
        "hostname": HOSTNAME,
        "user": USER,
        "home": f"/home/{USER}",
        "boot_id": "0123-canary-boot",
        "netdevs": [{"mac": "4c:bb:47:0c:a0:a7", "addresses": [f"{ADDRESS}/24"]}],
    }
}


@pytest.fixture(name="wish")
def _wish(tmp_path: Path) -> Wish:
    """A controller with an inventory, and two runs: one that failed with everything, one that left only its outcome."""
    (tmp_path / "inventory.yaml").write_text(
        f"name: spark-pair\nhead: {{host: {USER}@{ALIAS}}}\nworker: {{host: spark-b}}\n"
    )
    leave(tmp_path, SECOND, {"command": "rollback", "outcome": "serving", "seconds": {"check": 1.0}})
    failed = leave(
        tmp_path,
        FIRST,
        {
            "command": "up",
            "began": "2026-09-01T10:15:30+00:00",
            "outcome": "launch-failed",
            "message": f"worker ({USER}@{ALIAS}): the worker rank ended",
            "figures": {"head": {"kv_gib": 19.03}},
        },
    )
    (failed / "plan.json").write_text(json.dumps({"release": "0123456789ab", "steps": ["start the worker"]}))
    (failed / "facts.json").write_text(json.dumps(FACTS))
    (failed / "events.jsonl").write_text(
        json.dumps({"at": "t", "event": "note", "text": f"asked {ALIAS}"}) + '\n{"at": "t", "ev'  # cut by a dead run
    )
    (failed / "worker.log").write_text(
        f"INFO rank on {HOSTNAME} at {ADDRESS}\nVLLM_API_KEY=canarykey {SECRET}\nRuntimeError: out of memory\n"
        "asked with CANARY+plain\n"
    )
    return Wish(
        environment={"XDG_STATE_HOME": str(tmp_path), "DSPARK_API_KEY": "CANARY+plain"},
        directory=tmp_path,
        home=tmp_path,
    )


def leave(state: Path, run: str, outcome: dict[str, Any]) -> Path:
    folder = state / "dspark" / "spark-pair" / "runs" / run
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(outcome))
    return folder


def test_a_run_is_shown_with_all_that_it_left(wish: Wish) -> None:
    report = show_run(wish, FIRST)
    assert (report.run, report.pair, report.outcome, report.release) == (
        FIRST,
        "spark-pair",
        "launch-failed",
        "0123456789ab",
    )
    assert (report.steps, report.figures) == (("start the worker",), {"head": {"kv_gib": 19.03}})
    assert [event["event"] for event in report.events] == ["note"]
    assert set(report.files) == {"run.json", "plan.json", "facts.json", "events.jsonl", "worker.log"}


def test_a_run_that_left_little_is_shown_all_the_same(wish: Wish, tmp_path: Path) -> None:
    assert show_run(wish, SECOND).seconds == {"check": 1.0}
    (tmp_path / f"dspark/spark-pair/runs/{SECOND}/run.json").write_text("{cut")
    report = show_run(wish, SECOND)
    assert (report.outcome, report.events, report.seconds) == (None, (), {})


def test_the_beginning_of_an_id_and_last_are_enough(wish: Wish) -> None:
    assert find_run(wish, "20260901").id == FIRST
    assert find_run(wish, "last").id == SECOND


@pytest.mark.parametrize(
    ("name", "told"),
    [("2026", "begins 2 runs"), ("20260901T101530-a1b2c4", "no record of a run"), ("nonsense", "no record of a run")],
)
def test_what_names_no_single_run_is_a_mistake_with_a_hint(wish: Wish, name: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        find_run(wish, name)
    assert told in raised.value.message
    assert raised.value.remedy


def test_a_machine_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        find_run(Wish(home=tmp_path), "last")
    assert "none" in raised.value.remedy


def test_an_archive_holds_every_file_and_not_one_name(wish: Wish, tmp_path: Path) -> None:
    report = export_run(wish, FIRST, None)
    assert report.archive == str(tmp_path / f"dspark-run-{FIRST}.tar.gz")
    with tarfile.open(report.archive) as archive:
        texts = {member.name: _read(archive, member) for member in archive}
        owners = {(member.uname, member.gname, member.mtime) for member in archive.getmembers()}
    assert {name.partition("/")[2] for name in texts} == {"ABOUT.txt", *report.files}
    assert owners == {("", "", 0)}
    for name, text in texts.items():
        assert not [canary for canary in CANARIES if canary in text], name
    log = texts[f"dspark-run-{FIRST}/worker.log"]
    assert "RuntimeError: out of memory" in log
    machine = log.split("rank on ")[1].split(" ")[0]
    assert json.loads(texts[f"dspark-run-{FIRST}/facts.json"])["head"]["hostname"] == machine


def test_the_raw_bytes_of_an_archive_tell_no_name_either(wish: Wish) -> None:
    data = gzip.decompress(Path(export_run(wish, FIRST, Path("out.tar.gz")).archive).read_bytes())
    assert not [canary for canary in CANARIES if canary.encode() in data]


def test_the_same_run_makes_the_same_archive(wish: Wish) -> None:
    first, second = (Path(export_run(wish, FIRST, Path(name)).archive).read_bytes() for name in ("a.tgz", "b.tgz"))
    assert first == second


def test_an_archive_that_can_not_be_written_is_a_mistake(wish: Wish) -> None:
    with pytest.raises(ConfigError):
        export_run(wish, FIRST, Path("no/such/folder/x.tar.gz"))


def test_what_is_no_archive_by_its_name_is_never_written_over(wish: Wish, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("name: spark-pair\n")
    with pytest.raises(ConfigError, match="no archive by its name"):
        export_run(wish, FIRST, Path("inventory.yaml"))
    assert inventory.read_text() == "name: spark-pair\n"


def test_an_archive_that_breaks_off_leaves_the_one_that_was_there(
    wish: Wish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(export_run(wish, FIRST, Path("a.tgz")).archive).read_bytes()

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tarfile.TarFile.addfile", no_space)
    with pytest.raises(ConfigError, match="No space left"):
        export_run(wish, FIRST, Path("a.tgz"))
    assert (tmp_path / "a.tgz").read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("*a.tgz*")) == ["a.tgz"]


def test_a_run_s_logs_can_be_explained_and_one_without_says_why(wish: Wish) -> None:
    assert [path.name for path in logs_of_run(wish, FIRST)] == ["worker.log"]
    with pytest.raises(ConfigError) as raised:
        logs_of_run(wish, SECOND)
    assert "kept no log" in raised.value.message


@pytest.mark.parametrize(
    ("text", "expected"), [(FIRST, True), ("20260901T", True), ("last", True), ("head.log", False)]
)
def test_a_run_s_id_is_known_by_its_look(text: str, expected: bool) -> None:
    assert is_run_id(text) is expected


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert isinstance(file, io.BufferedReader)
    return file.read().decode()
