"""`switch`: what serves now, on another image family."""

from __future__ import annotations

from dataclasses import replace

from dspark_deploy.errors import NotAsWanted
from dspark_deploy.facts import labels
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.status import read_status
from dspark_deploy.flow.untouched import untouched
from dspark_deploy.flow.up import PlanReport, bring_up, intend_up
from dspark_deploy.flow.wish import Confirm, Limits, Wish
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.gather import look


def switch_family(
    wish: Wish, family: str, limits: Limits, observer: Observer, clock: Clock, confirm: Confirm
) -> PairReport:
    """Serve the serving profile on `family`; the target is checked while the old one serves.

    Already on it: nothing is changed. Raises NotAsWanted where nothing serves, and what `bring_up` raises.
    """
    serving = _serving_on(wish, family, clock)
    if serving is None:
        return read_status(wish, clock)
    return bring_up(serving, limits, observer, clock, confirm, command="switch")


def intend_switch(wish: Wish, family: str, clock: Clock) -> PlanReport | None:
    """The steps that it would take; None where the pair is on that family already."""
    serving = _serving_on(wish, family, clock)
    return None if serving is None else intend_up(serving, clock)


@untouched()
def _serving_on(wish: Wish, family: str, clock: Clock) -> Wish | None:
    """The wish for the serving profile on `family`; None where it serves on it. Raises ConfigError, NotAsWanted."""
    name = catalogue_of(wish).family(family).name
    inventory = load_inventory_of(wish)
    with open_pair(inventory, wish, clock) as hosts:
        situation = look(hosts, inventory.name, clock)
    head = situation.alive("head")
    if situation.release is None or head is None:
        raise NotAsWanted(
            f"{inventory.name} serves nothing whole that could be switched",
            remedy=f"`dspark up --family {name}` starts the profile on it",
        )
    if head.labels.get(labels.FAMILY) == name:
        return None
    return replace(wish, profile=wish.profile or head.labels.get(labels.PROFILE), family=name)
