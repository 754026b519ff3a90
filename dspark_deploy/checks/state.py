"""What the tool itself keeps on a node."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine

OTHERS = 0o077


def _private(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        if known.state_mode is None:
            continue
        folder = f"~/.local/share/dspark/{case.pair}"
        if known.state_mode & OTHERS:
            message = f"{node}: {folder} is open to other users (mode {known.state_mode:04o})"
            yield bad(message, f"on {node}: chmod 700 {folder}", node)
        else:
            yield fine(f"{node}: {folder} is its owner's alone", node)


CHECKS = (Check("state-private", "nodes", "warn", ("F73",), _private),)
