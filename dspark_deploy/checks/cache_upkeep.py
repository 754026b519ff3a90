"""What is worth knowing of a cache that serves: waste, files that can't be repaired, what was hashed when."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from dspark_deploy.checks.cache_faults import RECENT_S
from dspark_deploy.checks.cache_words import size_text
from dspark_deploy.checks.finding import CACHE, Finding
from dspark_deploy.facts.snapshot import Snapshot


def check_upkeep(snapshot: Snapshot) -> Iterator[Finding]:
    """Warnings and notes for `verify-cache`; no start depends on any of them."""
    for finding in (*_leftovers(snapshot), *_ownership(snapshot), *_hashed(snapshot)):
        yield replace(finding, group=CACHE)


def _leftovers(snapshot: Snapshot) -> Iterator[Finding]:
    left = snapshot.unfinished
    if left is not None and left.age_s >= RECENT_S:
        message = f"{left.count} unfinished files ({size_text(left.bytes)}) of an old transfer lie in {left.folder}"
        remedy = f"on {snapshot.node}: find {shlex.quote(left.folder)} -name '*.incomplete' -delete"
        yield Finding("cache-leftovers", "warn", f"{snapshot.node}: {message}", snapshot.node, remedy)


def _ownership(snapshot: Snapshot) -> Iterator[Finding]:
    others = snapshot.owned_by_others
    if others is None:
        return
    owners = ", ".join(others.owners)
    message = f"{others.count} files or folders can't be written by {snapshot.user}, {others.unreadable} not even read"
    remedy = f"on {snapshot.node}: sudo chown -R {snapshot.user}: {' '.join(map(shlex.quote, others.folders))}"
    detail = f"{message}: they belong to {owners} ({others.example})"
    yield Finding("cache-ownership", "warn", f"{snapshot.node}: {detail}; a repair would fail", snapshot.node, remedy)


def _hashed(snapshot: Snapshot) -> Iterator[Finding]:
    node, hashed = snapshot.node, snapshot.hashed
    if snapshot.not_kept:
        message = f"{node}: what was hashed could not be kept, and is hashed again next time: {snapshot.not_kept}"
        yield Finding("cache-hashed", "warn", message, node, f"free space, or make that folder writable, on {node}")
    elif hashed is None:
        if snapshot.folder is not None:
            yield Finding(
                "cache-hashed", "skip", f"{node}: contents were not hashed; `dspark verify-cache --deep` does"
            )
    elif hashed.unchanged and hashed.verdict == "complete":
        message = f"{node}: every file was hashed ({hashed.at}), and none has changed since"
        yield Finding("cache-hashed", "ok", message, node)
    else:
        what = "that run found faults" if hashed.unchanged else "files have changed since"
        message = f"{node}: all files were hashed ({hashed.at}: {hashed.verdict}); {what}"
        yield Finding(
            "cache-hashed", "warn", message, node, "`dspark verify-cache --deep` hashes what is new or was wrong"
        )
