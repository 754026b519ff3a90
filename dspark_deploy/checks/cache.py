"""The model's snapshot on both nodes: there, whole, as the container will see it, and the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dspark_deploy.checks.cache_faults import ENCODER, NO_ENCODER, ORDER, Verdict, faults_of, ref_faults
from dspark_deploy.checks.cache_same import check_same
from dspark_deploy.checks.cache_words import Naming, Where, listed, size_text
from dspark_deploy.checks.finding import CACHE, Finding
from dspark_deploy.facts.snapshot import Snapshot
from dspark_deploy.model import Model

ARCHITECTURE = "DeepseekV4ForCausalLM"
OTHER_MODEL = ("F25",)


@dataclass(frozen=True, slots=True)
class Unread:
    """A node whose cache could not be looked at."""

    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What both nodes' caches are, in a word each, and why."""

    verdicts: Mapping[str, Verdict]
    findings: tuple[Finding, ...]

    @property
    def complete(self) -> bool:
        """Complete and equal: nothing would ever be fetched."""
        return set(self.verdicts.values()) == {"complete"}


def check_cache(model: Model, found: Mapping[str, Snapshot | Unread], where: Mapping[str, Where]) -> Judged:
    """Judge each node's snapshot, then compare them where both are complete. `where` is by node, like `found`."""
    snapshots = {node: each for node, each in found.items() if isinstance(each, Snapshot)}
    naming = Naming(model, where)
    whole = {node: each for node, each in snapshots.items() if not faults_of(naming, each)}
    naming = replace(naming, whole=whole)
    verdicts: dict[str, Verdict] = {}
    findings: list[Finding] = []
    for node, each in found.items():
        if isinstance(each, Unread):
            verdicts[node] = "unknown"
            message = f"{node}: the cache could not be looked at: {each.why}"
            findings.append(Finding("cache", "fail", message, node, each.remedy))
            continue
        faults = faults_of(naming, each)
        verdicts[node] = min((fault.verdict for fault in faults), key=ORDER.index, default="complete")
        findings += [Finding("cache", "fail", each.message, node, each.remedy, each.failure_ids) for each in faults]
        findings += _good(naming, each) if not faults else ()
        findings += _doubts(naming, each)
    if len(whole) == len(naming.where) > 1:
        same = tuple(check_same(naming))
        findings += same
        if any(finding.status == "fail" for finding in same):
            verdicts = dict.fromkeys(verdicts, "nodes-differ")
    return Judged(verdicts, tuple(replace(each, group=CACHE) for each in findings))


def _good(naming: Naming, snapshot: Snapshot) -> Iterator[Finding]:
    node, setting = snapshot.node, naming.where[snapshot.node].setting
    held = f"{len(snapshot.shards)} shards, {size_text(snapshot.bytes)}"
    message = f"{node}: {naming.name} is complete: {held}, in {snapshot.folder} ({setting})"
    yield Finding("cache", "ok", message, node)
    if any(file.name == ENCODER for file in snapshot.files):
        yield Finding("cache-encoder", "ok", f"{node}: {ENCODER} is there and is Python", node)
    elif not naming.model.ships_encoder:
        message = f"{node}: no {ENCODER}; this model ships none, and the image's own is used"
        yield Finding("cache-encoder", "skip", message, node, failure_ids=(NO_ENCODER,))


def _doubts(naming: Naming, snapshot: Snapshot) -> Iterator[Finding]:
    """What looks wrong and stops nothing."""
    node, model = snapshot.node, naming.model
    if model.revision is not None and snapshot.revisions:
        for message, remedy, failure_ids in ref_faults(naming, snapshot):
            unused = "unused, since the revision is pinned"
            yield Finding("cache-ref", "warn", f"{node}: {message} ({unused})", node, remedy, failure_ids)
    for file in snapshot.files:
        if file.doubt:
            message = f"{node}: {file.name} {file.doubt} ({file.path})"
            yield Finding("cache-doubt", "warn", message, node, f"compare it with the hub: {naming.name}")
    if snapshot.architectures and ARCHITECTURE not in snapshot.architectures:
        message = f"{node}: config.json says {listed(snapshot.architectures)}, not {ARCHITECTURE}"
        yield Finding(
            "cache-model", "warn", message, node, "see that the profile names the model you mean", OTHER_MODEL
        )
    drafts = snapshot.draft_block_size
    if None not in {drafts, model.draft_block_size} and drafts != model.draft_block_size:
        message = f"{node}: config.json drafts {drafts} tokens at once, the model {model.name} {model.draft_block_size}"
        yield Finding(
            "cache-model", "warn", message, node, "see that the profile names the model you mean", OTHER_MODEL
        )
