"""Boot logs for tests, made from small recipes: a healthy boot's lines, where it stops, and what it says then.

A boot (`tests/data/boots/base/*.boot`) is one line a log line, `SECONDS PROCESS LEVEL SOURCE MESSAGE`, the seconds
counted from the line before. Processes: A API server, E engine core, W and T the worker process before and after it
knows its rank, P the headless parent, U uvicorn, F FlashInfer's own logger, R a line as it stands. `== NAME` opens a
phase. `SECONDS @DIRECTIVE` stands for many lines. A case (`*.yaml`) says how far each rank comes and what it prints
then, in the same notation. The same recipe gives the same bytes, always.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.boot.recipe import NODES, LogWriter

BOOTS = Path(__file__).parents[1] / "data" / "boots"
VALUES: Mapping[str, Any] = {
    "model": "deepseek-ai/DeepSeek-V4-Flash-0731",
    "revision": "'revision': '9e165c30e2704aec5d9d593cce3eebd58bbef1cb', ",
    "length": 1_048_576,
    "seqs": 6,
    "drafts": 5,
    "util": 0.85,
    "master": "192.168.177.11",
    "head_gib": "18.08",
    "worker_gib": "17.62",
    "pool": "2,493,464",
    "ratio": "2.38",
    "weights": 141.71,
    "nccl": 1200,
    "serve": 1500,
}


@dataclass(frozen=True)
class Case:
    """One boot: what it is called, and the failure it shows (None: healthy)."""

    name: str
    failure: str | None
    about: str
    written: Callable[[], Mapping[str, bytes]] = field(repr=False)
    costly: tuple[str, ...] = ()

    @cached_property
    def logs(self) -> Mapping[str, bytes]:
        """Each rank's as bytes; written once one is wanted, and not by every worker that collects the tests."""
        return self.written()

    @property
    def lines(self) -> int:
        """Lines of all its logs."""
        return sum(log.count(b"\n") for log in self.logs.values())


def load(folder: str) -> list[Case]:
    """All cases of one folder, by name."""
    return [expand(path) for path in sorted((BOOTS / folder).glob("*.yaml"))]


def real() -> list[Case]:
    """The recorded boots: vLLM 0.32.0 on two CPU nodes, once with a tiny Llama, once with a tiny DeepSeek-V4."""
    cases = []
    for name in ("llama", "v4"):
        cases.append(Case(f"real-{name}", None, "recorded", partial(_recorded, name, NODES)))
        cases += [
            Case(f"real-{name}-{node}", None, "recorded, one rank", partial(_recorded, name, [node])) for node in NODES
        ]
    return cases


def _recorded(name: str, nodes: Sequence[str]) -> dict[str, bytes]:
    return {node: (BOOTS / "real" / f"{name}-{node}.log").read_bytes() for node in nodes}


def expand(path: Path) -> Case:
    """A case's recipe as logs."""
    recipe = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    written = partial(_logs, recipe, zlib.crc32(path.stem.encode()))
    return Case(path.stem, recipe["failure"], recipe["about"], written, tuple(recipe.get("costly", ())))


def _logs(recipe: Mapping[str, Any], seed: int) -> Mapping[str, bytes]:
    values = {**VALUES, **recipe.get("values", {})}
    logs = {
        node: _write(rank, recipe[node], values, random.Random(seed + rank))  # noqa: S311  repeatable, not secret
        for rank, node in enumerate(NODES)
        if node in recipe
    }
    dressed = {node: _dress(lines, recipe.get("dress", ())) for node, lines in logs.items()}
    if recipe.get("given") == "merged":
        return {"merged": _merge(logs)}
    return {node: log for node, log in dressed.items() if node in recipe.get("given", NODES)}


def boot_lines(base: str) -> dict[str, list[str]]:
    """A healthy boot's recipe lines by phase, in order."""
    phases: dict[str, list[str]] = {}
    for line in (BOOTS / "base" / f"{base}.boot").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            phases[line[3:]] = []
        elif line and not line.startswith("#"):
            phases[next(reversed(phases))].append(line)
    return phases


def _write(rank: int, recipe: Mapping[str, Any], values: Mapping[str, Any], rng: random.Random) -> list[str]:
    log = LogWriter(rank, values, rng)
    for line in recipe.get("before", "").splitlines():
        log.say(line)
    for attempt in recipe.get("attempts", [recipe]):
        until = attempt.get("until", "start")
        for phase, lines in boot_lines(f"{attempt.get('base', recipe.get('base', 'anemll'))}-{NODES[rank]}").items():
            if phase == until:
                break
            for line in lines:
                log.say(line)
            for line in attempt.get("within", {}).get(phase, "").splitlines():
                log.say(line)
        for line in attempt.get("then", "").splitlines():
            log.say(line)
    return log.lines


def _dress(lines: Sequence[str], how: Sequence[str]) -> bytes:
    """The lines as the user's way of saving them left them."""
    text = list(lines)
    if "ansi" in how:
        text = [re.sub(r"^(\([A-Za-z_0-9]+ pid=\d+\))", "\x1b[0;36m\\1\x1b[0;0m", line) for line in text]
    if "stamps" in how:
        text = [f"2026-07-18T13:29:28.{number % 10**9:09d}Z {line}" for number, line in enumerate(text)]
    if "compose" in how:
        text = [f"vllm-dspark-1  | {line}" for line in text]
    if "json" in how:
        text = [json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-07-18T13:29:28Z"}) for line in text]
    return ("\r\n" if "crlf" in how else "\n").join([*text, ""]).encode()


def _merge(logs: Mapping[str, Sequence[str]]) -> bytes:
    """Both ranks as `dspark logs` prints them: turn about, with the node in front. Ends as the longer log ends."""
    longest = max(map(len, logs.values()))
    merged = []
    for number in range(longest):
        for node, lines in logs.items():
            at = number - (longest - len(lines)) if node == "head" else number
            if 0 <= at < len(lines):
                merged.append(f"{node:<6} | {lines[at]}")
    return "\n".join([*merged, ""]).encode()
