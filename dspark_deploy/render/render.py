"""A deployment as files: both nodes' halves of one release."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from dspark_deploy import __version__
from dspark_deploy.plan.argv import serve_argv
from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.plan.environment import environment
from dspark_deploy.render.compose import compose_file
from dspark_deploy.render.env import env_file
from dspark_deploy.render.manifest import NAME as MANIFEST
from dspark_deploy.render.manifest import manifest
from dspark_deploy.render.patches import patch_files
from dspark_deploy.render.release import File, Release
from dspark_deploy.render.serve import prepare_program, serve_script


def render(deployment: Deployment) -> Release:
    """Both nodes' files. The same deployment gives the same bytes.

    They are rendered twice: each container carries the release's id as a label, and an id can't be made from itself.
    The version of dspark is left out of the id for another reason: an upgrade of the tool alone changes nothing that
    runs, and must not look like a reason to stop a pair that serves. Raises ConfigError for what can't be written.
    """
    nameless = [_files(deployment, rank, release="", tool="") for rank in deployment.ranks]
    release = release_id(nameless)
    head, worker = (_half(deployment, rank, release) for rank in deployment.ranks)
    return Release(release, head=head, worker=worker)


def release_id(halves: list[dict[str, File]]) -> str:
    """Twelve hex digits over the names, modes and contents of the head's files, then the worker's."""
    digest = sha256()
    for half in halves:
        for name, file in sorted(half.items()):
            content = file.data
            digest.update(f"{name}\0{file.mode:o}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()[:12]


def _half(deployment: Deployment, rank: Rank, release: str) -> Mapping[str, File]:
    files = _files(deployment, rank, release=release, tool=__version__)
    return files | {MANIFEST: manifest(deployment, rank, files, release=release, tool=__version__)}


def _files(deployment: Deployment, rank: Rank, *, release: str, tool: str) -> dict[str, File]:
    peer = deployment.ranks[1 - rank.number]
    return {
        "compose.yaml": compose_file(deployment, rank, serve_argv(deployment, rank), release=release, tool=tool),
        ".env": env_file(deployment, rank, environment(deployment, rank), environment(deployment, peer), tool=tool),
        "serve.sh": serve_script(deployment, tool=tool),
        "prepare.py": prepare_program(),
        **patch_files(deployment),
    }
