"""What an operator's own hands do to one rank of a pair, as `parity` has to find it: played on both kinds of pairs."""

from __future__ import annotations

from typing import Any

from .contract import NodeName, Side

PREPARE, SERVE = "/opt/dspark/prepare.py", "/opt/dspark/serve.sh"
ENVS = "/usr/local/lib/python3.12/dist-packages/vllm/envs.py"
PYTHON = "/usr/bin/python3"
# Edits of a rank's rendered files.
VARIABLE = """sed -i 's/^VLLM_USE_B12X_MOE=.*/VLLM_USE_B12X_MOE="0"/' .env"""
SEQUENCES = """sed -i 's/"--max-num-seqs", "6"/"--max-num-seqs", "4"/' compose.yaml"""


def differences(side: Side, *words: str) -> set[str]:
    """What `parity` names; it exits with 7 then, and with 0 where there is none."""
    ran = side.dspark("parity", *words, "--output", "json")
    assert ran.returncode in {0, 7}, ran
    found: Any = ran.json()["result"]
    named = {str(each["what"]) for each in found["findings"] if each["status"] == "fail"}
    assert ran.returncode == (7 if named else 0), ran
    assert found["agree"] is (not named)
    return named


def release(side: Side) -> str:
    """The folder of the release that serves, from the login's home."""
    (rank,) = side.api("head").containers()
    return f".local/share/dspark/{side.pair}/releases/{rank.labels['dspark.release']}"


def container(side: Side, node: NodeName) -> str:
    """The rank that runs there, by id."""
    (found,) = side.api(node).containers()
    return found.id


def change_the_package(side: Side, node: NodeName) -> None:
    """A file of the vllm package, in one container alone."""
    side.api(node).execute(container(side, node), PYTHON, "-c", f"open('{ENVS}', 'a').write('# a patch by hand')")


def start_by_hand(side: Side, *edits: str) -> None:
    """Edit the worker's files of the release, and start both ranks anew from their files, the worker first."""
    folder = release(side)
    for edit in edits:
        side.login("worker", f"cd {folder} && {edit}").check()
    nodes: tuple[NodeName, NodeName] = ("worker", "head")
    for node in nodes:
        side.api(node).remove(container(side, node))
    for node in nodes:
        side.login(node, f"cd {folder} && docker compose -p {side.pair} -f compose.yaml up -d").check()
