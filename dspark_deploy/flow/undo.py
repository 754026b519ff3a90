"""After a start that failed: nothing of it stays, and what served before serves again."""

from __future__ import annotations

from collections.abc import Mapping

from dspark_deploy.errors import DsparkError, NotAsWanted
from dspark_deploy.execute.ranks import stop_all
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.preparation import Prepared
from dspark_deploy.flow.stage import Stage
from dspark_deploy.flow.wish import Limits
from dspark_deploy.plan.launch import HEAD_FIRST, plan_start
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host


def undo(hosts: Mapping[str, Host], prepared: Prepared, limits: Limits, observer: Observer, clock: Clock) -> str:
    """Stop both ranks, start the previous release again where one served. Returns what was done, for the error.

    `clock` is shielded: this is not interrupted. Raises NotAsWanted where a node could not be cleaned or the
    previous release did not come back.
    """
    observer.warn("the start failed: stopping what it started")
    _stop_both(hosts, prepared.served.pair)
    previous = prepared.previous
    if previous is None:
        return "what this run started is stopped on both nodes"
    observer.warn(f"bringing back release {previous.release} (profile {previous.served.profile})")
    stage = Stage(hosts, previous.served, observer, clock, limits)
    try:
        stage.take(plan_start(previous.release))
    except DsparkError as error:
        raise NotAsWanted(
            f"the start failed, and release {previous.release} could not be brought back: {error.message}",
            why=error.why,
            remedy=f"mend that, then run `dspark up --profile {previous.served.profile}`",
            node=error.node,
        ) from error
    finally:
        stage.close()
    return f"release {previous.release} (profile {previous.served.profile}) serves again"


def _stop_both(hosts: Mapping[str, Host], pair: str) -> None:
    """Both are tried whatever happens to one; the head first, since the worker waits for it."""
    failed: list[DsparkError] = []
    for node in HEAD_FIRST:
        try:
            stop_all(hosts[node], pair)
        except DsparkError as error:
            failed.append(error)
    if failed:
        raise NotAsWanted(
            f"the start failed, and not everything of it could be stopped: {failed[0].message}",
            why="\n".join(error.message for error in failed[1:]),
            remedy="run `dspark down` once the node answers again",
            node=failed[0].node,
        )
