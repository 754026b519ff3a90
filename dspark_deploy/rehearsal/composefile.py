"""A compose file as compose 2.40 reads it, as far as the tool renders one: anything else is refused, never passed over.

The order is compose's own: parse, interpolate, hold against the schema, then make sense of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from dspark_deploy.rehearsal.envfile import BadEnvFile, read_env
from dspark_deploy.rehearsal.interpolation import BadInterpolation, interpolate
from dspark_deploy.rehearsal.root import Mount

_PROJECT = re.compile("[a-z0-9][a-z0-9_-]*")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PULL_POLICIES = "always|never|build|if_not_present|missing|refresh|daily|weekly|every_([0-9]+[wdhms])+"


class ComposeError(Exception):
    """What compose says, and ends with 1."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service, all of it resolved."""

    name: str
    image: str
    never_pulled: bool
    entrypoint: tuple[str, ...] | None  # None: the image's
    command: tuple[str, ...] | None
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    devices: tuple[str, ...]
    gpu: bool
    stop_grace_s: int | None
    labels: Mapping[str, str]
    host: Mapping[str, Any]  # HostConfig in the engine's own words
    hash: str  # over all of it


@dataclass(frozen=True, slots=True)
class Each:
    """A shape of the schema: a mapping with any keys, each value of one shape."""

    of: Any


# A type, a tuple of types of which one will do, a list of one shape, a mapping with these keys only, or Each.
_VOLUME = {"type": str, "source": str, "target": str, "read_only": bool, "bind": {"create_host_path": bool}}
_DEVICE = {"driver": str, "count": (str, int), "capabilities": [str]}
_SERVICE = {
    "image": str,
    "pull_policy": str,
    "entrypoint": [str],
    "command": [str],
    "env_file": [str],
    "network_mode": str,
    "ipc": str,
    "shm_size": (str, int),
    "ulimits": Each(int),
    "deploy": {"resources": {"reservations": {"devices": [_DEVICE]}}},
    "devices": [str],
    "cap_add": [str],
    "security_opt": [str],
    "restart": str,
    "stop_grace_period": str,
    "volumes": [_VOLUME],
    "labels": Each((str, int, bool)),
}
_FILE = {"name": str, "services": Each(_SERVICE)}
_WORDS = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "mapping"}


def check_project_name(name: str) -> None:
    """Raise ComposeError for a name that can't be one."""
    if not _PROJECT.fullmatch(name):
        raise ComposeError(
            f'invalid project name "{name}": must consist only of lowercase alphanumeric characters, hyphens, and '
            "underscores as well as start with a letter or number"
        )


def load_services(path: Path, environment: Mapping[str, str], warn: Callable[[str], None]) -> tuple[Service, ...]:
    """The file's services in order. Raises ComposeError."""
    document = _parse(path)
    variables = {**_dotenv(path.parent), **environment}
    document = _interpolated(document, variables, warn, "")
    for problem in _problems(document, _FILE, ""):
        raise ComposeError(f"validating {path}: {problem}")
    return tuple(_service(name, found, path.parent, environment) for name, found in document["services"].items())


def _parse(path: Path) -> dict[str, Any]:
    try:
        document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ComposeError(f"open {path}: no such file or directory") from error
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ComposeError(f"failed to parse {path}: yaml: line {line}: {error.problem}") from error
    except ValueError as error:
        raise ComposeError(f"failed to parse {path}: yaml: {error}") from error
    if document is None:
        raise ComposeError("empty compose file")
    if not isinstance(document, dict):
        raise ComposeError("top-level object must be a mapping")
    document.setdefault("services", {})
    return document


def _dotenv(directory: Path) -> dict[str, str]:
    """The file `.env` beside the compose file, which compose reads for itself."""
    if not (directory / ".env").is_file():
        return {}
    return {name: value for name, value in _env_file(directory / ".env", {}).items() if value is not None}


def _env_file(path: Path, environment: Mapping[str, str]) -> dict[str, str | None]:
    try:
        return read_env(path.read_text(encoding="utf-8"), environment)
    except FileNotFoundError as error:
        raise ComposeError(f"env file {path} not found: stat {path}: no such file or directory") from error
    except (BadEnvFile, BadInterpolation) as error:
        raise ComposeError(f"failed to read {path}: {error}") from error


def _interpolated(value: Any, variables: Mapping[str, str], warn: Callable[[str], None], at: str) -> Any:
    if isinstance(value, dict):
        return {key: _interpolated(each, variables, warn, f"{at}.{key}".lstrip(".")) for key, each in value.items()}
    if isinstance(value, list):
        return [_interpolated(each, variables, warn, f"{at}.[]") for each in value]
    if not isinstance(value, str):
        return value
    try:
        return interpolate(value, variables, lambda name: warn(_unset(name)))
    except BadInterpolation as error:
        raise ComposeError(f"invalid interpolation format for {at}.\n{error}") from error


