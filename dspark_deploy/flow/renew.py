"""Go on with a node whose connection broke: open it anew, take its lock again, do the work once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.execute.lock import GuardedClock
from dspark_deploy.flow.pair import OpenHosts

T = TypeVar("T")
Renew = Callable[[str], None]
"""Opens a node anew, in its place among the open hosts. Raises NodeUnreachable, or LockLost: another run has it now."""


def never(node: str) -> None:
    """For hosts that can't be opened anew: the connection stays as it is, and the work fails as before."""
    del node


def renewal(hosts: OpenHosts, guarded: GuardedClock) -> Renew:
    """The way back to each of `hosts`, for a run that holds their locks by `guarded`."""

    def renew(node: str) -> None:
        hosts.renew(node)
        guarded.retake(hosts[node])

    return renew


def insist(work: Callable[[], T], renew: Renew) -> T:
    """Do `work`, which looks its hosts up; where a connection broke, once more on a new one. Raises what it raises."""
    try:
        return work()
    except NodeUnreachable as error:
        if error.node is None:
            raise
        renew(error.node)
        return work()
