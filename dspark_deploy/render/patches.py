"""The user's own patches in a release: their files as they are, the program that applies them, and its list."""

from __future__ import annotations

import json

from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.patches import Carried, plugin_metadata
from dspark_deploy.render.release import File
from dspark_deploy.render.template import static

FOLDER = "patches"  # of a release, and beside serve.sh in the container


def patch_files(deployment: Deployment) -> dict[str, File]:
    """Relative name -> file; nothing where there are no patches."""
    files: dict[str, File] = {}
    for each in deployment.patches:
        for name, file in each.content.items():
            text = file.data.decode(errors="surrogateescape")
            files[f"{FOLDER}/{each.name}/{name}"] = File(text, mode=0o755 if file.executable else 0o644)
        for name, text in plugin_metadata(each).items():
            files[f"{FOLDER}/{each.packages}/{name}"] = File(text, mode=0o644)
    if any(each.runs for each in deployment.patches):
        files[f"{FOLDER}/apply.py"] = File(static("apply.py"), mode=0o644)
        files[f"{FOLDER}/list.json"] = File(_list(deployment.patches), mode=0o644)
    return files


def package_folders(deployment: Deployment) -> tuple[str, ...]:
    """Where Python has to look for the plugins, below FOLDER."""
    return tuple(each.packages for each in deployment.patches if each.patch.plugin)


def _list(patches: tuple[Carried, ...]) -> str:
    """What apply.py does, in order."""
    entries = [
        {
            "folder": each.name,
            "programs": [program.model_dump(mode="json") for program in each.patch.programs],
            "plugin": None
            if each.patch.plugin is None
            else {"name": each.patch.plugin.name, "packages": each.packages},
        }
        for each in patches
        if each.runs
    ]
    return json.dumps(entries, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
