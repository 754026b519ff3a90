"""The user's own patches as a deployment carries them: which apply, what travels of them, what they switch on."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath

from dspark_deploy.errors import ConfigError
from dspark_deploy.facts.node import Image
from dspark_deploy.family import Family
from dspark_deploy.inventory import Inventory
from dspark_deploy.patch import Patch, Plugin
from dspark_deploy.profile import Profile
from dspark_deploy.strict import FlagValue

PLUGINS = "VLLM_PLUGINS"  # names the only plugins that vLLM loads
GROUP = "vllm.general_plugins"  # of entry points


@dataclass(frozen=True, slots=True)
class PatchFile:
    """One file of a folder."""

    data: bytes = field(repr=False)
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """One patch, with what travels of its folder."""

    number: int  # from 1, in the order in which they apply
    patch: Patch
    where: str  # `inventory.yaml line 12: `patches[0]``, for messages
    content: Mapping[str, PatchFile]  # path below the folder -> file

    @property
    def name(self) -> str:
        """What its folder is called in a release, and what it is called in logs."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(self.patch.folder).name).strip("-.")
        return f"{self.number}-{plain or 'patch'}"

    @property
    def runs(self) -> bool:
        """Whether something of it is done before vLLM, and not only mounted."""
        return self.patch.whole

    @property
    def packages(self) -> str:
        """The folder of a release's patches that its plugin's package lies in."""
        source = self.patch.plugin.source if self.patch.plugin else None
        return f"{self.name}/{source}" if source else self.name


def applying(family: Family, profile: Profile, inventory: Inventory) -> tuple[tuple[str, int, Patch], ...]:
    """The patches for the family, in order: its own, the profile's, the inventory's. Each with where it is named
    (`family`, `profile` or `inventory`) and its place in the list there.
    """
    named = {"family": family.patches, "profile": profile.patches, "inventory": inventory.patches}
    every = ((origin, number, patch) for origin, patches in named.items() for number, patch in enumerate(patches))
    return tuple(each for each in every if each[2].family == family.name)


def fits(patch: Patch, image: Image) -> bool | None:
    """Whether an image on a node is the one that a patch is bound to; None where the node can't tell its digest."""
    known = {digest.partition("@")[2] for digest in image.digests}
    if patch.image.startswith("sha256:"):
        return patch.image in {image.id, *known}
    plain, _, digest = patch.image.partition("@")
    if plain != image.reference:
        return False
    return digest in known if known and digest else None if digest else True


def expect_whole(carried: Carried) -> None:
    """Raise ConfigError where the folder lacks what is named of it."""
    patch = carried.patch
    keys = [(f"programs[{number}].file", each.file) for number, each in enumerate(patch.programs)]
    keys += [(f"files.{name}", name) for name in patch.files]
    for key, name in keys:
        if name not in carried.content:
            raise ConfigError(
                f"{carried.where}: `{key}`: {patch.folder} has no file {name}",
                remedy="name a file that is there; hidden ones are not carried",
            )
    if patch.plugin is not None:
        _entry_point(carried, patch.plugin)


def plugin_flags(patches: Sequence[Carried]) -> dict[str, FlagValue]:
    """What switches the plugins on, beside VLLM_PLUGINS."""
    return dict(chain.from_iterable(each.patch.plugin.flags.items() for each in patches if each.patch.plugin))


def plugin_environment(patches: Sequence[Carried], given: Mapping[str, str]) -> dict[str, str]:
    """VLLM_PLUGINS with the plugins' names, beside those that a profile gives; empty where there are none."""
    names = [each.patch.plugin.name for each in patches if each.patch.plugin]
    before = given.get(PLUGINS, "").split(",")
    return {PLUGINS: ",".join(dict.fromkeys(filter(None, (*before, *names))))} if names else {}


def plugin_metadata(carried: Carried) -> dict[str, str]:
    """What tells Python of a plugin without installing it: path below the folder of packages -> text.

    `pip install` would build the package anew at every boot, with tools that an image may lack and no network; an entry
    point is found by two files beside the package.
    """
    plugin = carried.patch.plugin
    if plugin is None:
        return {}
    name, version, entry = _entry_point(carried, plugin)
    folder = f"{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
    return {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{folder}/entry_points.txt": f"[{GROUP}]\n{plugin.name} = {entry}\n",
    }


def refusals(patches: Sequence[Carried], taken: Mapping[str, str]) -> Iterator[ConfigError]:
    """Patches that can't go together. `taken` are the container's own places, and what is there."""
    seen: dict[str, str] = {}
    for each in patches:
        for name, target in each.patch.files.items():
            key = f"{each.where}: `files.{name}`: {target}"
            own = next((what for place, what in taken.items() if f"{target}/".startswith(f"{place}/")), None)
            if own or target in seen:
                remedy = "mount it over another file of the image"
                yield ConfigError(f"{key} is {own or f'mounted by {seen[target]} too'}", remedy=remedy)
            seen[target] = each.where


def _entry_point(carried: Carried, plugin: Plugin) -> tuple[str, str, str]:
    """The distribution's name and version, and module:function. Raises ConfigError."""
    project = _project(carried)
    name, version = str(project.get("name", carried.name)), str(project.get("version", "0"))
    points = project.get("entry-points")
    told = points.get(GROUP) if isinstance(points, dict) else None
    entry = plugin.entry or (told.get(plugin.name) if isinstance(told, dict) else None)
    if not isinstance(entry, str):
        known = f"it knows {', '.join(told)}" if isinstance(told, dict) and told else f"it has none of {GROUP}"
        raise ConfigError(
            f"{carried.where}: `plugin.name`: no entry point {plugin.name} in {carried.patch.folder}/pyproject.toml",
            why=known,
            remedy="name one that it has, or give `entry: module:function` beside it",
        )
    return name, version, entry.strip()


def _project(carried: Carried) -> Mapping[str, object]:
    file = carried.content.get("pyproject.toml")
    if file is None:
        return {}
    try:
        project = tomllib.loads(file.data.decode()).get("project", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        path = f"{carried.patch.folder}/pyproject.toml"
        raise ConfigError(f"{carried.where}: {path} can't be read: {error}", remedy="mend that file") from error
    return project if isinstance(project, dict) else {}
