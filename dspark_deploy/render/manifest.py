"""manifest.json: what a release is, for the tool that meets it on a node later, with a hash of each file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.plan.served import Served, served_by
from dspark_deploy.render.release import File

NAME = "manifest.json"


def manifest(deployment: Deployment, rank: Rank, files: Mapping[str, File], *, release: str, tool: str) -> File:
    """The manifest of one node's half. `files` are all the others."""
    content = {
        "release": release,
        "tool": tool,
        "node": rank.node,
        "rank": rank.number,
        "served": served_by(deployment).document(),
        "files": {
            name: {"mode": f"{file.mode:04o}", "sha256": sha256(file.data).hexdigest()} for name, file in files.items()
        },
    }
    return File(json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n", mode=0o644)


def parse_served(text: str) -> Served | None:
    """What the release of a manifest serves; None where another version of dspark wrote it in another shape."""
    try:
        return Served(**json.loads(text)["served"])
    except (ValueError, KeyError, TypeError):
        return None
