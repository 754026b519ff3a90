"""`docker compose` as far as the tool uses it: `-p NAME -f FILE up -d --no-build`, and `config -q`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from dspark_deploy.rehearsal.composefile import ComposeError, Service, check_project_name, load_services
from dspark_deploy.rehearsal.containers import Container, ContainerConfig
from dspark_deploy.rehearsal.engine import Engine, EngineError

_LABEL = "com.docker.compose"


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command ended."""

    code: int
    stdout: str
    stderr: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ComposeError(f"{message}: the rehearsal's compose knows up -d --no-build, and config -q")


def run_compose(engine: Engine, argv: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Ended:
    """Run one command line, the words after `docker compose`, in `directory`."""
    said: list[str] = []
    try:
        asked = _parser().parse_args(argv)
        check_project_name(asked.project)
        path = directory / asked.file
        services = load_services(path, environment, lambda text: said.append(_warning(text)))
        if asked.command == "up":
            for service in services:
                _Up(engine, asked.project, path, said).bring(service)
    except (ComposeError, EngineError) as error:
        said.append(f"Error response from daemon: {error}" if isinstance(error, EngineError) else str(error))
        return Ended(1, "", _lines(said))
    return Ended(0, "", _lines(said))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="docker compose", add_help=False, allow_abbrev=False)
    parser.add_argument("-p", "--project-name", dest="project", required=True)
    parser.add_argument("-f", "--file", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", add_help=False, allow_abbrev=False)
    up.add_argument("-d", "--detach", action="store_true", required=True)
    up.add_argument("--no-build", action="store_true")
    config = commands.add_parser("config", add_help=False, allow_abbrev=False)
    config.add_argument("-q", "--quiet", action="store_true", required=True)
    return parser


def _warning(text: str) -> str:
    return f'time="{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" level=warning msg="{text}"'


def _lines(said: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in said)


class _Up:
    """Bring a service's one container to what the file says."""

    def __init__(self, engine: Engine, project: str, path: Path, said: list[str]) -> None:
        self._engine = engine
        self._project = project
        self._path = path
        self._said = said

    def bring(self, service: Service) -> None:
        """Leave it, start it, create it, or create it anew. Raises ComposeError or EngineError."""
        image = self._engine.images.find(service.image)
        if image is None and not service.never_pulled:
            raise ComposeError(f"{service.image}: the rehearsal reaches no registry to pull it from")
        marks = {f"{_LABEL}.project": self._project, f"{_LABEL}.service": service.name}
        there = next(iter(self._engine.containers(marks)), None)
        config = self._config(service)
        if there is not None and self._differs(there, config):
            self._say(there, "Recreate")
            self._engine.stop(there, None)
            self._engine.remove(there, force=True)
            there = None
        if there is not None and there.running:
            self._say(there, "Running")
            return
        container = there or self._engine.create(config)
        self._say(container, "Created")
        self._engine.start(container)
        self._say(container, "Started")

    def _differs(self, container: Container, config: ContainerConfig) -> bool:
        image = self._engine.images.find(config.reference)
        mark = f"{_LABEL}.config-hash"
        return container.config.labels[mark] != config.labels[mark] or (image is not None and image != container.image)

    def _config(self, service: Service) -> ContainerConfig:
        image = self._engine.images.find(service.image)
        own = image.config if image else {}
        # As the engine has it: another entrypoint clears the image's command.
        command = service.command if service.command is not None or service.entrypoint else own.get("Cmd")
        entrypoint = service.entrypoint if service.entrypoint is not None else own.get("Entrypoint")
        return ContainerConfig(
            name=f"{self._project}-{service.name}-1",
            reference=service.image,
            labels={**service.labels, **self._labels(service)},
            entrypoint=tuple(entrypoint or ()),
            command=tuple(command or ()),
            environment=service.environment,
            mounts=service.mounts,
            devices=service.devices,
            gpu=service.gpu,
            stop_grace_s=service.stop_grace_s,
            host=service.host,
        )

    def _labels(self, service: Service) -> dict[str, str]:
        return {
            f"{_LABEL}.project": self._project,
            f"{_LABEL}.service": service.name,
            f"{_LABEL}.container-number": "1",
            f"{_LABEL}.oneoff": "False",
            f"{_LABEL}.config-hash": service.hash,
            f"{_LABEL}.project.config_files": str(self._path),
            f"{_LABEL}.project.working_dir": str(self._path.parent),
        }

    def _say(self, container: Container, what: str) -> None:
        self._said.append(f" Container {container.config.name}  {what}")
