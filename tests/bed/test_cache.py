"""The caches of two real hosts: whatever is not complete and equal starts nothing, everything else starts."""

from __future__ import annotations

import os
import re
import signal

import pytest

from dspark_deploy.rehearsal.standin.snapshots import PLAIN_DIRECTORY
from tests.cachetree import CacheTree

from .bed import Bed
from .faults import FaultyNode
from .host import wait_until
from .tool import DSPARK, dspark, error_lines, nothing_is_left, result

HUB = ".cache/huggingface/hub"
MODEL = f"{HUB}/models--deepseek-ai--DeepSeek-V4-Flash-0731"
SNAPSHOT = f"{MODEL}/snapshots/9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
SHARD = f"{SNAPSHOT}/model-00003-of-00048.safetensors"
OTHER_REVISION = "6976c7ff" * 5

# Verdict -> what has happened on the node, as a user's own shell does it.
DAMAGES = [
    ("absent", f"rm -r {MODEL}"),
    ("other-revision", f"mv {SNAPSHOT} {MODEL}/snapshots/{OTHER_REVISION}"),
    ("downloading", f"rm {SHARD}; touch {MODEL}/blobs/a.incomplete"),
    ("link-leaves-mount", f"mv {MODEL}/blobs big-disk; ln -s $HOME/big-disk {MODEL}/blobs"),
    ("unreadable", f"touch {SHARD}; chmod 0 $(readlink -f {SHARD})"),
    ("partial", f"rm $(readlink -f {SHARD}) {SNAPSHOT}/encoding/encoding_dsv4.py"),
    ("wrong-size", f"truncate -s -1 $(readlink -f {SHARD})"),
    ("corrupt", f"echo '<html>' > $(readlink -f {SNAPSHOT}/encoding/encoding_dsv4.py)"),
    ("nodes-differ", f"sed -i s/1048576/1048577/ $(readlink -f {SNAPSHOT}/config.json)"),
]
HARMLESS = {
    "a newline in refs/main": f"echo >> {MODEL}/refs/main",
    "no refs/main": f"rm -r {MODEL}/refs",
    "an old transfer": f"touch -d yesterday {MODEL}/blobs/a.incomplete",
    "real files instead of links": f"cp -rL {SNAPSHOT} whole; rm -r {MODEL}/blobs {SNAPSHOT}; mv whole {SNAPSHOT}",
}


def do(node: FaultyNode, script: str) -> None:
    """Have the node's user do something."""
    node.as_user(["sh", "-ec", script]).check()


def verdicts(bed: Bed, code: int, *words: str) -> dict[str, str]:
    """What `verify-cache` says of each node, ending with that exit code."""
    ran = dspark(bed, "verify-cache", "--output", "json", *words)
    assert ran.returncode == code, ran
    return {node: cache["verdict"] for node, cache in result(ran)["nodes"].items()}


@pytest.mark.parametrize("role", ["head", "worker"])
@pytest.mark.parametrize(("verdict", "script"), DAMAGES)
def test_an_incomplete_cache_on_either_node_starts_nothing(bed: Bed, role: str, verdict: str, script: str) -> None:
    node = {"head": bed.head, "worker": bed.worker}[role]
    do(node, script)
    ran = dspark(bed, "up")
    assert ran.returncode == 3, ran
    lines = error_lines(ran)
    assert lines[-1].startswith("  -> "), ran
    assert role in lines[0] or verdict == "nodes-differ", ran
    assert "Traceback" not in ran.stderr
    assert all(each.containers() == [] for each in bed.nodes)
    told = verdicts(bed, 7)
    assert told[role] == verdict
    if verdict != "nodes-differ":
        other = {"head": "worker", "worker": "head"}[role]
        assert told[other] == "complete"


@pytest.mark.parametrize("state", HARMLESS)
def test_what_harms_nothing_starts(bed: Bed, state: str) -> None:
    do(bed.worker, HARMLESS[state])
    assert result(dspark(bed, "up", "--output", "json").check())["state"] == "serving"


