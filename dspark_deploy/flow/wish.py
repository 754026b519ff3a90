"""What a command line asks for, before any file is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Confirm = Callable[[str], None]
"""Shows a text and returns when the user agrees; raises Declined otherwise."""


@dataclass(frozen=True, slots=True)
class Wish:
    """None and empty mean: not said here, so the next source decides."""

    inventory: Path | None = None
    profile: str | None = None
    family: str | None = None
    overrides: tuple[str, ...] = ()  # `key=value`, as --set had them
    online: bool = False  # let both nodes download what their caches lack
    skip: tuple[str, ...] = ()  # ids of checks whose failures are let pass
    ssh_config: Path | None = None
    accept_new_host_keys: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path = Path()  # where relative names are looked for
    home: Path = Path()


@dataclass(frozen=True, slots=True)
class Limits:
    """How long `up` waits."""

    api_s: float = 40 * 60.0  # published boots take 5 to 12 minutes, a cold kernel cache more
    rendezvous_s: float = 120.0
    stall_s: float = 15 * 60.0  # without any sign of work by either rank
    lock_s: float = 0.0  # while another run changes the pair
    returns: bool = True  # undo what fails and bring back what served; else leave it for study
