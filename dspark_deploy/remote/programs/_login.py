"""The login that this user keeps for a registry, as `docker pull` would find it. It never leaves the node."""

from __future__ import annotations

import base64
import json
import os

from dspark_deploy.remote.programs._frame import find_on_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DOCKER_HUB = "https://index.docker.io/v1/"


def registry_of(reference: str) -> str:
    """The registry's key in docker's own configuration: a reference without a host is of Docker Hub."""
    first, slash, _ = reference.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first if is_host else DOCKER_HUB


def login_for(reference: str) -> str | None:
    """What the engine wants as X-Registry-Auth; None where nothing is kept for the registry."""
    registry = registry_of(reference)
    try:
        with open(os.path.expanduser("~/.docker/config.json"), encoding="utf-8") as file:
            config: dict[str, Any] = json.load(file)
        helper = (config.get("credHelpers") or {}).get(registry) or config.get("credsStore")
        found = _from_helper(helper, registry) if helper else _from_file(config, registry)
    except (OSError, ValueError, AttributeError, TypeError):
        return None
    if found is None:
        return None
    return base64.urlsafe_b64encode(json.dumps({**found, "serveraddress": registry}).encode()).decode()


def _from_file(config: dict[str, Any], registry: str) -> dict[str, str] | None:
    entry = (config.get("auths") or {}).get(registry) or {}
    if entry.get("identitytoken"):
        return {"identitytoken": entry["identitytoken"]}
    user, _, password = base64.b64decode(entry.get("auth") or "").decode().partition(":")
    return {"username": user, "password": password} if user else None


def _from_helper(helper: str, registry: str) -> dict[str, str] | None:
    """Ask docker-credential-HELPER, which takes the registry on its standard input."""
    program = find_on_path(f"docker-credential-{helper}")
    if program is None:
        return None
    asked, question = os.pipe()
    answer, told = os.pipe()
    wiring = [(os.POSIX_SPAWN_DUP2, asked, 0), (os.POSIX_SPAWN_DUP2, told, 1)]
    child = os.posix_spawn(program, [program, "get"], os.environ, file_actions=wiring)
    os.close(asked)
    os.close(told)
    os.write(question, registry.encode())
    os.close(question)
    with os.fdopen(answer, "rb") as output:
        said = output.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        return None
    found = json.loads(said)
    if found["Username"] == "<token>":
        return {"identitytoken": found["Secret"]}
    return {"username": found["Username"], "password": found["Secret"]}