def test_a_hub_that_lies_elsewhere_is_found_where_the_container_will_look(bed: Bed) -> None:
    do(bed.worker, f"mv {HUB} nas")
    assert verdicts(bed, 7) == {"head": "complete", "worker": "absent"}
    assert dspark(bed, "up", worker__hub_cache="~/nas").check().returncode == 0


def test_hashing_finds_a_flipped_byte_and_up_remembers(bed: Bed) -> None:
    last = "seek=$(($(stat -c %s $blob) - 1))"
    flip = f"printf X | dd of=$blob bs=1 {last} conv=notrunc"
    do(bed.worker, f'blob=$(readlink -f {SHARD}); at=$(stat -c %y $blob); {flip}; touch -d "$at" $blob')
    assert verdicts(bed, 0) == {"head": "complete", "worker": "complete"}
    assert verdicts(bed, 7, "--deep") == {"head": "complete", "worker": "corrupt"}
    ran = dspark(bed, "up")
    assert ran.returncode == 3, ran
    assert "model-00003-of-00048.safetensors" in error_lines(ran)[0]
    do(bed.worker, f"touch {SHARD}")  # a reset of the bed goes by sizes and times


def test_hashing_tells_both_nodes_progress_and_leaves_nothing_running(bed: Bed) -> None:
    ran = dspark(bed, "verify-cache", "--deep").check()
    for node in ("head", "worker"):
        assert re.search(rf"{node}: (\d\S* KiB) of \1 hashed", ran.stderr)
    assert "every file was hashed" in ran.stdout
    nothing_is_left(bed)


def test_an_interrupted_hashing_says_what_is_kept_and_is_gone_on_with(bed: Bed) -> None:
    for node in bed.nodes:
        tree = CacheTree(node.path(node.hf_home), directory=PLAIN_DIRECTORY, size=48 << 24)
        for path in tree.folder.rglob("*"):
            os.chown(path, node.identity.uid, node.identity.uid)
    bed.inventory(profile="stage-c-c12")
    journals = [node.path(f"{node.home}/.local/share/dspark/spark-pair/cache.jsonl") for node in bed.nodes]
    first = bed.popen([DSPARK, "verify-cache", "--deep"])
    wait_until(lambda: all(journal.exists() and journal.read_text() for journal in journals))
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=30)
    assert first.returncode == 130, said
    assert "every file that was hashed to its end is kept" in said
    kept = [journal.read_text().splitlines() for journal in journals]
    nothing_is_left(bed)
    dspark(bed, "verify-cache", "--deep", profile="stage-c-c12").check()
    assert all(
        journal.read_text().splitlines()[: len(lines)] == lines for journal, lines in zip(journals, kept, strict=True)
    )


def test_a_node_that_is_gone_is_exit_5_and_the_other_is_told(bed: Bed) -> None:
    bed.worker.stop_sshd()
    assert verdicts(bed, 5) == {"head": "complete", "worker": "unreachable"}


def test_up_online_names_free_disk_and_needs_a_yes(bed: Bed) -> None:
    do(bed.worker, f"rm {SNAPSHOT}/tokenizer_config.json")
    do(bed.head, f"rm {SNAPSHOT}/tokenizer_config.json")
    ran = dspark(bed, "up", "--online")
    assert ran.returncode == 2, ran
    assert "head: partial; " in ran.stderr
    assert "worker: partial; " in ran.stderr
    assert ran.stderr.count(" free in ") == 2
    assert all(node.containers() == [] for node in bed.nodes)
    release = result(dspark(bed, "up", "--online", "--yes", "--output", "json").check())["release"]
    for node in bed.nodes:
        env = node.read(f"{node.home}/.local/share/dspark/spark-pair/releases/{release}/.env")
        assert 'HF_HUB_OFFLINE="0"' in env
        assert 'TRANSFORMERS_OFFLINE="0"' in env
