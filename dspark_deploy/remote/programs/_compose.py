"""The version of the node's compose plugin."""

from __future__ import annotations

import json
import os

from dspark_deploy.remote.programs._command import Command
from dspark_deploy.remote.programs._frame import find_on_path

LIMIT_S = 5.0


def compose_version(root: str) -> Command:
    """The compose plugin, asked for its version.

    The plugin itself is asked, where docker would find it (docker/cli, cli-plugins/manager): by way of docker it takes
    three times as long. Where it is not found, docker says in its own words that it has none, or has it elsewhere.
    """
    folders = [os.path.expanduser("~/.docker/cli-plugins")]
    folders += [f"{root}/usr/{place}/docker/cli-plugins" for place in ("local/lib", "local/libexec", "lib", "libexec")]
    for folder in folders:
        if os.access(f"{folder}/docker-compose", os.X_OK):
            return Command((f"{folder}/docker-compose", "docker-cli-plugin-metadata"))
    docker = find_on_path("docker")
    return Command(docker and (docker, "compose", "version", "--short"))


def version_in(compose: Command) -> tuple[str | None, str]:
    """The version, or None with what was said instead."""
    if compose.argv is None:
        return None, "docker: not found"
    try:
        code, said = compose.read(LIMIT_S)
    except TimeoutError as error:
        return None, str(error)
    lines = said.splitlines() or ["docker compose said nothing"]
    version = _metadata(said) if said.startswith("{") else lines[-1]
    number = version.lstrip("v")
    return (number, said) if code == 0 and number[:1].isdigit() else (None, lines[0])


def _metadata(text: str) -> str:
    """Of what every plugin says of itself."""
    try:
        return str(json.loads(text)["Version"])
    except (ValueError, KeyError, TypeError):
        return ""