def _unset(name: str) -> str:
    return f'The \\"{name}\\" variable is not set. Defaulting to a blank string.'


def _problems(value: Any, shape: Any, at: str) -> Iterator[str]:
    """What the schema says against a value."""
    if isinstance(shape, Each):
        wanted: Any = dict
    else:
        wanted = shape if isinstance(shape, type | tuple) else type(shape)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in _types(wanted)):
        yield f"{at} must be a {' or '.join(_WORDS[each] for each in _types(wanted))}"
    elif isinstance(shape, Each):
        for key, item in value.items():
            yield from _problems(item, shape.of, f"{at}.{key}".lstrip("."))
    elif isinstance(shape, dict):
        for key, item in value.items():
            if key not in shape:
                yield f"{at} additional properties '{key}' not allowed"
            else:
                yield from _problems(item, shape[key], f"{at}.{key}".lstrip("."))
    elif isinstance(shape, list):
        for number, item in enumerate(value):
            yield from _problems(item, shape[0], f"{at}.{number}")


def _types(wanted: Any) -> tuple[type, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def _service(name: str, found: Mapping[str, Any], directory: Path, environment: Mapping[str, str]) -> Service:
    if "image" not in found:
        raise ComposeError(
            f'service "{name}" has neither an image nor a build context specified: invalid compose project'
        )
    policy = found.get("pull_policy", "missing")
    if not re.fullmatch(_PULL_POLICIES, policy):
        raise ComposeError(f"services.{name}.pull_policy '{policy}' does not match pattern '{_PULL_POLICIES}'")
    if found.get("network_mode") != "host":
        raise ComposeError(f"service {name}: the rehearsal has no network but the node's own: network_mode host")
    resolved: dict[str, str | None] = {}
    for file in found.get("env_file", ()):
        resolved |= _env_file(directory / file, environment)
    # A name without a value is taken over from the environment, or left out.
    own = {key: environment.get(key) if value is None else value for key, value in resolved.items()}
    variables = {key: value for key, value in own.items() if value is not None}
    grace = found.get("stop_grace_period")
    return Service(
        name=name,
        image=found["image"],
        never_pulled=policy == "never",
        entrypoint=_words(found.get("entrypoint")),
        command=_words(found.get("command")),
        environment=variables,
        mounts=tuple(_mount(name, number, each, directory) for number, each in enumerate(found.get("volumes", ()))),
        devices=_devices(found),
        gpu=bool(_reserved(found)),
        stop_grace_s=None if grace is None else _seconds(name, grace),
        labels={key: _label(value) for key, value in found.get("labels", {}).items()},
        host=_host_config(found),
        hash=hashlib.sha256(json.dumps([found, variables], sort_keys=True).encode()).hexdigest(),
    )


def _words(value: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _label(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mount(service: str, number: int, volume: Mapping[str, Any], directory: Path) -> Mount:
    if "target" not in volume:
        raise ComposeError(f"service volume services.{service}.volumes.[{number}] is missing a mount target")
    if volume.get("type") != "bind" or volume.get("bind", {}).get("create_host_path", True):
        raise ComposeError(f"service {service}: the rehearsal mounts what is there: type bind, create_host_path: false")
    return Mount(directory / volume["source"], volume["target"], volume.get("read_only", False))


def _devices(found: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(each.partition(":")[0] for each in found.get("devices", ()))


def _reserved(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    devices: list[Mapping[str, Any]] = (
        found.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
    )
    return [each for each in devices if "gpu" in each.get("capabilities", ())]


def _seconds(service: str, text: str) -> int:
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+", text):
        raise ComposeError(f"'services[{service}].stop_grace_period' time: invalid duration \"{text}\"")
    return int(sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(h|ms|m|s)", text)))


def _host_config(found: Mapping[str, Any]) -> dict[str, Any]:
    """Kept and shown, carried out by no rehearsal."""
    return {
        "NetworkMode": found["network_mode"],
        "IpcMode": found.get("ipc", "private"),
        "ShmSize": found.get("shm_size", 0),
        "RestartPolicy": {"Name": found.get("restart", "no"), "MaximumRetryCount": 0},
        "Devices": [
            {"PathOnHost": each, "PathInContainer": each, "CgroupPermissions": "rwm"} for each in _devices(found)
        ],
        "CapAdd": found.get("cap_add"),
        "SecurityOpt": found.get("security_opt"),
        "Ulimits": [
            {"Name": name, "Soft": value, "Hard": value} for name, value in sorted(found.get("ulimits", {}).items())
        ],
        "DeviceRequests": [
            {"Driver": each.get("driver", ""), "Count": -1, "Capabilities": [each["capabilities"]]}
            for each in _reserved(found)
        ],
    }
