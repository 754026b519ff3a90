"""`render`: both nodes' files on this machine, exactly as `up` would push them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.intention import Intention, load_intention
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.remote.clock import Clock
from dspark_deploy.render.release import Release
from dspark_deploy.render.render import render
from dspark_deploy.watch.gather import gather


@dataclass(frozen=True, slots=True)
class RenderReport:
    """What was written where."""

    release: str
    profile: str
    family: str
    files: tuple[str, ...]
    warnings: tuple[str, ...]


def render_files(wish: Wish, directory: Path, clock: Clock) -> RenderReport:
    """Write both halves below `directory`. Asks the nodes only for what the inventory leaves open."""
    intention = load_intention(wish)
    deployment = _resolve(intention, wish, clock)
    release = render(deployment)
    return RenderReport(
        release=release.id,
        profile=deployment.profile.name,
        family=deployment.family.name,
        files=_write(release, directory),
        warnings=(*intention.warnings, *deployment.warnings),
    )


def _resolve(intention: Intention, wish: Wish, clock: Clock) -> Deployment:
    if intention.complete:
        return intention.resolve(None)
    with open_pair(intention.inventory, wish, clock) as hosts:
        facts = gather(hosts, intention.inventory.name, clock, images=intention.images, paths=intention.paths)
    return intention.resolve(facts)


def _write(release: Release, directory: Path) -> tuple[str, ...]:
    written = []
    for node in HEAD_FIRST:
        for name, file in release.of(node).items():
            path = directory / node / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.data)
                path.chmod(file.mode)
            except OSError as error:
                raise ConfigError(
                    f"{path} can't be written: {error.strerror}", remedy="give another folder with --dir"
                ) from error
            written.append(str(path))
    return tuple(written)
