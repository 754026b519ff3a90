"""Two nodes' snapshots as facts: what is said of each, of both, and what to type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.checks.cache import Judged, Unread, check_cache
from dspark_deploy.checks.cache_faults import COVERED, ORDER, VERDICT_OF
from dspark_deploy.checks.cache_upkeep import check_upkeep
from dspark_deploy.checks.cache_words import MOST_LISTED, Where, listed, size_text
from dspark_deploy.facts.snapshot import Hashed, OwnedByOthers, Snapshot, SnapshotFile, Unfinished, parse_snapshot
from dspark_deploy.model import Model, load_model
from tests.samples import HOMES, snapshot_document, snapshot_file

ADDRESSES = {"head": "192.168.177.11", "worker": "192.168.177.12"}
WHERE = {node: Where(f"{node}.hf_home", address) for node, address in ADDRESSES.items()}
OTHER = "6976c7ff" * 5
SHARD = "model-00002-of-00002.safetensors"


def model(name: str = "deepseek-v4-flash-0731") -> Model:
    return load_model(name, SearchPath((data_folder("profiles"),)))


def snapshot(node: str, name: str = "deepseek-v4-flash-0731", **changes: Any) -> Snapshot:
    """The model as that node has it complete, with changes to the document that it sends."""
    known = model(name)
    request = {"hf_home": f"{HOMES[node]}/.cache/huggingface", "hub_cache": None, "encoder": known.ships_encoder}
    asked = {**request, "model": known.id, "revision": known.revision, "directory": known.directory}
    return parse_snapshot(node, snapshot_document(asked, **changes))


def with_file(known: Snapshot, name: str, **changes: Any) -> Snapshot:
    """With one file changed, or added."""
    added = SnapshotFile(**snapshot_file(f"{known.folder}/", name, required=False))
    files = known.files if any(file.name == name for file in known.files) else (*known.files, added)
    return replace(known, files=tuple(replace(f, **changes) if f.name == name else f for f in files))


def judge(head: Snapshot | Unread, worker: Snapshot | Unread, name: str = "deepseek-v4-flash-0731") -> Judged:
    return check_cache(model(name), {"head": head, "worker": worker}, WHERE)


def failed(judged: Judged) -> str:
    (finding,) = (each for each in judged.findings if each.status == "fail")
    return f"{finding.message} -> {finding.remedy}"


def both(judged: Judged) -> tuple[str, str]:
    return judged.verdicts["head"], judged.verdicts["worker"]


def test_equal_and_complete_is_complete() -> None:
    judged = judge(snapshot("head"), snapshot("worker"))
    assert judged.complete
    assert {finding.status for finding in judged.findings} == {"ok"}
    assert {finding.group for finding in judged.findings} == {"cache"}


def test_every_problem_has_a_verdict_and_every_verdict_its_place() -> None:
    assert set(VERDICT_OF.values()) <= set(ORDER)
    assert set(COVERED) <= set(ORDER)
    assert ORDER[-1] == "complete"


def test_what_one_node_lacks_is_copied_from_the_other_over_the_fabric() -> None:
    judged = judge(snapshot("head"), with_file(snapshot("worker"), SHARD, problem="missing", size=None))
    assert both(judged) == ("complete", "partial")
    root = ".cache/huggingface/hub/models--deepseek-ai--DeepSeek-V4-Flash-0731/"
    assert failed(judged).endswith(
        "-> on worker: rsync -a --mkpath --exclude='*.incomplete' --exclude=trees/ "
        f"nvidia@192.168.177.11:/home/nvidia/{root} /home/ubuntu/{root}"
    )


def test_what_both_lack_is_fetched_from_the_hub_with_longer_limits() -> None:
    judged = check_cache(model(), {"head": snapshot("head", folder=None, revisions=[], files=[])}, WHERE)
    assert failed(judged).endswith(
        "-> on head: HF_HUB_OFFLINE=0 HF_HUB_DOWNLOAD_TIMEOUT=120 HF_HUB_ETAG_TIMEOUT=30 hf download "
        "deepseek-ai/DeepSeek-V4-Flash-0731 --revision 9e165c30e2704aec5d9d593cce3eebd58bbef1cb "
        "--cache-dir /home/nvidia/.cache/huggingface/hub"
    )


def test_a_plain_directory_can_not_be_fetched() -> None:
    name = "deepseek-v4-flash-dspark-directory"
    absent = [snapshot(node, name, folder=None, files=[]) for node in ("head", "worker")]
    judged = judge(absent[0], absent[1], name)
    assert both(judged) == ("absent", "absent")
    remedies = {finding.remedy for finding in judged.findings}
    assert remedies == {
        f"copy the checkpoint to {home}/.cache/huggingface/fraserprice/DeepSeek-V4-Flash-DSpark on {node}"
        for node, home in HOMES.items()
    }


def test_a_path_with_a_space_is_quoted_in_what_to_type() -> None:
    broken = with_file(snapshot("worker"), SHARD, problem="wrong-size", path="/data/my hf/blob")
    assert "rm -- '/data/my hf/blob'; then on worker: rsync" in failed(judge(snapshot("head"), broken))


def test_ninety_eight_dangling_files_are_counted_and_some_of_them_named() -> None:
    files = [snapshot_file("/hub/", f"model-{n:05d}.safetensors", problem="dangling", size=None) for n in range(98)]
    judged = judge(snapshot("head"), snapshot("worker", files=files, shards=[], total_bytes=None))
    assert both(judged) == ("complete", "partial")
    assert "worker: deepseek-ai/DeepSeek-V4-Flash-0731 at 9e165c30 is partial: 98 of 98 files dangling" in failed(
        judged
    )
    assert f"and {98 - MOST_LISTED} more" in failed(judged)


@pytest.mark.parametrize(
    ("problem", "verdict"),
    [
        ("missing", "partial"),
        ("dangling", "partial"),
        ("wrong-size", "wrong-size"),
        ("damaged", "corrupt"),
        ("unreadable", "unreadable"),
        ("leaves-mount", "link-leaves-mount"),
        ("changed", "downloading"),
    ],
)
def test_each_problem_of_a_file_has_its_verdict(problem: str, verdict: str) -> None:
    judged = judge(with_file(snapshot("head"), SHARD, problem=problem), snapshot("worker"))
    assert both(judged) == (verdict, "complete")
    assert SHARD in failed(judged)


def test_of_two_faults_the_one_to_mend_first_is_the_verdict_and_both_are_told() -> None:
    broken = with_file(with_file(snapshot("head"), SHARD, problem="wrong-size"), "config.json", problem="missing")
    judged = judge(broken, snapshot("worker"))
    assert both(judged) == ("partial", "complete")
    assert [finding.status for finding in judged.findings].count("fail") == 2


def test_a_file_that_no_engine_reads_may_be_broken() -> None:
    assert judge(with_file(snapshot("head"), "README.md", problem="dangling"), snapshot("worker")).complete
    assert not judge(
        with_file(snapshot("head"), "generation_config.json", problem="dangling"), snapshot("worker")
    ).complete


def test_a_node_that_could_not_be_asked_is_unknown_and_stops_a_start() -> None:
    judged = judge(Unread("no answer within 60 s", "look there"), snapshot("worker"))
    assert both(judged) == ("unknown", "complete")
    assert "no answer within 60 s" in failed(judged)


# --- both nodes -------------------------------------------------------------------------------------------------

SHA = "c" * 64


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"size": 1009}, "1008 and 1009 bytes"),
        ({"digests": {"sha256": "other"}}, "content"),
        ({"digests": {}, "blob": SHA}, "content"),
    ],
)
def test_complete_and_different_is_nodes_differ(changes: dict[str, Any], told: str) -> None:
    judged = judge(snapshot("head"), with_file(snapshot("worker"), "config.json", **changes))
    assert both(judged) == ("nodes-differ", "nodes-differ")
    assert not judged.complete
    assert f"config.json ({told})" in failed(judged)


def test_another_encoder_of_the_same_size_is_nodes_differ() -> None:
    changed = with_file(snapshot("worker"), "encoding/encoding_dsv4.py", digests={"sha256": "other"})
    assert both(judge(snapshot("head"), changed)) == ("nodes-differ", "nodes-differ")


def test_a_blob_and_a_hashed_real_file_of_one_content_are_the_same() -> None:
    head = with_file(snapshot("head"), SHARD, blob=SHA, digests={})
    worker = with_file(snapshot("worker"), SHARD, digests={"sha256": SHA, "sha1": "d" * 40}, hashed=True)
    assert judge(head, worker).complete


def test_a_file_on_one_node_only_is_fetched_from_there() -> None:
    judged = judge(snapshot("head"), with_file(snapshot("worker"), "chat_template.jinja"))
    assert both(judged) == ("nodes-differ", "nodes-differ")
    assert "chat_template.jinja (only on worker) -> on head: rsync -a " in failed(judged)


def test_a_readme_on_one_node_only_is_a_note() -> None:
    judged = judge(snapshot("head"), with_file(snapshot("worker"), "README.md"))
    assert judged.complete
    assert any("README.md" in finding.message for finding in judged.findings if finding.status == "skip")


def test_real_files_without_hashes_are_compared_by_size_and_that_is_said() -> None:
    judged = judge(with_file(snapshot("head"), SHARD, digests={}), snapshot("worker"))
    assert judged.complete
    assert any("--deep compares contents" in finding.message for finding in judged.findings)


def test_without_a_revision_both_refs_have_to_mean_the_same() -> None:
    name = "deepseek-v4-flash-dspark"
    other = snapshot("worker", name, revision=OTHER, revisions=[OTHER], ref=OTHER)
    judged = judge(snapshot("head", name), other, name)
    assert both(judged) == ("nodes-differ", "nodes-differ")
    assert "head would serve 99999999" in failed(judged)
    assert "worker 6976c7ff" in failed(judged)


def test_a_pinned_revision_that_one_node_lacks_names_what_it_has() -> None:
    judged = judge(snapshot("head"), snapshot("worker", folder=None, files=[], revisions=[OTHER], ref=OTHER))
    assert both(judged) == ("complete", "other-revision")
    assert "worker: lacks snapshot 9e165c30" in failed(judged)
    assert "(has 6976c7ff)" in failed(judged)


# --- doubts and upkeep ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [{"draft_block_size": 3}, {"architectures": ["LlamaForCausalLM"]}, {"ref": "main"}, {"ref": ""}],
)
def test_what_looks_wrong_warns_and_stops_nothing(changes: Mapping[str, Any]) -> None:
    judged = judge(snapshot("head", **changes), snapshot("worker"))
    assert judged.complete
    (warning,) = (finding for finding in judged.findings if finding.status == "warn")
    assert warning.remedy


def test_upkeep_tells_waste_owners_and_what_was_hashed() -> None:
    known = replace(
        snapshot("worker"),
        unfinished=Unfinished("/hub/blobs", 2, 3 * 2**30, age_s=86400.0),
        owned_by_others=OwnedByOthers(37, 1, ("root",), "/hub/blobs/ab12", ("/hub/a b", "/hub/.locks/x")),
        hashed=Hashed("2026-09-01T10:00:00Z", "complete", unchanged=False),
    )
    waste, owners, hashed = check_upkeep(known)
    assert waste.message == "worker: 2 unfinished files (3.00 GiB) of an old transfer lie in /hub/blobs"
    assert "37 files or folders can't be written by ubuntu, 1 not even read: they belong to root" in owners.message
    assert owners.remedy == "on worker: sudo chown -R ubuntu: '/hub/a b' /hub/.locks/x"
    assert "files have changed since" in hashed.message


@pytest.mark.parametrize(
    ("hashed", "status"),
    [
        (None, "skip"),
        (Hashed("2026-09-01T10:00:00Z", "complete", unchanged=True), "ok"),
        (Hashed("2026-09-01T10:00:00Z", "corrupt", unchanged=True), "warn"),
    ],
)
def test_what_was_hashed_when_is_told(hashed: Hashed | None, status: str) -> None:
    (told,) = check_upkeep(replace(snapshot("head"), hashed=hashed))
    assert told.status == status


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "an unknown number of bytes"), (0, "0 bytes"), (1023, "1023 bytes"), (166_886_535_336, "155.43 GiB")],
)
def test_sizes_are_told_in_powers_of_1024(size: int | None, text: str) -> None:
    assert size_text(size) == text


def test_a_short_list_is_told_whole() -> None:
    assert listed(["a", "b"]) == "a, b"


def test_a_disk_that_can_not_be_read_is_no_question_of_owners() -> None:
    broken = with_file(snapshot("head"), SHARD, problem="unreadable", detail="Input/output error")
    assert "dmesg" in failed(judge(broken, snapshot("worker")))


def test_a_snapshot_folder_that_leads_nowhere_is_never_complete() -> None:
    name = "deepseek-v4-flash-dspark"
    judged = judge(snapshot("head", name, folder=None, files=[], total_bytes=None), snapshot("worker", name), name)
    assert both(judged) == ("other-revision", "complete")
