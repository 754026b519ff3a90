"""Which commands there are, in the order in which `--help` shows them. A new command is one entry here."""

from __future__ import annotations

from dspark_deploy.cli.down import down
from dspark_deploy.cli.families import families
from dspark_deploy.cli.group import register
from dspark_deploy.cli.logs import logs
from dspark_deploy.cli.profiles import profiles
from dspark_deploy.cli.render import render
from dspark_deploy.cli.status import status
from dspark_deploy.cli.up import up


def register_all() -> None:
    """Add every command to the group."""
    register(up, status, logs, down, render, profiles, families)
