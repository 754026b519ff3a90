"""What the tests of boot/ share: the bundled signatures, compiled once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dspark_deploy.boot.diagnosis import Diagnosis, diagnose
from dspark_deploy.boot.events import Event, Node
from dspark_deploy.boot.reader import BootReader
from dspark_deploy.boot.record import Boot
from dspark_deploy.boot.rules import Rules, compile_rules
from dspark_deploy.boot.signatures import load_signatures
from dspark_deploy.bundled import data_folder

Read = Callable[..., tuple[list[Event], tuple[Boot, ...]]]


@pytest.fixture(scope="session")
def rules() -> Rules:
    """The signatures that travel with dspark."""
    return compile_rules(load_signatures(data_folder("profiles") / "signatures.yaml"))


@pytest.fixture(scope="session")
def read(rules: Rules) -> Read:
    """Lines, or bytes as they are -> the events and the boots."""

    def read_log(*lines: str | bytes, node: Node | None = None) -> tuple[list[Event], tuple[Boot, ...]]:
        reader = BootReader(rules, node)
        log = b"".join(line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines)
        events = [*reader.feed(log), *reader.finish()]
        return events, reader.boots

    return read_log


@pytest.fixture(scope="session")
def judge(rules: Rules) -> Callable[..., Diagnosis]:
    """Logs by node -> the diagnosis."""

    def judge_logs(**logs: bytes) -> Diagnosis:
        boots: list[Boot] = []
        for name, log in logs.items():
            node: Node | None = "head" if name == "head" else "worker" if name == "worker" else None
            reader = BootReader(rules, node)
            reader.feed(log)
            reader.finish()
            boots += reader.boots
        return diagnose(boots, rules.signatures)

    return judge_logs
