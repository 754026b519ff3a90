"""Read the folders of the user's own patches, as far as they go into this deployment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.errors import ConfigError
from dspark_deploy.inventory import Inventory
from dspark_deploy.patch import Patch
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.patches import Carried, PatchFile, applying, expect_whole
from dspark_deploy.plan.resolve import Workload
from dspark_deploy.strict import read_document

MOST_BYTES = 16 * 2**20  # of one folder: patches are text, and every release keeps its own copy
MOST_FILES = 1000
LEFT_OUT = frozenset({"__pycache__"})


def read_patches(inventory: Inventory, path: Path, workload: Workload, catalogue: Catalogue) -> tuple[Carried, ...]:
    """Those for the family that is served. `path` is the inventory's own.

    Raises ConfigError with file, line and key where a folder or a file is missing, or is nothing that could travel.
    """
    places = _Places(path, workload, catalogue)
    found = []
    for number, (origin, at, patch) in enumerate(applying(workload.family, workload.profile, inventory), 1):
        where = places.of(origin, at)
        carried = Carried(number, patch, where, dict(_content(patch, where)))
        expect_whole(carried)
        found.append(carried)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where each list of patches stands. Looked up when there is one: most files have none."""

    inventory: Path
    workload: Workload
    catalogue: Catalogue

    def of(self, origin: str, number: int) -> str:
        key = ("patches", number)
        if origin == "profile":
            place = self.workload.sources[f"patches[{number}]"]
        elif origin == "family":
            place = self.catalogue.search.read("family", self.workload.profile.family).where(key)
        else:
            place = read_document(self.inventory, absent="it was there a moment ago").where(key)
        return f"{place}: `patches[{number}]`"


def _content(patch: Patch, where: str) -> Iterator[tuple[str, PatchFile]]:
    folder = Path(patch.folder)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "is not there"
        raise ConfigError(f"{where}: `folder`: {folder} {what}", remedy="name the folder that holds the patches")
    total = 0
    try:
        paths = sorted(_walk(folder)) if patch.whole else [folder / name for name in patch.files]
        if len(paths) > MOST_FILES:
            raise _too_much(where, folder, f"more than {MOST_FILES} files")
        for path in paths:
            if path.is_file():
                total += path.stat().st_size
                if total > MOST_BYTES:
                    raise _too_much(where, folder, f"more than {MOST_BYTES >> 20} MiB")
                name = path.relative_to(folder).as_posix()
                yield name, PatchFile(_read(path, folder, where), executable=os.access(path, os.X_OK))
    except OSError as error:
        raise ConfigError(
            f"{where}: {error.filename} can't be read: {error.strerror}", remedy="make it readable for you"
        ) from error


def _walk(folder: Path) -> Iterator[Path]:
    """Every file below it but hidden ones and Python's caches: those are no part of a patch, and may be secret."""
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in LEFT_OUT:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def _read(path: Path, folder: Path, where: str) -> bytes:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{where}: {path} is a link that leads out of {folder}", remedy="put the file itself there")
    if not path.name.isprintable():
        raise ConfigError(f"{where}: {path!r} has an unprintable character in its name", remedy="give it another name")
    return path.read_bytes()


def _too_much(where: str, folder: Path, what: str) -> ConfigError:
    return ConfigError(
        f"{where}: `folder`: {folder} holds {what}",
        why="all of it would travel with every release",
        remedy="name a folder that holds the patches alone",
    )
