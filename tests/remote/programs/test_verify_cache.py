"""Every way a snapshot can lie on a node, as real trees, and the one word that each is given."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.checks.cache import Judged, check_cache
from dspark_deploy.checks.cache_upkeep import check_upkeep
from dspark_deploy.checks.cache_words import Where
from dspark_deploy.facts.snapshot import Place, Snapshot, parse_snapshot
from dspark_deploy.model import Model, load_model
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.program import BOOTSTRAP, bundled
from tests.cachetree import MOUNT, OTHER_REVISION, TENSORS, CacheTree, header_of

SHARD = "model-00003-of-00048.safetensors"
ENCODER = "encoding/encoding_dsv4.py"
OLD = time.time() - 24 * 3600
NOBODY = 65534


def model_of(tree: CacheTree, **changes: Any) -> Model:
    """The published model, or a plain directory of it."""
    known = load_model("deepseek-v4-flash-0731", SearchPath((data_folder("profiles"),)))
    if tree.directory:
        changes = {"id": None, "revision": None, "directory": tree.directory, "ships_encoder": False, **changes}
    return known.model_copy(update=changes)


def read(local: LocalHost, tree: CacheTree, **changes: Any) -> Snapshot:
    """Look at a tree as `up` does."""
    return parse_snapshot("head", local.call("verify_cache", tree.request(**changes), timeout_s=20))


def judge(local: LocalHost, tree: CacheTree, **changes: Any) -> Judged:
    """Look at a tree, alone."""
    snapshot = read(local, tree, **changes)
    model = model_of(tree, **({"revision": None} if changes.get("revision", "") is None else {}))
    return check_cache(model, {"head": snapshot}, {"head": Where("head.hf_home")})


def said(judged: Judged, status: str = "fail") -> str:
    """All messages and remedies of that status."""
    return "\n".join(f"{each.message} -> {each.remedy}" for each in judged.findings if each.status == status)


@pytest.fixture
def tree(tmp_path: Path) -> CacheTree:
    """The published model, complete."""
    return CacheTree(tmp_path / "hf")


def test_a_complete_snapshot_of_real_sizes_is_complete(local: LocalHost, tree: CacheTree) -> None:
    snapshot = read(local, tree)
    assert judge(local, tree).verdicts == {"head": "complete"}
    assert len(snapshot.shards) == 48
    assert snapshot.bytes > 166_000_000_000
    assert all(file.problem is None and not file.doubt for file in snapshot.files)


def test_nothing_is_changed_and_nothing_is_written(local: LocalHost, tree: CacheTree, home: Path) -> None:
    def listing() -> list[tuple[str, int, int]]:
        found = (path.lstat() for path in sorted(tree.hf_home.rglob("*")))
        return [(str(status.st_ino), status.st_mtime_ns, status.st_ctime_ns) for status in found]

    before = listing()
    read(local, tree)
    assert listing() == before
    assert list(home.iterdir()) == []


# --- shards -----------------------------------------------------------------------------------------------------


def cut(tree: CacheTree) -> None:
    os.truncate(tree.link(SHARD), tree.link(SHARD).stat().st_size - 1)


def pad(tree: CacheTree) -> None:
    os.truncate(tree.link(SHARD), tree.link(SHARD).stat().st_size + 1)


def lie(tree: CacheTree) -> None:
    size = tree.link(SHARD).stat().st_size
    tree.put(SHARD, header_of({"layers.2.weight": size}), size)


def lie_about_the_header(tree: CacheTree) -> None:
    tree.put(SHARD, (1 << 62).to_bytes(8, "little"), tree.link(SHARD).stat().st_size)


def no_header(tree: CacheTree) -> None:
    tree.put(SHARD, b"", tree.link(SHARD).stat().st_size)


def html_header(tree: CacheTree) -> None:
    tree.put(SHARD, (20).to_bytes(8, "little") + b"<html>not found</html>", tree.link(SHARD).stat().st_size)


def empty(tree: CacheTree) -> None:
    os.truncate(tree.link(SHARD), 0)


@pytest.mark.parametrize("damage", [cut, pad, lie, lie_about_the_header, no_header, html_header, empty])
def test_a_shard_that_is_not_as_long_as_its_header_says(
    local: LocalHost, tree: CacheTree, damage: Callable[[CacheTree], None]
) -> None:
    damage(tree)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "wrong-size"}
    assert SHARD in said(judged)
    assert f"rm -- {tree.link(SHARD).resolve()}; then" in said(judged)


def test_shards_that_hold_less_than_the_index_says(local: LocalHost, tree: CacheTree) -> None:
    index = json.loads(tree.link("model.safetensors.index.json").read_text())
    index["metadata"]["total_size"] *= 2
    tree.put("model.safetensors.index.json", json.dumps(index).encode())
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "wrong-size"}
    assert "its index says" in said(judged)


def test_a_shard_in_another_one_s_place_is_doubtful(local: LocalHost, tree: CacheTree) -> None:
    tree.link(SHARD).unlink()
    tree.link(SHARD).symlink_to(tree.link(tree.shards[5]).readlink())
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "complete"}
    assert "lacks 4 tensors" in said(judged, "warn")


# --- missing files and links ------------------------------------------------------------------------------------


def test_a_missing_shard_is_partial_and_named(local: LocalHost, tree: CacheTree) -> None:
    tree.link(SHARD).unlink()
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "partial"}
    assert f"1 of 55 files missing: {SHARD}" in said(judged)
    assert f"hf download {tree.model} --revision {tree.revision} --cache-dir {tree.hub}" in said(judged)


def test_a_dangling_link_is_partial(local: LocalHost, tree: CacheTree) -> None:
    tree.link(SHARD).resolve().unlink()
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "partial"}
    assert f"1 of 55 files dangling: {SHARD}" in said(judged)


@pytest.mark.parametrize("target", ["../../../../blob-store/ab12", "/blob-store/ab12", "../../blobs/ab12", "loop"])
def test_a_farm_of_links_without_targets_is_partial(local: LocalHost, tree: CacheTree, target: str) -> None:
    for path in tree.folder.rglob("*"):
        if path.is_symlink():
            path.unlink()
            path.symlink_to(path.name if target == "loop" else target)
    shutil.rmtree(tree.blobs)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "partial"}
    assert "files dangling" in said(judged)


def test_a_missing_index_is_partial(local: LocalHost, tree: CacheTree) -> None:
    tree.link("model.safetensors.index.json").unlink()
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "partial"}
    assert "model.safetensors.index.json" in said(judged)


def test_a_checkpoint_of_one_file_needs_no_index(local: LocalHost, tree: CacheTree) -> None:
    for name in (*tree.shards, "model.safetensors.index.json"):
        tree.link(name).unlink()
    tree.put("model.safetensors", header_of({"weight": 5}) + b"12345")
    assert judge(local, tree).verdicts == {"head": "complete"}
    os.truncate(tree.link("model.safetensors"), 20)
    assert judge(local, tree).verdicts == {"head": "wrong-size"}


@pytest.mark.parametrize("shard", ["../../../etc/passwd", "/etc/passwd", 5, ""])
def test_an_index_that_names_no_file_of_the_snapshot_is_corrupt(
    local: LocalHost, tree: CacheTree, shard: object
) -> None:
    tree.put("model.safetensors.index.json", json.dumps({"weight_map": {"weight": shard}}).encode())
    assert judge(local, tree).verdicts == {"head": "corrupt"}


@pytest.mark.parametrize("content", [b'{"architectures": [', b"[]", b"", b"\xff\xfe"])
def test_a_small_file_that_is_no_json_is_corrupt(local: LocalHost, tree: CacheTree, content: bytes) -> None:
    tree.put("tokenizer_config.json", content)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "corrupt"}
    assert "tokenizer_config.json" in said(judged)


def move_blobs(tree: CacheTree, to: Path) -> None:
    """As `ln -s` to a larger disk does it."""
    shutil.move(tree.blobs, to)
    tree.blobs.symlink_to(to)


def test_links_that_leave_the_mount_work_on_the_node_and_not_in_the_container(
    local: LocalHost, tree: CacheTree, tmp_path: Path
) -> None:
    move_blobs(tree, tmp_path / "big-disk")
    assert tree.link("config.json").exists()
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "link-leaves-mount"}
    assert str(tmp_path / "big-disk") in said(judged)


def test_an_absolute_link_into_the_same_cache_leaves_it_too(local: LocalHost, tree: CacheTree) -> None:
    blob = tree.link(SHARD).resolve()
    tree.link(SHARD).unlink()
    tree.link(SHARD).symlink_to(blob)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "link-leaves-mount"}
    (command,) = (each.remedy for each in judged.findings if each.status == "fail")
    subprocess.run(["sh", "-c", command.removeprefix("on head: ").rpartition(" (")[0]], check=True)
    assert judge(local, tree).verdicts == {"head": "complete"}


def test_a_link_that_only_the_container_can_follow_is_fine(local: LocalHost, tree: CacheTree) -> None:
    blob = tree.link(SHARD).resolve()
    tree.link(SHARD).unlink()
    tree.link(SHARD).symlink_to(f"{MOUNT}/{blob.relative_to(tree.hf_home)}")
    assert judge(local, tree).verdicts == {"head": "complete"}


def test_a_hub_that_is_a_link_elsewhere_has_to_be_named_in_the_inventory(
    local: LocalHost, tree: CacheTree, tmp_path: Path
) -> None:
    shutil.move(tree.hub, tmp_path / "nas")
    tree.hub.symlink_to(tmp_path / "nas")
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "link-leaves-mount"}
    assert f"hub_cache: {tmp_path / 'nas'}" in said(judged)
    assert judge(local, tree, hub_cache=str(tmp_path / "nas")).verdicts == {"head": "complete"}


def test_hf_home_itself_may_be_a_link(local: LocalHost, tree: CacheTree, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(tree.hf_home)
    assert judge(local, tree, hf_home=str(tmp_path / "shortcut")).verdicts == {"head": "complete"}


def test_a_tilde_is_the_node_s_own_home(local: LocalHost, home: Path) -> None:
    tree = CacheTree(home / ".cache/huggingface", shards=2)
    snapshot = read(local, tree, hf_home="~/.cache/huggingface")
    assert snapshot.hub == str(home / ".cache/huggingface/hub")
    assert snapshot.folder == str(tree.folder)


def test_real_files_instead_of_links_are_complete(local: LocalHost, tmp_path: Path) -> None:
    tree = CacheTree(tmp_path / "hf", links=False)
    assert judge(local, tree).verdicts == {"head": "complete"}
    cut(tree)
    assert judge(local, tree).verdicts == {"head": "wrong-size"}


# --- the encoder ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        (None, "partial"),
        (b"", "corrupt"),
        (b"<!DOCTYPE html><html>Not found</html>", "corrupt"),
        (b"def encode_messages(:\n", "corrupt"),
        (b"a = '\0'\n", "corrupt"),
    ],
)
def test_an_encoder_that_is_missing_or_no_python(
    local: LocalHost, tree: CacheTree, content: bytes | None, verdict: str
) -> None:
    tree.link(ENCODER).unlink() if content is None else tree.put(ENCODER, content)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": verdict}
    assert ENCODER in said(judged)
    assert any("F23" in finding.failure_ids for finding in judged.findings if finding.status == "fail")


def test_an_encoder_whose_blob_is_gone_is_partial(local: LocalHost, tree: CacheTree) -> None:
    tree.link(ENCODER).resolve().unlink()
    assert judge(local, tree).verdicts == {"head": "partial"}


def test_python_that_is_no_encoder_is_doubtful(local: LocalHost, tree: CacheTree) -> None:
    tree.put(ENCODER, b"def encode(messages):\n    pass\n")
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "complete"}
    assert "encode_messages" in said(judged, "warn")


def test_another_model_without_an_encoder_is_a_note(local: LocalHost, tree: CacheTree) -> None:
    tree.link(ENCODER).unlink()
    snapshot = read(local, tree, encoder=False)
    judged = check_cache(model_of(tree, ships_encoder=False), {"head": snapshot}, {"head": Where("head.hf_home")})
    assert judged.verdicts == {"head": "complete"}
    assert ENCODER in said(judged, "skip")


# --- revisions and refs/main ------------------------------------------------------------------------------------

BAD_REFS = [
    b"9e165c30e2704aec5d9d593cce3eebd58bbef1cb\n",
    b"9e165c30e2704aec5d9d593cce3eebd58bbef1cb\r\n",
    b"",
    b"main",
    OTHER_REVISION.encode(),
    b"\xff\xfe9",
]


@pytest.mark.parametrize("content", BAD_REFS)
def test_a_bad_ref_warns_where_the_revision_is_pinned(local: LocalHost, tree: CacheTree, content: bytes) -> None:
    tree.ref(content)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "complete"}
    assert f"printf %s {tree.revision} > {tree.root}/refs/main" in said(judged, "warn")


@pytest.mark.parametrize("content", BAD_REFS)
def test_a_bad_ref_fails_where_it_decides_and_the_remedy_mends_it(
    local: LocalHost, tree: CacheTree, content: bytes
) -> None:
    tree.ref(content)
    judged = judge(local, tree, revision=None)
    assert judged.verdicts == {"head": "other-revision"}
    (remedy,) = (each.remedy for each in judged.findings if each.status == "fail")
    subprocess.run(["sh", "-c", remedy.removeprefix("on head: ")], check=True)
    assert judge(local, tree, revision=None).verdicts == {"head": "complete"}


def test_a_snapshot_fetched_by_its_commit_has_no_ref_and_needs_none(local: LocalHost, tree: CacheTree) -> None:
    shutil.rmtree(tree.root / "refs")
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "complete"}
    assert said(judged, "warn") == ""
    assert judge(local, tree, revision=None).verdicts == {"head": "other-revision"}


def test_another_revision_alone_is_named(local: LocalHost, tree: CacheTree) -> None:
    tree.folder.rename(tree.folder.with_name(OTHER_REVISION))
    tree.ref(OTHER_REVISION.encode())
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "other-revision"}
    assert "lacks snapshot 9e165c30" in said(judged)
    assert "(has 6976c7ff)" in said(judged)


def test_nothing_of_the_model_is_absent(local: LocalHost, tree: CacheTree) -> None:
    shutil.rmtree(tree.root)
    assert judge(local, tree).verdicts == {"head": "absent"}
    shutil.rmtree(tree.hf_home)
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "absent"}
    assert str(tree.hub) in said(judged)


def test_a_model_where_the_node_s_own_library_looks_is_found_and_named(
    local: LocalHost, tree: CacheTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tree.hub))
    monkeypatch.setenv("HUGGINGFACE_HUB_CACHE", "/old/hub")
    elsewhere = read(local, tree, hf_home=str(tmp_path / "empty"))
    assert elsewhere.elsewhere == (Place("HF_HUB_CACHE", str(tree.hub)),)
    judged = judge(local, tree, hf_home=str(tmp_path / "empty"))
    assert judged.verdicts == {"head": "absent"}
    assert f"set hub_cache: {tree.hub} under head" in said(judged)


def test_an_hf_home_that_is_the_hub_itself_is_recognised(local: LocalHost, tree: CacheTree) -> None:
    judged = judge(local, tree, hf_home=str(tree.hub))
    assert judged.verdicts == {"head": "absent"}
    assert "hf_home itself" in said(judged)


# --- transfers --------------------------------------------------------------------------------------------------


def leave(tree: CacheTree, at: float) -> None:
    """What a cut download leaves."""
    part = tree.blobs / f"{'a' * 64}.incomplete"
    part.write_bytes(b"x" * 4096)
    os.utime(part, (at, at))


def test_an_old_transfer_beside_a_complete_snapshot_is_waste(local: LocalHost, tree: CacheTree) -> None:
    leave(tree, OLD)
    assert judge(local, tree).verdicts == {"head": "complete"}
    (waste,) = (each for each in check_upkeep(read(local, tree)) if each.status == "warn")
    assert "1 unfinished files (4.00 KiB)" in waste.message
    subprocess.run(["sh", "-c", waste.remedy.removeprefix("on head: ")], check=True)
    assert read(local, tree).unfinished is None


def test_a_running_transfer_of_another_revision_is_none_of_ours(local: LocalHost, tree: CacheTree) -> None:
    leave(tree, time.time())
    assert judge(local, tree).verdicts == {"head": "complete"}


@pytest.mark.parametrize(("at", "verdict"), [(OLD, "partial"), (None, "downloading")], ids=["old", "now"])
def test_a_missing_shard_with_a_transfer(local: LocalHost, tree: CacheTree, at: float | None, verdict: str) -> None:
    tree.link(SHARD).unlink()
    leave(tree, at or time.time())
    assert judge(local, tree).verdicts == {"head": verdict}


def test_a_lock_that_was_just_taken_tells_of_a_transfer(local: LocalHost, tree: CacheTree) -> None:
    tree.link(SHARD).unlink()
    leave(tree, OLD)
    lock = tree.hub / ".locks" / tree.root.name / "a.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    judged = judge(local, tree)
    assert judged.verdicts == {"head": "downloading"}
    assert SHARD in said(judged)


def test_a_first_download_that_runs_is_downloading(local: LocalHost, tree: CacheTree) -> None:
    shutil.rmtree(tree.root / "snapshots")
    leave(tree, time.time())
    assert judge(local, tree).verdicts == {"head": "downloading"}


@pytest.fixture
def restless(tmp_path: Path) -> Iterator[CacheTree]:
    """Somebody writes a shard all the time; with so many tensors the look takes long enough to meet it."""
    tree = CacheTree(tmp_path / "hf", tensors=TENSORS)
    ended = threading.Event()

    def write() -> None:
        for moment in count(1):
            os.utime(tree.link(SHARD), ns=(moment, moment))
            if ended.is_set():
                return

    thread = threading.Thread(target=write)
    thread.start()
    yield tree
    ended.set()
    thread.join()


def test_a_file_that_changes_while_it_is_read_is_still_being_written(local: LocalHost, restless: CacheTree) -> None:
    judged = judge(local, restless)
    assert judged.verdicts == {"head": "downloading"}
    assert f"{SHARD} changed while" in said(judged)


# --- other residents, other owners ------------------------------------------------------------------------------


def test_a_cache_full_of_other_models_changes_nothing(local: LocalHost, tree: CacheTree) -> None:
    for number in range(100):
        folder = tree.hub / f"models--org--other-{number}" / "blobs"
        folder.mkdir(parents=True)
        for blob in range(100):
            (folder / f"{blob:064x}").touch()
    (tree.hub / "models--org--other-1" / "blobs" / "b.incomplete").touch()
    (tree.hf_home / "vllm-cache").mkdir()
    assert judge(local, tree).verdicts == {"head": "complete"}
    assert read(local, tree).unfinished is None


def test_other_revisions_and_markers_beside_ours_change_nothing(local: LocalHost, tree: CacheTree) -> None:
    other = tree.root / "snapshots" / OTHER_REVISION
    other.mkdir()
    (other / "config.json").symlink_to("../../blobs/gone")
    (tree.root / ".no_exist" / tree.revision).mkdir(parents=True)
    (tree.root / "trees").mkdir()
    assert judge(local, tree).verdicts == {"head": "complete"}


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can enter, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_another_user(tree: CacheTree) -> Snapshot:
    """Run the program as a user to whom nothing of the tree belongs."""
    envelope = {"marker": "dspark ", "payload": 0, "request": tree.request()}
    sent = bundled("verify_cache") + json.dumps(envelope).encode() + b"\n"
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    argv = ["/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable, "-I", "-S", "-c", BOOTSTRAP]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", **user) as child:  # type: ignore[call-overload]  # mypy can't match keywords given as a mapping
        assert child.stdin
        assert child.stdout
        child.stdin.write(sent)
        child.stdin.flush()
        child.stdout.readline()
        answer = child.stdout.readline().removeprefix(b"dspark ")
    return parse_snapshot("head", json.loads(answer))


def test_a_blob_that_can_not_be_read_is_no_missing_one(shared: Path) -> None:
    tree = CacheTree(shared / "hf")
    tree.link(SHARD).resolve().chmod(0)
    snapshot = as_another_user(tree)
    judged = check_cache(model_of(tree), {"head": snapshot}, {"head": Where("head.hf_home")})
    assert judged.verdicts == {"head": "unreadable"}
    assert SHARD in said(judged)
    assert f"sudo chown -R {snapshot.user}: {tree.root}" in said(judged)


def test_a_folder_that_can_not_be_entered_is_unreadable(shared: Path) -> None:
    tree = CacheTree(shared / "hf")
    tree.blobs.chmod(0o000)
    snapshot = as_another_user(tree)
    judged = check_cache(model_of(tree), {"head": snapshot}, {"head": Where("head.hf_home")})
    tree.blobs.chmod(0o755)
    assert judged.verdicts == {"head": "unreadable"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_files_of_root_are_told_with_their_owner_and_count(shared: Path) -> None:
    tree = CacheTree(shared / "hf")
    snapshot = as_another_user(tree)
    judged = check_cache(model_of(tree), {"head": snapshot}, {"head": Where("head.hf_home")})
    assert judged.verdicts == {"head": "complete"}
    assert snapshot.owned_by_others is not None
    (told,) = (each for each in check_upkeep(snapshot) if each.id == "cache-ownership")
    assert f"{snapshot.owned_by_others.count} files or folders can't be written" in told.message
    assert "they belong to root" in told.message


# --- a plain directory ------------------------------------------------------------------------------------------


def test_a_plain_directory_is_judged_by_its_files(local: LocalHost, tmp_path: Path) -> None:
    tree = CacheTree(tmp_path / "hf", directory="fraserprice/DeepSeek-V4-Flash-DSpark")
    assert judge(local, tree).verdicts == {"head": "complete"}
    tree.link(SHARD).unlink()
    assert judge(local, tree).verdicts == {"head": "partial"}
    shutil.rmtree(tree.folder)
    assert judge(local, tree).verdicts == {"head": "absent"}


def test_a_plain_directory_that_is_being_downloaded(local: LocalHost, tmp_path: Path) -> None:
    tree = CacheTree(tmp_path / "hf", directory="org/model")
    tree.link(SHARD).unlink()
    part = tree.folder / ".cache/huggingface/download/a.incomplete"
    part.parent.mkdir(parents=True)
    part.touch()
    assert judge(local, tree).verdicts == {"head": "downloading"}


def test_a_plain_directory_that_is_a_link_out_of_the_mount(local: LocalHost, tmp_path: Path) -> None:
    tree = CacheTree(tmp_path / "hf", directory="model", shards=2)
    shutil.move(tree.folder, tmp_path / "elsewhere")
    tree.folder.symlink_to(tmp_path / "elsewhere")
    assert judge(local, tree).verdicts == {"head": "link-leaves-mount"}
