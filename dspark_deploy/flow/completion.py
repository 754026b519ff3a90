"""A boot that another run began and left is noted once it serves, by whoever sees that first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspark_deploy.execute.journal import note
from dspark_deploy.plan.journal import BOOTING, Entry, Mark
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.watch.boot import BootWatch


def complete(
    hosts: Mapping[str, Host],
    pair: str,
    mark: Mark,
    clock: Clock,
    *,
    release: str | None,
    profile: str | None,
    family: str | None,
    boot: BootWatch | None = None,
    failed: str = "",
) -> None:
    """Write the entry that the run would have written which left `mark`, and take the mark away.

    `boot`: what its logs told, where they were followed. `failed`: why it never served.
    """
    entry = Entry(
        run=mark.run or mark.at,
        at=mark.at,
        who=mark.who,
        command="up",
        outcome="launch-failed" if failed else "serving",
        release=release,
        profile=profile,
        family=family,
        message=failed or "it had left the pair to boot on",
        **(boot_notes(boot) if boot is not None else {}),
    )
    note(hosts, pair, clock, entry=entry, marks={BOOTING: None})


def boot_notes(boot: BootWatch) -> dict[str, Any]:
    """What an entry of the history keeps of a boot: the KV pool, and the seconds of each phase."""
    pool = boot.figures().get("head", {}).get("kv_pool_tokens") if boot.ranks else None
    return {"kv_cache_tokens": pool if isinstance(pool, int) else None, "phases": boot.seconds()}
