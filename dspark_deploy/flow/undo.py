"""After a start that failed: nothing of it stays, and what served before serves again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pydantic import SecretStr

from dspark_deploy.errors import DsparkError, Interrupted, LockLost, NotAsWanted
from dspark_deploy.execute.key import keep_key
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
    keys: Mapping[str, SecretStr | None] | None = None,
) -> str:
    """Stop both ranks, start the previous release again where one served. Returns what was done, for the error.

    `clock` is shielded: this is not interrupted. `mark` is told which nodes could not be cleaned, and why. A connection
    that broke is opened anew. `keys` are the API keys that this run replaced, by node: they are put back. Raises
    NotAsWanted where a node could not be cleaned or the previous release did not come back, LockLost where another run
    has the pair by now.
    """
    observer.warn("stopping what this run started")
    _stop_both(hosts, target.served.pair, mark, renew)
    _put_back(keys or {}, hosts, target.served.pair, renew)
    previous = target.previous
    if previous is None:
        return "what this run started is stopped on both nodes"
    observer.warn(f"bringing back release {previous.release} (profile {previous.served.profile})")
    stage = Stage(hosts, previous.served, observer, clock, limits, key=(keys or {}).get("head"))
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


def _put_back(keys: Mapping[str, SecretStr | None], hosts: Mapping[str, Host], pair: str, renew: Renew) -> None:
    for node, key in keys.items():
        try:
            insist(partial(_keep, hosts, node, pair, key), renew)
        except (LockLost, Interrupted):
            raise
        except DsparkError as error:
            raise NotAsWanted(
                f"the start failed, and the API key that was there could not be put back: {error.message}",
                why=error.why,
                remedy="run `dspark up` once that is mended: it gives the head its key again",
                node=error.node,
            ) from error


def _keep(hosts: Mapping[str, Host], node: str, pair: str, key: SecretStr | None) -> None:
    keep_key(hosts[node], pair, key)


def _stop(hosts: Mapping[str, Host], node: str, pair: str) -> None:
    stop_all(hosts[node], pair)
