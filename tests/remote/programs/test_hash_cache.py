"""Hashing every file: what is found, what is kept, and what a second run has left to do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.checks.cache import check_cache
from dspark_deploy.checks.cache_upkeep import check_upkeep
from dspark_deploy.checks.cache_words import Where
from dspark_deploy.facts.snapshot import Progress, Snapshot, parse_progress, parse_snapshot
from dspark_deploy.model import load_model
from dspark_deploy.rehearsal.standin.snapshots import MODEL_0731, REVISION_0731, write_snapshot
from dspark_deploy.remote.local import LocalHost
from tests.cachetree import CacheTree

LIMIT_S = 60.0
JOURNAL = ".local/share/dspark/spark-pair/cache.jsonl"
SHARD = "model-00003-of-00048.safetensors"
MIB = 1 << 20


class Small:
    """A model of a few KiB whose blobs have their true names."""

    def __init__(self, hf_home: Path) -> None:
        self.folder = write_snapshot(hf_home / "hub", MODEL_0731, REVISION_0731, encoder=True)
        self.request = {
            "pair": "spark-pair",
            "hf_home": str(hf_home),
            "hub_cache": None,
            "mount": "/cache/huggingface",
            "model": MODEL_0731,
            "revision": REVISION_0731,
            "directory": None,
            "encoder": True,
        }

    def flip(self, name: str) -> None:
        """Change one byte at the end of a file and leave its size and times as they are."""
        blob = (self.folder / name).resolve()
        before, content = blob.stat(), bytearray(blob.read_bytes())
        content[-1] ^= 1
        blob.write_bytes(content)
        os.utime(blob, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path / "hf")


def deep(local: LocalHost, request: dict[str, Any]) -> tuple[Snapshot, list[Progress]]:
    """Hash to the end."""
    told = []
    with closing(local.start("hash_cache", request, timeout_s=LIMIT_S)) as session:
        while "progress" in (answer := session.receive(timeout_s=LIMIT_S)):
            told.append(parse_progress(answer["progress"]))
    return parse_snapshot("head", answer["snapshot"]), told


def quick(local: LocalHost, request: dict[str, Any]) -> Snapshot:
    return parse_snapshot("head", local.call("verify_cache", request, timeout_s=LIMIT_S))


def verdict(snapshot: Snapshot) -> str:
    model = load_model("deepseek-v4-flash-0731", SearchPath((data_folder("profiles"),)))
    return check_cache(model, {"head": snapshot}, {"head": Where("head.hf_home")}).verdicts["head"]


def test_every_file_is_hashed_and_the_second_run_hashes_none(local: LocalHost, small: Small) -> None:
    first, told = deep(local, small.request)
    assert verdict(first) == "complete"
    assert all(file.hashed for file in first.files)
    assert (told[-1].known_bytes, told[-1].done_bytes) == (0, told[-1].total_bytes)
    second, told = deep(local, small.request)
    assert verdict(second) == "complete"
    assert told[-1].known_bytes == told[-1].total_bytes
    assert second.hashed is not None
    assert (second.hashed.verdict, second.hashed.unchanged) == ("complete", True)


def test_a_flipped_byte_of_same_size_and_time_is_found_by_hashing_alone(local: LocalHost, small: Small) -> None:
    small.flip(SHARD)
    assert verdict(quick(local, small.request)) == "complete"
    snapshot, _ = deep(local, small.request)
    assert verdict(snapshot) == "corrupt"
    assert [file.name for file in snapshot.files if file.corrupt] == [SHARD]


@pytest.mark.parametrize("name", ["generation_config.json", "README.md"])
def test_small_files_are_hashed_as_git_does_it(local: LocalHost, small: Small, name: str) -> None:
    blob = small.folder.parents[1] / "blobs" / "9bd3bfd70bcfb1e4ff39ea0ef0a5a0c2a6a2ef7d"
    if name == "README.md":
        blob.write_text("# A model\n")
        (small.folder / name).symlink_to(f"../../blobs/{blob.name}")
    else:
        small.flip(name)
    snapshot, _ = deep(local, small.request)
    assert [file.name for file in snapshot.files if file.corrupt] == [name]


def test_a_later_quick_look_remembers_what_was_corrupt_until_it_is_mended(local: LocalHost, small: Small) -> None:
    content = (small.folder / SHARD).read_bytes()
    small.flip(SHARD)
    deep(local, small.request)
    assert verdict(quick(local, small.request)) == "corrupt"
    blob = (small.folder / SHARD).resolve()
    before = blob.stat()
    blob.unlink()  # what the remedy says; then the same file is fetched, with the time that it had
    blob.write_bytes(content)
    os.utime(blob, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert verdict(quick(local, small.request)) == "complete"
    snapshot, told = deep(local, small.request)
    assert verdict(snapshot) == "complete"
    assert told[-1].total_bytes - told[-1].known_bytes == len(content)


def test_a_change_after_hashing_is_noticed_and_only_that_file_is_hashed_again(local: LocalHost, small: Small) -> None:
    deep(local, small.request)
    os.utime((small.folder / SHARD), (1, 1))
    changed = quick(local, small.request)
    assert changed.hashed is not None
    assert not changed.hashed.unchanged
    assert any("files have changed since" in finding.message for finding in check_upkeep(changed))
    _, told = deep(local, small.request)
    assert told[-1].total_bytes - told[-1].known_bytes == (small.folder / SHARD).stat().st_size


def test_a_run_that_was_killed_is_gone_on_with(local: LocalHost, tmp_path: Path, home: Path) -> None:
    tree = CacheTree(tmp_path / "hf", links=False, shards=16, size=16 * 64 * MIB)
    session = local.start("hash_cache", tree.request(), timeout_s=LIMIT_S)
    journal = home / JOURNAL
    while not (journal.exists() and journal.read_text().count("\n")):
        Event().wait(0.001)
    session.close()
    kept = sum(json.loads(line)["size"] for line in journal.read_text().splitlines())
    snapshot, told = deep(local, tree.request())
    assert 0 < kept < told[-1].total_bytes
    assert told[-1].known_bytes == kept
    assert verdict(snapshot) == "complete"


def test_half_a_line_and_nonsense_in_the_journal_are_passed_over(local: LocalHost, small: Small, home: Path) -> None:
    deep(local, small.request)
    journal = home / JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([*lines[:5], "[]\n", "no JSON\n", "{}\n", lines[5][:20]]))
    snapshot, told = deep(local, small.request)
    assert verdict(snapshot) == "complete"
    assert 0 < told[-1].known_bytes < told[-1].total_bytes
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_folder_that_can_not_be_written_costs_the_memory_and_not_the_answer(
    local: LocalHost, small: Small, home: Path
) -> None:
    (home / ".local").write_text("a file where a folder should be")
    snapshot, _ = deep(local, small.request)
    assert verdict(snapshot) == "complete"
    (told,) = (finding for finding in check_upkeep(snapshot) if finding.id == "cache-hashed")
    assert told.status == "warn"
    assert ".local" in told.message


@pytest.fixture
def restless(tmp_path: Path) -> Iterator[CacheTree]:
    """A model that somebody writes to all the time."""
    tree = CacheTree(tmp_path / "hf", links=False, shards=2, size=2 * 64 * MIB)
    ended = Event()

    def write() -> None:
        moment = 0
        while not ended.is_set():
            moment += 1
            os.utime(tree.link(tree.shards[0]), ns=(moment, moment))

    thread = Thread(target=write)
    thread.start()
    yield tree
    ended.set()
    thread.join()


def test_a_file_that_changes_meanwhile_is_neither_right_nor_wrong(
    local: LocalHost, restless: CacheTree, home: Path
) -> None:
    snapshot, _ = deep(local, restless.request())
    assert verdict(snapshot) == "downloading"
    assert restless.shards[0] not in (home / JOURNAL).read_text()


def test_a_plain_directory_s_files_get_both_hashes(local: LocalHost, tmp_path: Path) -> None:
    tree = CacheTree(tmp_path / "hf", directory="org/model", shards=2, size=2 * MIB)
    snapshot, _ = deep(local, tree.request())
    assert all(set(file.digests) == {"sha256", "sha1"} for file in snapshot.files)
    assert not any(file.corrupt for file in snapshot.files)


def test_names_that_lead_to_one_blob_are_hashed_once(local: LocalHost, small: Small) -> None:
    blob = (small.folder / "config.json").readlink()
    (small.folder / "copy.json").symlink_to(blob)
    snapshot, told = deep(local, small.request)
    assert told[-1].done_bytes == told[-1].total_bytes
    assert {file.name for file in snapshot.files if not file.hashed} == set()


def test_an_absent_model_is_an_answer(local: LocalHost, small: Small) -> None:
    snapshot, told = deep(local, {**small.request, "model": "org/other"})
    assert snapshot.folder is None
    assert told[-1].total_bytes == 0
