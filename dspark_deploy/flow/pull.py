"""`pull`: the image on both nodes at once, and proof that it is the same one. `up` never pulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dspark_deploy.checks import docker, image, mounts
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.finding import Finding, failures, refuse
from dspark_deploy.errors import ConfigError, DsparkError, NodeUnreachable
from dspark_deploy.facts.pull import Cause, PullEnd, PullProgress
from dspark_deploy.flow.intention import Intention, load_intention
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.resolve import Workload
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt
from dspark_deploy.watch.gather import gather
from dspark_deploy.watch.pull import follow_pull

BEFORE = frozenset({"docker-access", "disk-free"})
AFTER = frozenset(check.id for check in image.CHECKS)
Tell = Callable[[str, PullProgress], None]

_REMEDIES: Mapping[Cause, str] = {
    "denied": "see that the name is right and public, or on {node}: docker login {registry}",
    "not-found": "see that the registry has that tag or digest, or choose another: --set image=NAME:TAG",
    "rate-limit": "wait until the registry's limit is over, or log in on {node}: docker login {registry}",
    "clock": "set the clock on {node}: sudo timedatectl set-ntp true",
    "certificate": "on {node}: see that its CA certificates are right and that no proxy stands before {registry}",
    "disk-full": "free space on {node}: docker system df, docker image prune",
    "no-route": "see to the route, DNS and proxy of {node}: curl -sI https://{registry}/v2/ there has to answer",
    "stalled": "run dspark pull again: layers that came whole are kept; --stall waits longer",
    "no-docker": "on {node}: docker version",
    "other": "on {node}: docker pull {image}",
}
_LOGIN_REFUSED = "on {node}: docker logout {registry}, or docker login anew: the login that is kept there was refused"


@dataclass(frozen=True, slots=True)
class NodePull:
    """What came of it on one node. `problem` is empty where the image is there under its tag."""

    bytes: int = 0  # that came over the network
    seconds: float = 0.0
    changed: bool = False  # the tag names another image than before
    image_id: str | None = None
    digests: tuple[str, ...] = ()
    problem: str = ""
    cause: Cause | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class PullReport:
    """Both nodes. `findings` are what the image checks say now."""

    pair: str
    image: str
    digest: str | None
    nodes: Mapping[str, NodePull]
    findings: tuple[Finding, ...]

    @property
    def complete(self) -> bool:
        """Whether both nodes have it."""
        return not any(node.problem for node in self.nodes.values())

    @property
    def same(self) -> bool:
        """Whether both nodes have it, and the same."""
        return self.complete and not failures(self.findings)


@dataclass(frozen=True, slots=True)
class PullPlan:
    """What `pull` would do."""

    pair: str
    image: str
    digest: str | None
    holds: Mapping[str, str]  # node -> the image that it holds under the tag now, or nothing


def intend_pull(wish: Wish, clock: Clock) -> PullPlan:
    """What `pull_image` would pull, and nothing pulled."""
    intention = _intention(wish)
    with open_pair(intention.inventory, wish, clock) as hosts:
        case = _case(intention, hosts, clock)
    held = {node: image.named(found) for node, _, found, _ in case.served()}
    holds = {node: held.get(node, "nothing") for node in case.facts}
    return PullPlan(case.pair, intention.workload.image, intention.workload.digest, holds)


def pull_image(wish: Wish, clock: Clock, tell: Tell, *, stall_s: float) -> PullReport:
    """Pull the family's image on both nodes at once. `tell` gets each node's progress, from that node's own thread.

    Raises ConfigError for an image that is in no registry, CheckRefused where a node can't take one.
    """
    intention = _intention(wish)
    with open_pair(intention.inventory, wish, clock) as hosts:
        before = _case(intention, hosts, clock)
        refuse(_judged(before, BEFORE))
        pulls = {node: _Pull(host, intention.workload, stall_s, tell, clock) for node, host in hosts.items()}
        ends = attempt({node: pull.run for node, pull in pulls.items()}, clock)
        after = _case(intention, hosts, clock)
    nodes = {node: _told(node, pulls[node], end, before, after) for node, end in ends.items()}
    findings = _judged(after, AFTER)
    return PullReport(after.pair, intention.workload.image, intention.workload.digest, nodes, findings)


class _Pull:
    """One node's pull: what is asked, and how far it came."""

    def __init__(self, host: Host, workload: Workload, stall_s: float, tell: Tell, clock: Clock) -> None:
        self._host = host
        self._tell = tell
        self._clock = clock
        self._request = {
            "reference": workload.image,
            "digest": workload.digest,
            "or_tag": not _is_pinned(workload),
            "stall_s": stall_s,
        }
        self.last = PullProgress()
        self.seconds = 0.0

    def run(self) -> PullEnd:
        """Raises StepFailed or NodeUnreachable."""
        began = self._clock.now()
        try:
            return follow_pull(self._host, self._request, self._keep)
        finally:
            self.seconds = self._clock.now() - began

    def _keep(self, node: str, progress: PullProgress) -> None:
        self.last = progress
        self._tell(node, progress)


def _intention(wish: Wish) -> Intention:
    intention = load_intention(wish)
    first, slash, _ = intention.workload.image.partition("/")
    if not slash:
        raise ConfigError(
            f"image {first} is in no registry: it is built on a node, and can't be pulled",
            remedy=f"build it once and copy it: docker save {first} | ssh OTHER-NODE docker load",
        )
    return intention


def _is_pinned(workload: Workload) -> bool:
    """Whether the user said the digest; else it is the family's, which is only what was published."""
    return "@" in (workload.profile.image or "")


def _case(intention: Intention, hosts: Mapping[str, Host], clock: Clock) -> Case:
    facts = gather(hosts, intention.inventory.name, clock, images=intention.images, paths=intention.paths)
    return Case(intention.inventory, facts, intention.catalogue, intention.workload)


def _judged(case: Case, ids: frozenset[str]) -> tuple[Finding, ...]:
    every = (*docker.CHECKS, *mounts.CHECKS, *image.CHECKS)
    return tuple(finding for check in every if check.id in ids for finding in check.findings(case))


def _told(node: str, pull: _Pull, end: PullEnd | BaseException, before: Case, after: Case) -> NodePull:
    if isinstance(end, NodeUnreachable) or not isinstance(end, PullEnd | DsparkError):
        raise end
    ids = [_id_on(node, case) for case in (before, after)]
    digests = next((held.digests for name, _, held, _ in after.served() if name == node), ())
    told = partial(NodePull, pull.last.done_bytes, round(pull.seconds, 1), ids[0] != ids[1], ids[1], digests)
    if isinstance(end, DsparkError):
        return told(problem=end.message, cause="other", remedy=end.remedy)
    if end.cause is None:
        return told()
    workload = after.workload
    reference = workload.image if workload else ""
    words = _LOGIN_REFUSED if end.cause == "denied" and end.stored_login else _REMEDIES[end.cause]
    remedy = words.format(node=node, registry=reference.partition("/")[0], image=reference)
    return told(problem=end.failed, cause=end.cause, remedy=remedy)


def _id_on(node: str, case: Case) -> str | None:
    return next((held.id for name, _, held, _ in case.served() if name == node), None)
