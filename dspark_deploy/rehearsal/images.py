"""The images of the pair: a folder of files each, and what the engine tells of it.

An image holds the stand-in engine, vLLM's package tree as far as a container's preparation looks into it, and the
family's interpreter and executable at the family's own places. There is no base system below: what a container takes
from `/bin` and the interpreter itself are this machine's.
"""

from __future__ import annotations

import compileall
import hashlib
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from dspark_deploy.facts.architecture import of_images
from dspark_deploy.rehearsal.spec import ImageSpec
from dspark_deploy.rehearsal.standin import package_tree

CREATED = "2026-07-14T00:00:00Z"
STANDIN_PACKAGE = "dspark_deploy.rehearsal.standin"
STANDIN = "opt/standin"  # in an image
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """One image. `tree` holds its files as they lie below a container's root."""

    id: str
    family: str
    tree: Path
    config: Mapping[str, Any]  # the engine's own names: Env, Entrypoint, WorkingDir
    digests: tuple[str, ...]

    def document(self, tags: Iterable[str]) -> dict[str, Any]:
        """What `GET /images/NAME/json` answers."""
        return {
            "Id": self.id,
            "RepoTags": sorted(tags),
            "RepoDigests": list(self.digests),
            "Created": CREATED,
            "Architecture": architecture(),
            "Os": "linux",
            "Config": dict(self.config),
            "RootFS": {"Type": "layers", "Layers": [f"sha256:{_digest('base')}", f"sha256:{_digest(self.id)}"]},
        }


class ImageStore:
    """The images of one node, by their references."""

    def __init__(self, images: Mapping[str, Image]) -> None:
        self._by_reference = dict(images)

    def find(self, reference: str) -> Image | None:
        """By a reference or by an id."""
        if reference in self._by_reference:
            return self._by_reference[reference]
        return next((image for image in self._by_reference.values() if reference in {image.id, *image.digests}), None)

    def tags_of(self, image: Image) -> list[str]:
        """Every reference that names the image."""
        return [reference for reference, each in self._by_reference.items() if each is image]

    def all(self) -> list[Image]:
        """Each image once."""
        return list({image.id: image for image in self._by_reference.values()}.values())

    def tag(self, image: Image, reference: str) -> None:
        """Let `reference` name the image, whatever it named before."""
        self._by_reference[reference] = image

    def untag(self, reference: str) -> None:
        """Take a reference away. KeyError where there is none."""
        del self._by_reference[reference]


def architecture() -> str:
    """This machine's, in the engine's words: images and nodes have to agree."""
    return of_images(platform.machine())


def build_images(specs: Iterable[ImageSpec], folder: Path) -> dict[str, Image]:
    """Write every image below `folder`. Returns reference -> image."""
    standin = folder / "standin"
    shutil.copytree(str(resources.files(STANDIN_PACKAGE)), standin)
    compileall.compile_dir(standin, quiet=2)  # at once, not in the middle of the first boot
    found: dict[str, Image] = {}
    for spec in specs:
        found |= dict.fromkeys(spec.tags, _build(spec, folder / spec.family, standin))
    return found


def _build(spec: ImageSpec, tree: Path, standin: Path) -> Image:
    shutil.copytree(standin, tree / STANDIN)
    _write(tree / STANDIN / "family", f"{spec.family}\n")
    for name, text in package_tree.files(spec.family).items():
        _write(tree / spec.packages[1:] / name, text)
    _write(tree / "workspace/.keep", "")
    python = shlex.quote(sys.executable)
    _write_program(tree / spec.python[1:], python)
    top = "/".join([".."] * (spec.executable.count("/") - 1))  # from the executable's folder, in whatever container
    _write_program(tree / spec.executable[1:], f'{python} -I -S "${{0%/*}}/{top}/{STANDIN}/vllm.py"')
    config = {
        "Env": [f"PATH={PATH}", *(f"{name}=rehearsal" for name in spec.baked_in)],
        "Entrypoint": [spec.executable, "serve"],
        "Cmd": None,
        "WorkingDir": "/workspace",
        "User": "",
        "Labels": {"dspark.rehearsal": "a stand-in: no model runs here"},
    }
    return Image(f"sha256:{_digest(repr(spec))}", spec.family, tree, config, spec.digests)


def _write_program(path: Path, command: str) -> None:
    """A program that is another one of this machine: through a link some interpreters would not find their library."""
    _write(path, f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
