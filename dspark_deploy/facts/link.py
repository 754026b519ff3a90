"""What one node heard of its peer over a link: small datagrams and those of full size, neither ever cut in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Heard:
    """One end of one link. `problem` says why nothing could be sent from here, where that is so."""

    interface: str
    address: str  # this end's
    peer: str
    size: int  # bytes of a full datagram, headers not counted
    small: bool  # a small one of the peer's came
    full: bool  # a full one of the peer's came
    problem: str = ""


def parse_heard(found: Mapping[str, Any]) -> tuple[Heard, ...]:
    """Read what remote/programs/link.py answers."""
    return tuple(Heard(**each) for each in found["links"])
