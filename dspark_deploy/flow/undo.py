"""After a start that failed: nothing of it stays, and what served before serves again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dspark_deploy.errors import DsparkError, Interrupted, LockLost, NotAsWanted
from dspark_deploy.execute.ranks import stop_all
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.renew import Renew, insist
from dspark_deploy.flow.stage import Stage
from dspark_deploy.flow.target import Target
from dspark_deploy.flow.wish import Limits
from dspark_deploy.plan.launch import HEAD_FIRST, plan_return
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host


def undo(
    hosts: Mapping[str, Host],
    target: Target,
    limits: Limits,
    observer: Observer,
    clock: Clock,
    mark: Callable[[Mapping[str, str]], None],
    renew: Renew,
) -> str:
    """Stop both ranks, start the previous release again where one served. Returns what was done, for the error.

    `clock` is shielded: this is not interrupted. `mark` is told which nodes could not be cleaned, and why. A connection
    that broke is opened anew. Raises NotAsWanted where a node could not be cleaned or the previous release did not come
    back, LockLost where another run has the pair by now.
    """
    observer.warn("stopping what this run started")
    _stop_both(hosts, target.served.pair, mark, renew)
    previous = target.previous
    if previous is None:
        return "what this run started is stopped on both nodes"
    observer.warn(f"bringing back release {previous.release} (profile {previous.served.profile})")
    stage = Stage(hosts, previous.served, observer, clock, limits)
    try:
        stage.take(plan_return(previous.release, target.situation.utilization))
    except Interrupted:
        raise
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


def _stop_both(hosts: Mapping[str, Host], pair: str, mark: Callable[[Mapping[str, str]], None], renew: Renew) -> None:
    """Both are tried whatever happens to one; the head first, since the worker waits for it."""
    failed: dict[str, DsparkError] = {}
    for node in HEAD_FIRST:
        try:
            insist(partial(_stop, hosts, node, pair), renew)
        except (LockLost, Interrupted):
            raise  # somebody else has the pair now, or the user wants the end at once
        except DsparkError as error:
            failed[node] = error
    if failed:
        mark({node: error.message for node, error in failed.items()})
        first, *others = failed.values()
        raise NotAsWanted(
            f"the start failed, and not everything of it could be stopped: {first.message}",
            why="\n".join(error.message for error in others),
            remedy="run `dspark down` once the node answers again",
            node=first.node,
        )


def _stop(hosts: Mapping[str, Host], node: str, pair: str) -> None:
    stop_all(hosts[node], pair)
