"""Options that say what to serve, beyond the profile's name: of `up` and `plan`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from dspark_deploy.cli.options import Common

F = TypeVar("F", bound=Callable[..., Any])

WORKLOAD = (
    click.option("--family", help="Image family to run it on, instead of the profile's own (see `dspark families`)."),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one value of the profile. May be repeated.",
    ),
    click.option(
        "--skip",
        multiple=True,
        metavar="ID",
        help="Go on though this check fails (see `dspark doctor`). Recorded. May be repeated.",
    ),
    click.option("--online", is_flag=True, help="Start with incomplete caches: each node downloads the rest. Asks."),
)


def workload_options(command: F) -> F:
    """Give `command` these options; it receives one `wish` made of them and of the common options."""

    @functools.wraps(command)
    def gathered(*args: Any, common: Common, **given: Any) -> Any:
        family, overrides = given.pop("family"), given.pop("overrides")
        online, skip = given.pop("online"), given.pop("skip")
        wish = replace(common.wish(family=family, overrides=overrides), online=online, skip=skip)
        return command(*args, common=common, wish=wish, **given)

    decorated: Any = gathered
    for option in reversed(WORKLOAD):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # the decorators keep the callable's shape but not its type
