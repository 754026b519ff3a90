"""Stops that an earlier run could not confirm: they are made good before anything else is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dspark_deploy.execute.journal import note
from dspark_deploy.execute.ranks import stop_all
from dspark_deploy.flow.observer import Observer
from dspark_deploy.plan.journal import UNCONFIRMED
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host


def heed(marks: Collection[str], hosts: Mapping[str, Host], pair: str, observer: Observer, clock: Clock) -> bool:
    """Stop what the marks speak of, confirm it, take them away. Returns whether there were any.

    Raises StepFailed where a rank can't be stopped now either: then nothing goes on.
    """
    owed = [node for node in hosts if f"{UNCONFIRMED}{node}" in marks]
    for node in owed:
        observer.warn(f"{node}: an earlier run could not confirm that its rank was stopped: stopping it now")
        stop_all(hosts[node], pair)
    if owed:
        note(hosts, pair, clock, marks={f"{UNCONFIRMED}{node}": None for node in owed})
    return bool(owed)
