"""Failures that no single line tells: what two figures, two ranks or two boots say together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.record import Boot, Sighting
from dspark_deploy.boot.signatures import Relation

MOST_VERIFY_ROWS = 64  # of the anemll image's sparse MLA kernel; MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#141
FROZEN_FROM, FROZEN_TO = 60, 100  # per cent of the weights; hosts were seen to freeze at 73 to 97
UNEVEN_GIB = 1.5  # published pairs differ by 0.4 to 1.2 GiB

_HUB = ("not-in-cache", "hub-asked-in-vain")
_LOCK_UP = ("call-timed-out", "engine-hangs")
_NO_MEETING = ("peer-missing", "master-unreachable")
_LOST = ("peer-lost", "peer-closed")
_OUT_OF_MEMORY = ("out-of-memory", "driver-out-of-memory", "memory-short")


@dataclass(frozen=True, slots=True)
class Logs:
    """What there is to relate."""

    boots: Sequence[Boot]  # the one that counts of each rank
    earlier: Sequence[Boot]  # all others in the same logs
    causes: frozenset[str]  # signatures that are fatal and no mere echo or symptom
    fatal: frozenset[str]  # all that are fatal


@dataclass(frozen=True, slots=True)
class Related:
    """A relation that holds: the boot it shows in, and the line that it explains, where there is one."""

    boot: Boot
    sighting: Sighting | None


def related(relation: Relation, logs: Logs) -> Related | None:
    """Whether the relation holds, and where."""
    return _RELATIONS[relation](logs)


def _no_revision(logs: Logs) -> Related | None:
    """The hub client found nothing, and no argument names a revision. The head alone prints its arguments."""
    named = any("revision" in boot.figures for boot in logs.boots)
    printed = any("model" in boot.figures for boot in logs.boots)
    is_id = any(str(boot.figures.get("model", "")).count("/") == 1 for boot in logs.boots)
    return _seen(logs.boots, _HUB) if printed and is_id and not named else None


def _verify_rows(logs: Logs) -> Related | None:
    for boot in logs.boots:
        sequences, drafts = boot.figures.get("max_num_seqs"), boot.figures.get("draft_tokens")
        if isinstance(sequences, int) and isinstance(drafts, int) and sequences * (drafts + 1) > MOST_VERIFY_ROWS:
            return _seen(logs.boots, _LOCK_UP)
    return None


def _two_masters(logs: Logs) -> Related | None:
    masters = {boot.figures["master"] for boot in logs.boots if "master" in boot.figures}
    return _seen(logs.boots, _NO_MEETING, _LOST) if len(masters) > 1 else None


def _restarted_alone(logs: Logs) -> Related | None:
    """A rank lost its peer while loading, and did so before: or the peer's log shows a boot that broke off in between.

    A boot that broke off without an error was ended from outside.
    """
    found = _seen(logs.boots, _LOST)
    if (
        found is None
        or found.boot.ready
        or any(_unresolved(boot, logs.causes) for boot in (*logs.boots, *logs.earlier))
    ):
        return None
    met = [boot for boot in logs.earlier if boot.phase is not None and boot.phase >= Phase.RENDEZVOUS]
    return found if any(not boot.ready for boot in met) else None


def _stale_worker(logs: Logs) -> Related | None:
    """The head waited in vain for a worker that had done its part in an earlier boot."""
    waiting = _seen([boot for boot in logs.boots if boot.node == "head"], ("peer-missing",))
    idle = any(boot.node == "worker" and boot.ready for boot in logs.boots)
    return waiting if idle else None


def _froze_while_loading(logs: Logs) -> Related | None:
    """One rank breaks off far in its weights without a word, and the other one has lost it."""
    lost = _seen(logs.boots, _LOST)
    for boot in logs.boots:
        far = boot.phase is Phase.WEIGHTS and boot.percent is not None and FROZEN_FROM <= boot.percent < FROZEN_TO
        silent = not _unresolved(boot, boot.sightings.keys() & logs.fatal) and not boot.complaints
        if lost is not None and far and silent and boot is not lost.boot:
            return lost
    return None


def _single_node(logs: Logs) -> Related | None:
    alone = any(boot.figures.get("world_size") == 1 for boot in logs.boots)
    return _seen(logs.boots, _OUT_OF_MEMORY) if alone else None


def _uneven_memory(logs: Logs) -> Related | None:
    by_gib = {boot.figures["kv_gib"]: boot for boot in logs.boots if isinstance(boot.figures.get("kv_gib"), float)}
    sizes = [float(gib) for gib in by_gib]
    if len(sizes) > 1 and max(sizes) - min(sizes) > UNEVEN_GIB:
        return Related(by_gib[min(sizes)], None)
    return None


def _seen(boots: Sequence[Boot], *signatures: Collection[str]) -> Related | None:
    """The first boot with one of these, in the order of the groups."""
    for group in signatures:
        for boot in boots:
            sighting = _unresolved(boot, group)
            if sighting:
                return Related(boot, sighting)
    return None


def _unresolved(boot: Boot, signatures: Collection[str]) -> Sighting | None:
    for name in signatures:
        sighting = boot.sightings.get(name)
        if sighting is not None and not sighting.resolved:
            return sighting
    return None


_RELATIONS: Mapping[Relation, Callable[[Logs], Related | None]] = {
    "no-revision": _no_revision,
    "verify-rows": _verify_rows,
    "two-masters": _two_masters,
    "restarted-alone": _restarted_alone,
    "stale-worker": _stale_worker,
    "froze-while-loading": _froze_while_loading,
    "single-node": _single_node,
    "uneven-memory": _uneven_memory,
}
