"""A pull on one node: how far it is, and what its end means. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Cause = Literal[
    "denied",  # the registry refuses this user, or hides that there is no such image
    "not-found",  # the registry knows no such tag or digest
    "rate-limit",
    "clock",  # a certificate is not valid at the node's time
    "certificate",  # nor at any time
    "disk-full",
    "no-route",  # the registry is not reached
    "stalled",  # bytes stopped coming
    "no-docker",
    "other",
]

# What dockerd and registries say (moby, distribution), in lower case; the first that fits counts.
_WORDS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    ("rate-limit", ("toomanyrequests", "too many requests", "429", "rate limit")),
    ("clock", ("certificate has expired or is not yet valid", "certificate is not yet valid")),
    ("certificate", ("x509:", "tls:", "http: server gave http response to https client")),
    ("disk-full", ("no space left on device", "disk quota exceeded")),
    ("not-found", ("manifest unknown", "manifest for", "name unknown", "not found: ")),
    ("denied", ("denied", "unauthorized", "authentication required", "no basic auth credentials", "forbidden")),
    (
        "no-route",
        (
            "no such host",
            "no route to host",
            "network is unreachable",
            "connection refused",
            "connection reset",
            "i/o timeout",
            "tls handshake timeout",
            "context deadline exceeded",
            "server misbehaving",
            "temporary failure in name resolution",
            "client.timeout exceeded",
            "unexpected eof",
            ": eof",
        ),
    ),
    ("not-found", ("not found",)),
)


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a node is. A layer's size is known once its download begins, so the total grows."""

    done_bytes: int = 0
    total_bytes: int = 0
    layers: int = 0
    ready: int = 0  # layers that are unpacked, or were there already
    note: str = ""  # what it waits for, where it waits


@dataclass(frozen=True, slots=True)
class PullEnd:
    """How it ended. Without `failed` the image is there under its tag."""

    failed: str = ""  # the engine's or the registry's own words
    cause: Cause | None = None
    stored_login: bool = False  # the node has credentials for that registry
    by_tag: bool = False  # the digest was not to be had, and what the tag names now was pulled


def parse_progress(found: Mapping[str, Any]) -> PullProgress:
    """Read what remote/programs/pull.py tells while it works."""
    return PullProgress(**found)


def parse_end(found: Mapping[str, Any]) -> PullEnd:
    """Read its last answer."""
    said = found["failed"]
    cause: Cause | None = None
    if said:
        cause = "stalled" if found["stalled"] else "no-docker" if found["no_engine"] else cause_of(said)
    return PullEnd(said, cause, found["stored_login"], found["by_tag"])


def cause_of(said: str) -> Cause:
    """What the engine's or the registry's words mean."""
    lower = said.lower()
    return next((cause for cause, words in _WORDS if any(word in lower for word in words)), "other")
