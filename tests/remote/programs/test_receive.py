from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.remote.local import LocalHost

FILES = {"compose.yaml": b"services: {}\n", ".env": b'A="b"\n', "serve.sh": b"#!/bin/sh\n"}


def archive(files: Mapping[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.type = len(content), 0o700 if name == "serve.sh" else 0o600, kind
            entry.linkname = "/etc/passwd"
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def push(local: LocalHost, release: str, files: Mapping[str, bytes] = FILES, **changes: Any) -> dict[str, Any]:
    request = {
        "pair": "spark-pair",
        "release": release,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        "keep": [],
    }
    payload = changes.pop("payload", archive(files))
    return local.call("receive", {**request, **changes}, timeout_s=10, payload=payload)


@pytest.fixture
def releases(home: Path) -> Path:
    return home / ".local/share/dspark/spark-pair/releases"


def test_a_release_appears_with_its_files_and_modes(local: LocalHost, releases: Path) -> None:
    assert push(local, "0123456789ab") == {"changed": True, "removed": []}
    folder = releases / "0123456789ab"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "serve.sh").stat().st_mode) == 0o700
    assert [path.name for path in releases.iterdir()] == ["0123456789ab"]


def test_a_release_that_is_there_is_left_alone(local: LocalHost) -> None:
    push(local, "0123456789ab")
    assert push(local, "0123456789ab")["changed"] is False


def test_a_broken_release_is_replaced(local: LocalHost, releases: Path) -> None:
    push(local, "0123456789ab")
    (releases / "0123456789ab/.env").write_text("tampered")
    assert push(local, "0123456789ab")["changed"] is True
    assert (releases / "0123456789ab/.env").read_bytes() == FILES[".env"]


def test_damaged_data_leaves_nothing(local: LocalHost, releases: Path) -> None:
    with pytest.raises(StepFailed, match="arrived damaged"):
        push(local, "0123456789ab", payload=archive({**FILES, ".env": b"other"}))
    assert list(releases.iterdir()) == []


def test_data_that_ends_early_leaves_nothing(local: LocalHost, releases: Path) -> None:
    with pytest.raises(StepFailed):
        push(local, "0123456789ab", payload=archive(FILES)[:700])
    assert list(releases.iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../b", "..", "a//b", "a/"])
def test_a_name_that_leads_out_of_the_release_is_refused(local: LocalHost, releases: Path, name: str) -> None:
    with pytest.raises(StepFailed, match="no name of a file in a release"):
        push(local, "0123456789ab", {name: b"x"})
    assert not releases.exists()


def test_folders_in_a_release_are_open_to_a_containers_user_and_the_release_is_not(
    local: LocalHost, releases: Path
) -> None:
    push(local, "0123456789ab", {"patches/1-recipe/a.sh": b"\xff"})
    release = releases / "0123456789ab"
    assert (release / "patches/1-recipe/a.sh").read_bytes() == b"\xff"
    modes = [path.stat().st_mode & 0o777 for path in (release, release / "patches", release / "patches/1-recipe")]
    assert modes == [0o700, 0o755, 0o755]


def test_a_link_is_refused(local: LocalHost, releases: Path) -> None:
    with pytest.raises(StepFailed, match="no plain file"):
        push(local, "0123456789ab", payload=archive({".env": b""}, kind=tarfile.SYMTYPE))
    assert list(releases.iterdir()) == []


def test_what_a_dead_run_left_is_removed(local: LocalHost, releases: Path) -> None:
    (releases / ".part-1").mkdir(parents=True)
    (releases / ".part-1/compose.yaml").write_text("half")
    push(local, "0123456789ab")
    assert [path.name for path in releases.iterdir()] == ["0123456789ab"]


def test_the_newest_five_stay_and_those_that_are_in_use(local: LocalHost, releases: Path) -> None:
    for age, release in enumerate(["oldest", "older", "r5", "r4", "r3", "r2"]):
        (releases / release).mkdir(parents=True)
        os.utime(releases / release, (age, age))
    answer = push(local, "newest", keep=["oldest"])
    assert answer["removed"] == ["older"]
    assert {path.name for path in releases.iterdir()} == {"oldest", "r5", "r4", "r3", "r2", "newest"}
