"""A container's root folder, and what stands in for a change of root.

No right to change into another root can be counted on, so the paths that name something in the container's are moved
below its folder where the container is told them, in its entrypoint, environment and mounted scripts, and back in what
it prints. Arguments are left as they are: the stand-in engine looks below DSPARK_STANDIN_ROOT by itself.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.rehearsal.images import Image

SCRIPT = ".sh"  # a mounted file that names paths of the container
MOVED = ".moved"  # where copies of scripts lie that name them as they are here


class CannotStart(Exception):
    """The engine's refusal, in its own words."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One bind mount. Both paths are absolute."""

    source: Path
    target: str
    read_only: bool = False


class Root:
    """A container's root folder: the image's files, and what is mounted over them. Raises CannotStart."""

    def __init__(self, folder: Path, image: Image, mounts: Sequence[Mount]) -> None:
        self.folder = folder
        shutil.copytree(image.tree, folder, symlinks=True)
        for mount in mounts:
            self._mount(mount)
        own = "|".join(re.escape(each.name) for each in folder.iterdir() if each.name != "dev")
        self._own_path = re.compile(rf"(?<![\w./-])(?=/(?:{own})(?:/|\b))")
        for mount in mounts:
            if mount.source.suffix == SCRIPT:
                self._rewrite(mount)

    def inside(self, text: str) -> str:
        """The text with each path that begins with a folder of this root moved below it; /dev and /bin stay."""
        return self._own_path.sub(lambda _: str(self.folder), text)

    def outside(self, text: str) -> str:
        """The text with paths as the container itself would know them."""
        return text.replace(f"{self.folder}/{MOVED}", "").replace(str(self.folder), "")

    def runnable(self, word: str) -> str:
        """A word of a command: the copy of a script that stands for it, else as `inside`."""
        moved = self.folder / MOVED / word.lstrip("/")
        return str(moved) if moved.is_file() else self.inside(word)

    def _mount(self, mount: Mount) -> None:
        target = self.folder / mount.target[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file() and mount.source.is_file():
            target.unlink()  # of this container's own copy of the image
        if target.exists():
            raise CannotStart(f"the rehearsal can't mount {mount.target} over what is there, or below another mount")
        target.symlink_to(mount.source)

    def _rewrite(self, mount: Mount) -> None:
        """Let a script name its paths as they are here: a copy is run in its place, with the same files beside it."""
        target, copy = self.folder / mount.target[1:], self.folder / MOVED / mount.target[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        for beside in target.parent.iterdir():
            if not (copy.parent / beside.name).exists():
                (copy.parent / beside.name).symlink_to(beside)
        copy.unlink()
        copy.write_text(self.inside(mount.source.read_text(encoding="utf-8")), encoding="utf-8")
        copy.chmod(mount.source.stat().st_mode)
