"""What `supervise` does about what it sees: a decision from one look, what it remembers, and its limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.plan.situation import Situation
from dspark_deploy.plan.supervised import Kind, Meant, Past

Verdict = Literal["generates", "quiet", "silent", "no-api", "other-api", "refuses"]


@dataclass(frozen=True, slots=True)
class Policy:
    """When it restarts, and when it no longer does. All in seconds but `limit`."""

    limit: int = 3  # restarts within `window_s`, and failed ones in a row
    window_s: float = 3600.0
    backoff_s: float = 30.0  # before the second restart, doubled before each further one
    longest_s: float = 900.0  # that the backoff grows to
    # Without a sign of life while something is asked: MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark, issue 141.
    wedge_s: float = 600.0
    refuse_s: float = 60.0  # in which every answer is an error: a server whose engine died ends by itself before
    stall_s: float = 900.0  # of a boot in which neither rank does anything
    quiet_s: float = 30.0  # without a sign of life before a busy pair is said to be in trouble
    canary_s: float = 300.0  # between two tokens that are asked of an idle pair

    def backoff(self, restarts: int) -> float:
        """How long to wait after so many restarts."""
        return min(self.backoff_s * 2.0 ** min(restarts - 1, 30), self.longest_s) if restarts else 0.0


@dataclass(frozen=True, slots=True)
class Sign:
    """What the head's API told, or did not. `busy`: requests run or wait there."""

    verdict: Verdict
    detail: str = ""
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at the pair."""

    now: float  # seconds, on the controller's own clock
    situation: Situation
    meant: Meant
    past: Past = field(default_factory=Past)
    silent: Mapping[str, str] = field(default_factory=dict)  # nodes that can't tell their containers -> why
    owed: tuple[str, ...] = ()  # nodes where an earlier run could not confirm a stop
    rebooted: tuple[str, ...] = ()  # nodes that were started anew since the pair last generated
    sign: Sign | None = None  # asked where both ranks run one release
    works: bool = False  # a rank has done something since the last look, by its log or its processes


@dataclass(frozen=True, slots=True)
class Watched:
    """What is remembered from look to look, in seconds on the same clock."""

    moved_at: float  # the last sign of life, or the beginning of these ranks
    trouble_at: float | None = None  # since when it does not generate
    silent_at: float | None = None  # since when a node can't tell its containers
    calm_until: float = 0.0  # no restart before
    generated: bool = False  # these ranks have generated something
    ranks: Mapping[str, str] = field(default_factory=dict)  # node -> which container, started when


@dataclass(frozen=True, slots=True)
class Serving:
    """It generates, or is idle and did when it was asked last."""

    detail: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now."""

    why: str


@dataclass(frozen=True, slots=True)
class Settle:
    """End what an earlier run could not confirm to have ended."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    """Stop what is left, head then worker, and start both, worker first."""

    kind: Kind
    why: str
    release: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Another restart would do no good."""

    why: str


Decision = Serving | Wait | Settle | Restart | GiveUp


def remember(watched: Watched, seen: Seen, policy: Policy) -> Watched:
    """What is known after this look."""
    if seen.silent:
        return replace(watched, silent_at=seen.now if watched.silent_at is None else watched.silent_at)
    heard = replace(watched, silent_at=None)
    if seen.meant.release is None:
        return Watched(seen.now, calm_until=watched.calm_until)
    ranks = {node: _which(rank) for node in HEAD_FIRST if (rank := seen.situation.alive(node)) is not None}
    if _lives(heard, seen, policy):
        return replace(heard, moved_at=_moved(heard, seen), trouble_at=None, generated=True, ranks=ranks)
    began = seen.now if watched.silent_at is None else watched.silent_at
    known = heard if watched.trouble_at is not None else replace(heard, trouble_at=began)
    started = any(watched.ranks.get(node) != which for node, which in ranks.items())
    if started and not (watched.generated and _alone(watched, ranks)):
        return replace(known, moved_at=seen.now, generated=False, ranks=ranks)
    boots = seen.sign is not None and seen.sign.verdict == "no-api" and seen.works
    return replace(known, moved_at=seen.now) if boots else known


def _lives(watched: Watched, seen: Seen, policy: Policy) -> bool:
    """It generates; or it did when it was asked last, and nobody asks now; or it has been quiet for a moment only."""
    sign = seen.sign
    if sign is None or sign.verdict == "generates":
        return sign is not None
    well = sign.verdict == "quiet" and watched.generated and watched.trouble_at is None
    return well and (not sign.busy or seen.now - watched.moved_at < min(policy.quiet_s, policy.wedge_s))


def _moved(watched: Watched, seen: Seen) -> float:
    """When it moved last: a pair that nobody asks has nothing to move."""
    return watched.moved_at if seen.sign is not None and seen.sign.busy and seen.sign.verdict == "quiet" else seen.now


