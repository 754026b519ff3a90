"""Patches: what of the user's own changes an image before vLLM starts, each folder of it bound to one image.

A family, a profile and an inventory may name some; docs/patches.md tells how they travel and run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from dspark_deploy.strict import Data, Flag, FlagValue, Mistake, Name, Strict, Text, from_home

_PART = r"[^/.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*"
FilePath = Annotated[
    str, Field(pattern=rf"^{_PART}(/{_PART})*$", description="a path below the folder, without `..` and hidden names")
]
ProgramPath = Annotated[
    str,
    Field(pattern=rf"^({_PART}/)*{_PART}\.(py|sh)$", description="a .py or .sh file below the folder, without `..`"),
]
ImagePath = Annotated[str, Field(pattern=r"^(/[^/\x00-\x1f\x7f]+)+$", description="an absolute path in the image")]
BoundTo = Annotated[
    str, Field(pattern=r"^[^\x00-\x20-]\S*$", description="an image: name:tag, name:tag@sha256:…, or its id, sha256:…")
]
EntryPoint = Annotated[
    str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$", description="module:function, as entry points have it")
]


class Program(Strict):
    """One program. In a file its name alone will do, where nothing else is to be said of it: see `written_out`."""

    file: ProgramPath
    args: tuple[Text, ...] = ()
    required: bool = True  # false: where it fails, that is noted, and vLLM starts all the same


class Plugin(Strict):
    """A plugin of vLLM's: a package that the folder holds, found by its entry point, switched on by its flags."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$", description="a name of the group vllm.general_plugins")]
    entry: EntryPoint | None = None  # None: the folder's pyproject.toml says it
    source: FilePath | None = None  # the folder that the package lies in, `src` for example; None: the folder itself
    flags: dict[Flag, FlagValue] = Field(default_factory=dict)  # true is a bare flag


class Patch(Strict):
    """A folder on the controller, and what of it goes into the containers of one family."""

    folder: Text  # absolute once it was read: relative to the file that names it, `~` is the user's home
    family: Name  # for others it is passed over
    image: BoundTo  # what it was made for; another one there is refused, since it may fit no longer
    programs: tuple[Program, ...] = ()  # run in this order, before vLLM
    files: dict[FilePath, ImagePath] = Field(default_factory=dict)  # file -> where in the image it is mounted over one
    plugin: Plugin | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.programs or self.files or self.plugin):
            raise Mistake("nothing of the folder is used", remedy="add programs, files or a plugin to the entry")
        return self

    @property
    def whole(self) -> bool:
        """Whether all of the folder travels: programs and packages may need what lies beside them."""
        return bool(self.programs or self.plugin)


def written_out(data: Mapping[str, Data], folder: Path) -> dict[str, Data]:
    """What a file in `folder` says, each of its patches with an absolute folder, each program as a mapping.

    Nothing is validated yet: what has another shape stays as it is.
    """
    entries = data.get("patches")
    if not isinstance(entries, list):
        return dict(data)
    return {**data, "patches": [_written_out(each, folder) if isinstance(each, dict) else each for each in entries]}


def _written_out(entry: Mapping[str, Data], folder: Path) -> dict[str, Data]:
    whole = dict(entry)
    if isinstance(named := entry.get("folder"), str) and named:
        whole["folder"] = str((folder / from_home(Path(named))).absolute())
    if isinstance(programs := entry.get("programs"), list):
        whole["programs"] = [{"file": each} if isinstance(each, str) else each for each in programs]
    return whole
