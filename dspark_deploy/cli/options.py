"""Options that every command takes, before its name or after it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dspark_deploy.flow.wish import Wish

F = TypeVar("F", bound=Callable[..., Any])

COMMON = (
    click.option(
        "-i",
        "--inventory",
        type=click.Path(path_type=Path),
        help="Inventory file. Default: DSPARK_INVENTORY, else inventory.yaml.",
    ),
    click.option(
        "-p",
        "--profile",
        help="Profile to serve: a name (see `dspark profiles`) or a file. Default: the inventory's.",
    ),
    click.option("--ssh-config", type=click.Path(path_type=Path), help="Another ssh_config than yours."),
    click.option(
        "--accept-new-host-keys",
        is_flag=True,
        help="Accept and keep the key of a host seen for the first time.",
    ),
    click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        envvar="DSPARK_OUTPUT",
        help="How the result is printed. Default: text.",
    ),
    click.option("-v", "--verbose", count=True, help="Say more on standard error."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors."),
)


@dataclass(frozen=True, slots=True)
class Common:
    """The common options as given. None and zero: not given here."""

    inventory: Path | None = None
    profile: str | None = None
    ssh_config: Path | None = None
    accept_new_host_keys: bool = False
    output: str | None = None
    verbose: int = 0
    quiet: bool = False

    def over(self, before: Common) -> Common:
        """These options where given, else those that stood before the command's name."""
        return Common(
            inventory=self.inventory or before.inventory,
            profile=self.profile or before.profile,
            ssh_config=self.ssh_config or before.ssh_config,
            accept_new_host_keys=self.accept_new_host_keys or before.accept_new_host_keys,
            output=self.output or before.output,
            verbose=max(self.verbose, before.verbose),
            quiet=self.quiet or before.quiet,
        )

    @property
    def json(self) -> bool:
        """Whether the result is printed as JSON."""
        return self.output == "json"

    def wish(self, *, family: str | None = None, overrides: tuple[str, ...] = ()) -> Wish:
        """What flows are given."""
        from dspark_deploy.flow.wish import Wish

        return Wish(
            inventory=self.inventory,
            profile=self.profile,
            family=family,
            overrides=overrides,
            ssh_config=self.ssh_config,
            accept_new_host_keys=self.accept_new_host_keys,
            environment=dict(os.environ),
            directory=Path.cwd(),
            home=Path.home(),
        )


def common_options(command: F) -> F:
    """Give `command` the common options; it receives them as one `common` argument."""

    @functools.wraps(command)
    def gathered(*args: Any, **given: Any) -> Any:
        here = Common(**{name: given.pop(name) for name in Common.__dataclass_fields__})
        context = click.get_current_context()
        before = context.obj if isinstance(context.obj, Common) else Common()
        return command(*args, common=here.over(before), **given)

    decorated: Any = gathered
    for option in reversed(COMMON):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # the decorators keep the callable's shape but not its type


def change_options(command: F) -> F:
    """Options of commands that change something."""
    decorated: Any = command
    decorated = click.option("-y", "--yes", is_flag=True, help="Answer yes to the question, if one is asked.")(
        decorated
    )
    return click.option("-n", "--dry-run", is_flag=True, help="Show the steps and take none.")(decorated)  # type: ignore[no-any-return]  # see above
