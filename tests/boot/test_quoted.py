"""Real log lines and their right reading: tests/data/boots/quoted.yaml."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from dspark_deploy.boot.events import Found, Progress, UnknownVariable
from tests.boot.conftest import Read
from tests.boot.corpus import BOOTS
from tests.boot.recipe import NODES

QUOTED: list[dict[str, Any]] = YAML(typ="safe", pure=True).load((BOOTS / "quoted.yaml").read_text(encoding="utf-8"))
CASES = [(node, entry) for entry in QUOTED for node in entry.get("on", NODES)]


def printed(node: str, entry: dict[str, Any], message: str) -> str:
    """The message as a process of that rank prints it."""
    if entry.get("raw"):
        return message
    return f"(Worker_TP{NODES.index(node)} pid=189) INFO 07-18 13:29:28 [module.py:42] {message}"


@pytest.mark.parametrize(("node", "entry"), CASES, ids=[f"{node}: {entry['line'][:60]}" for node, entry in CASES])
def test_a_quoted_line_has_its_reading(node: str, entry: dict[str, Any], read: Read) -> None:
    before = [printed(node, entry, entry["after"])] if "after" in entry else []
    events, boots = read(*before, printed(node, entry, entry["line"]), node=node)
    [boot] = boots
    assert boot.node == node
    if "phase" in entry:
        assert boot.phase is not None
        assert boot.phase.label == entry["phase"]
    assert {name: boot.figures.get(name) for name in entry.get("figures", {})} == entry.get("figures", {})
    if "percent" in entry:
        assert [event.percent for event in events if isinstance(event, Progress)][-1] == entry["percent"]
    if "variable" in entry:
        assert UnknownVariable(boot.node, entry["variable"]) in events
    assert boot.ready == (node in entry.get("ready", []) or "startup complete" in str(entry.get("after")))
    told = [event for event in events if isinstance(event, Found)]
    expected = {(entry.get("failure"), entry["severity"])} if "severity" in entry else set()
    assert {(event.failure, event.severity) for event in told} == expected
    if "signature" in entry:
        assert [event.signature for event in told] == [entry["signature"]]


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", b"\r", b""], ids=["lf", "crlf", "cr", "no end"])
@pytest.mark.parametrize(
    "lead",
    [
        "vllm-dspark-1  | ",
        "head   | ",
        "2026-07-18T13:29:28.123456789Z ",
        "\x1b[0;36m",
        "spark-head:189:593 [0] NCCL INFO NCCL_IB_ADDR_(Worker pid=189) WARNING 07-18 13:29:40 [a.py:1] half a ",
        "\rLoading safetensors checkpoint shards:   2% Completed | 1/48 [00:03<02:31,  3.22s/it]\r",
    ],
    ids=["compose", "dspark logs", "docker -t", "colour", "glued", "carriage returns"],
)
def test_what_surrounds_a_line_changes_nothing(lead: str, tail: bytes, read: Read) -> None:
    line = (
        f"{lead}(EngineCore pid=137) INFO 07-18 13:33:35 [kv.py:2146] GPU KV cache size: \x1b[1m853,524\x1b[0m tokens"
    )
    _, [boot] = read(line.encode() + tail)
    assert boot.figures["kv_pool_tokens"] == 853_524
    assert boot.node == "head"
