"""`verify-cache`: is the profile's model complete on both nodes, and the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dspark_deploy.checks.cache import check_cache
from dspark_deploy.checks.cache_upkeep import check_upkeep
from dspark_deploy.checks.cache_words import size_text
from dspark_deploy.checks.finding import Finding
from dspark_deploy.errors import Interrupted, NodeUnreachable
from dspark_deploy.facts.snapshot import Progress, Snapshot
from dspark_deploy.flow.gate import places_of, requests_of
from dspark_deploy.flow.intention import Intention, load_intention, nodes_of
from dspark_deploy.flow.pair import Reached, reach_pair
from dspark_deploy.flow.wish import Wish
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.cache import Found, hash_caches, read_caches

Tell = Callable[[str, Progress], None]


@dataclass(frozen=True, slots=True)
class NodeCache:
    """One node's snapshot in short."""

    verdict: str
    folder: str | None = None  # where its files are; None: nowhere
    revision: str | None = None
    shards: int = 0
    bytes: int = 0
    faulty: tuple[str, ...] = ()  # every file that something is wrong with
    hashed_at: str | None = None  # when every file was last hashed, if none has changed since


@dataclass(frozen=True, slots=True)
class CacheReport:
    """Both nodes' caches. `nodes` has head and worker, also one that could not be reached."""

    pair: str
    model: str
    revision: str | None
    complete: bool  # on both, and the same
    deep: bool
    nodes: Mapping[str, NodeCache]
    findings: tuple[Finding, ...]
    unreachable: tuple[NodeUnreachable, ...] = ()


def verify_cache(wish: Wish, clock: Clock, *, deep: Tell | None = None) -> CacheReport:
    """Look at both nodes. With `deep` every file is hashed, and it is told how far each node is.

    Raises Interrupted, saying how much is hashed and kept.
    """
    intention = load_intention(wish)
    with reach_pair(intention.inventory, wish, clock) as reached:
        return look_into(intention, reached, clock, deep=deep)


def look_into(intention: Intention, reached: Reached, clock: Clock, *, deep: Tell | None = None) -> CacheReport:
    """The same on nodes that are open, or known to be out of reach."""
    requests = requests_of(intention)
    found: dict[str, Found] = dict(reached.unreachable)
    if deep is None:
        found |= read_caches(reached.hosts, requests, clock)
    else:
        with _Hashing(deep) as hashing:
            found |= hash_caches(reached.hosts, requests, clock, hashing.tell)
    return _report(intention, {node: found[node] for node in nodes_of(intention.inventory)}, deep=deep is not None)


class _Hashing:
    """Remembers how far both nodes are, for the one who interrupts."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._last: dict[str, Progress] = {}

    def __enter__(self) -> _Hashing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, Interrupted):
            done = [
                f"{node}: {size_text(last.done_bytes)} of {size_text(last.total_bytes)}"
                for node, last in sorted(self._last.items())
            ]
            error.why = "; ".join(("every file that was hashed to its end is kept", *done))
            error.remedy = "`dspark verify-cache --deep` goes on from there"

    def tell(self, node: str, progress: Progress) -> None:
        self._last[node] = progress
        self._tell(node, progress)


def _report(intention: Intention, found: Mapping[str, Found], *, deep: bool) -> CacheReport:
    model, inventory = intention.workload.model, intention.inventory
    answered = {node: each for node, each in found.items() if not isinstance(each, NodeUnreachable)}
    addresses = {
        name: str(node.fabric.address) for name, node in nodes_of(inventory).items() if node.fabric.address != "auto"
    }
    judged = check_cache(model, answered, places_of(intention, addresses))
    upkeep = (finding for each in answered.values() if isinstance(each, Snapshot) for finding in check_upkeep(each))
    return CacheReport(
        pair=inventory.name,
        model=str(model.id or model.directory),
        revision=model.revision,
        complete=judged.complete and len(answered) == len(found),
        deep=deep,
        nodes={node: _node(judged.verdicts.get(node, "unreachable"), each) for node, each in found.items()},
        findings=(*judged.findings, *upkeep),
        unreachable=tuple(each for each in found.values() if isinstance(each, NodeUnreachable)),
    )


def _node(verdict: str, found: Found) -> NodeCache:
    if not isinstance(found, Snapshot):
        return NodeCache(verdict)
    hashed = found.hashed.at if found.hashed is not None and found.hashed.unchanged else None
    return NodeCache(
        verdict=verdict,
        folder=found.folder,
        revision=found.revision,
        shards=len(found.shards),
        bytes=found.bytes,
        faulty=tuple(file.name for file in found.files if file.problem is not None or file.corrupt),
        hashed_at=hashed,
    )