def decide(watched: Watched, seen: Seen, policy: Policy) -> Decision:
    """What to do, `watched` being what is known after this look."""
    if seen.silent:
        return Wait("; ".join(seen.silent.values()))
    if seen.owed:
        return Settle(seen.owed)
    found = _judge(watched, seen, policy)
    if not isinstance(found, Restart):
        return found
    if enough := _enough(found, seen.past, policy):
        return GiveUp(enough)
    if seen.now < watched.calm_until:
        return Wait(f"{found.why}: the next restart comes after a pause of {_pause(seen.past, policy)}")
    return found


def _judge(watched: Watched, seen: Seen, policy: Policy) -> Serving | Wait | Restart:
    release, situation = seen.meant.release, seen.situation
    running = {node: rank for node in HEAD_FIRST if (rank := situation.alive(node)) is not None}
    if release is None:
        return Wait(f"nothing is meant to serve: {seen.meant.why}{_nevertheless(running)}")
    others = {node: rank for node, rank in running.items() if rank.labels.get(labels.RELEASE) != release}
    if others:
        what = " and ".join(f"{rank.labels.get(labels.RELEASE)} on the {node}" for node, rank in others.items())
        return Wait(f"release {what} runs, and {release} is meant to serve: `dspark up` or `dspark down` decides")
    if situation.release is None:
        return _lost(seen, release)
    return _alive(watched, seen, policy, release)


def _nevertheless(running: Mapping[str, Container]) -> str:
    return f"; what runs on {' and '.join(running)} is left alone" if running else ""


def _lost(seen: Seen, release: str) -> Restart:
    """At least one rank does not run."""
    gone = [node for node in HEAD_FIRST if seen.situation.alive(node) is None]
    dead = {node: next(iter(seen.situation.own.get(node, ())), None) for node in gone}
    why = "; ".join(_how(node, container, rebooted=node in seen.rebooted) for node, container in dead.items())
    if any(container is not None and container.oom_killed for container in dead.values()):
        return Restart("out-of-memory", why, release)
    if any(node in seen.rebooted for node in gone):
        return Restart("rebooted", why, release)
    return Restart("gone" if not any(dead.values()) else "died", why, release)


_MEANS: Mapping[int | None, str] = {255: ", as when its node or its docker daemon goes down"}


def _how(node: str, container: Container | None, *, rebooted: bool) -> str:
    again = f"the {node} was started anew, and " if rebooted else ""
    if container is None:
        return f"{again}the {node} has no rank"
    code = "" if container.exit_code is None else f" with exit code {container.exit_code}"
    why = ", killed for lack of memory" if container.oom_killed else _MEANS.get(container.exit_code, "")
    return f"{again}the rank on the {node} is {container.state}{code}{why}"


def _alive(watched: Watched, seen: Seen, policy: Policy, release: str) -> Serving | Wait | Restart:
    """Both ranks run what is meant to serve."""
    sign = seen.sign or Sign("no-api", "its API was not asked")
    if watched.trouble_at is None:
        return Serving(sign.detail)
    ranks = {node: _which(rank) for node in HEAD_FIRST if (rank := seen.situation.alive(node)) is not None}
    if alone := _alone(watched, ranks) if watched.generated else None:
        return Restart("alone", f"something started the rank on the {alone} anew and not the other one", release)
    still_s = seen.now - watched.moved_at
    kind, limit_s, what = _clock(sign, policy)
    if still_s >= limit_s:
        return Restart(kind, f"{sign.detail}: {what} for {still_s:.0f} s", release)
    return Wait(f"{sign.detail}: restarted after {limit_s:g} s in which {what}")


def _clock(sign: Sign, policy: Policy) -> tuple[Kind, float, str]:
    match sign.verdict:
        case "refuses":
            return "refuses", policy.refuse_s, "it only refuses"
        case "no-api" | "other-api":
            return "stalled", policy.stall_s, "neither rank does anything"
        case _:
            return "wedged", policy.wedge_s, "nothing moves"


def _enough(wanted: Restart, past: Past, policy: Policy) -> str:
    """Why no further restart is tried; empty where one is."""
    if past.failed >= policy.limit:
        return f"{past.failed} restarts in a row failed, the last one with: {past.last}"
    if past.restarts >= policy.limit:
        within = f"{past.restarts} restarts within {policy.window_s / 60:g} min"
        return f"{within} did not keep it serving, and now {wanted.why}"
    if wanted.kind == "out-of-memory" and past.out_of_memory:
        return f"a rank was killed for lack of memory again after a restart for just that: {wanted.why}"
    return ""


def _pause(past: Past, policy: Policy) -> str:
    return f"{policy.backoff(past.restarts):g} s"


def _alone(watched: Watched, ranks: Mapping[str, str]) -> str | None:
    """The node whose rank was started since the pair last generated, where the other's was not."""
    new = [node for node in HEAD_FIRST if ranks.get(node) != watched.ranks.get(node)]
    return new[0] if len(new) == 1 and len(ranks) == len(watched.ranks) == len(HEAD_FIRST) else None


def _which(rank: Container) -> str:
    return f"{rank.id} {rank.started_at}"
