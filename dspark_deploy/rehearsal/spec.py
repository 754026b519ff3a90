"""What a pair is made of: decided where the user's data files are read, carried out in the background process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from dspark_deploy.family import Family
from dspark_deploy.model import Model
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.rehearsal.standin.vllm_family import FAMILIES

TIME_SCALE = 60.0  # the published boot takes 306 s: about 5 s here


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """One image: the family it stands for, and where that family's images have what."""

    family: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]  # name@sha256:…
    executable: str
    python: str
    packages: str
    baked_in: tuple[str, ...]  # environment names that the image sets


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One checkpoint: a hub id at a revision, or a folder below the Hugging Face home."""

    name: str
    revision: str | None  # None: a plain folder
    encoder: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole pair. Both nodes have the same images and models."""

    scenario: str
    time_scale: float  # what takes a second on a real pair takes 1 / time_scale here
    images: tuple[ImageSpec, ...]
    models: tuple[ModelSpec, ...]

    def write(self, path: Path) -> None:
        """Keep it as JSON."""
        path.write_bytes(TypeAdapter(Spec).dump_json(self, indent=2))

    @classmethod
    def read(cls, path: Path) -> Spec:
        """What `write` kept."""
        return TypeAdapter(Spec).validate_json(path.read_bytes())


def spec_of(catalogue: Catalogue, scenario: str, time_scale: float) -> Spec:
    """A pair on which every profile of `catalogue` can be started: all of their images and models are there.

    Families that no stand-in engine exists for are left out. May raise ConfigError, as every reader of data files.
    """
    profiles = list(catalogue.profiles())
    tags: dict[str, list[str]] = {}
    for profile in profiles:
        if profile.image is not None:
            tags.setdefault(profile.family, []).append(profile.image.partition("@")[0])
    families = [family for family in catalogue.families() if family.name in FAMILIES]
    models = {profile.model: catalogue.model(profile.model) for profile in profiles}
    return Spec(
        scenario,
        time_scale,
        tuple(_image(family, tags.get(family.name, [])) for family in families),
        tuple(dict.fromkeys(map(_model, models.values()))),
    )


def _image(family: Family, further: list[str]) -> ImageSpec:
    own = family.image.partition("@")[0]
    name = own.rpartition(":")[0]
    return ImageSpec(
        family=family.name,
        tags=tuple(dict.fromkeys((own, *further))),
        digests=(f"{name}@{family.digest}",) if family.digest else (),
        executable=family.executable,
        python=family.python,
        packages=family.packages,
        baked_in=family.baked_in,
    )


def _model(model: Model) -> ModelSpec:
    if model.directory is not None:
        return ModelSpec(model.directory, None, model.ships_encoder)
    name = model.id or ""
    made_up = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()  # what refs/main names is the hub's to say
    return ModelSpec(name, model.revision or made_up, model.ships_encoder)
