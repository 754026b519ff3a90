"""serve.sh, the container's first process, and prepare.py, which it runs before vllm."""

from __future__ import annotations

from dataclasses import dataclass

from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.render.patches import package_folders
from dspark_deploy.render.release import File
from dspark_deploy.render.template import fill, static


@dataclass(frozen=True, slots=True)
class Preparation:
    """What prepare.py has to do to the image's vllm package. docs/preparation.md tells why."""

    encoder: str | None = None  # install this model's own encoder: org/name, or its folder in the container
    revision: str | None = None  # of that model; None: refs/main decides
    effort: bool = False
    kv_dispatch: bool = False


def serve_script(deployment: Deployment, *, tool: str) -> File:
    """The same on both ranks."""
    text = fill(
        "serve.sh",
        family=deployment.family,
        image=deployment.image,
        steps=preparation(deployment),
        keyed=deployment.keyed,
        patched=any(each.runs for each in deployment.patches),
        plugins=package_folders(deployment),
        tool=tool,
    )
    return File(text, mode=0o755)


def prepare_program() -> File:
    """The program that serve.sh runs on the image's own Python; the same for every deployment."""
    return File(static("prepare.py"), mode=0o644)


def preparation(deployment: Deployment) -> Preparation:
    """The steps that the family's runtime knows and this model and KV dtype need.

    The effort mapping goes with the encoder: the image's own one, of an earlier checkpoint, refuses `low`.
    """
    model, known = deployment.model, deployment.family.prepare
    own_encoder = model.ships_encoder and "encoder" in known
    folder = f"{deployment.family.hf_home_in_container}/{model.directory}"
    return Preparation(
        encoder=(model.id or folder) if own_encoder else None,
        revision=model.revision if own_encoder else None,
        effort=own_encoder and "effort" in known,
        kv_dispatch="kv_dispatch" in known and deployment.profile.kv_cache_dtype == "nvfp4_ds_mla",
    )
