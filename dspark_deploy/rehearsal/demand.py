"""What a pair has to have, so that every profile of a catalogue can be started on it."""

from __future__ import annotations

import hashlib

from dspark_deploy.family import Family
from dspark_deploy.model import Model
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.rehearsal.scenarios import scenario
from dspark_deploy.rehearsal.spec import ImageSpec, ModelSpec, Spec
from dspark_deploy.rehearsal.standin.vllm_family import FAMILIES


def spec_of(catalogue: Catalogue, name: str, time_scale: float) -> Spec:
    """A pair in the scenario of that name with all images and models of `catalogue`'s profiles.

    Families that no stand-in engine exists for are left out. May raise ConfigError, as every reader of data files.
    """
    broken = scenario(name)
    profiles = list(catalogue.profiles())
    tags: dict[str, list[str]] = {}
    for profile in profiles:
        if profile.image is not None:
            tags.setdefault(profile.family, []).append(profile.image.partition("@")[0])
    families = [family for family in catalogue.families() if family.name in FAMILIES]
    models = {profile.model: catalogue.model(profile.model) for profile in profiles}
    return Spec(
        name,
        time_scale,
        broken.head,
        broken.worker,
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
