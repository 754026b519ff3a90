"""Patches in rendered files: there when they are named, part of the id, mounted read-only, and run before vLLM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dspark_deploy.patch import Patch
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.patches import Carried, PatchFile
from dspark_deploy.render.release import File, Release
from dspark_deploy.render.render import render
from tests.plan.deployments import deploy
from tests.samples import IMAGE

TARGET = "/usr/local/lib/python3.12/dist-packages/vllm/v1/spec_decode/dspark_proposer.py"
PLUGIN = {"name": "gb10", "entry": "gb10:register", "source": "src"}


def carried(number: int, content: Mapping[str, PatchFile], **used: Any) -> Carried:
    patch = Patch.model_validate({"folder": "/home/me/recipe", "family": "anemll", "image": IMAGE, **used})
    return Carried(number, patch, "inventory.yaml line 9: `patches[0]`", content)


def rendered(*patches: Carried) -> Release:
    return render(replace(_deployment(), patches=patches))


def _deployment() -> Deployment:
    return deploy("agent-1m")


def programs(text: bytes = b"exit 0\n") -> Carried:
    files = {"a.sh": PatchFile(text, executable=True), "lib/b.bin": PatchFile(b"\xff\x00")}
    return carried(1, files, programs=({"file": "a.sh", "args": ("--status",), "required": False},))


def test_without_patches_nothing_of_them_is_rendered() -> None:
    plain = rendered()
    assert plain.id == render(_deployment()).id
    assert [name for name in plain.head if name.startswith("patches")] == []
    assert "apply.py" not in plain.head["serve.sh"].content


def test_a_folder_travels_as_it_is_to_both_nodes_and_its_bytes_make_the_id() -> None:
    first, second = rendered(programs()), rendered(programs(b"exit 1\n"))
    assert first.id != second.id
    for half in (first.head, first.worker):
        assert half["patches/1-recipe/a.sh"] == File("exit 0\n", mode=0o755)
        assert half["patches/1-recipe/lib/b.bin"].data == b"\xff\x00"
        assert json.loads(half["manifest.json"].content)["files"]["patches/1-recipe/lib/b.bin"]["mode"] == "0644"
    assert json.loads(first.head["patches/list.json"].content) == [
        {
            "folder": "1-recipe",
            "programs": [{"file": "a.sh", "args": ["--status"], "required": False}],
            "plugin": None,
        }
    ]


def test_programs_are_mounted_read_only_and_run_after_the_preparation_and_before_vllm() -> None:
    half = rendered(programs()).worker
    volume = 'source: "./patches"\n        target: "/opt/dspark/patches"\n        read_only: true\n'
    assert volume in half["compose.yaml"].content
    script = half["serve.sh"].content
    places = [script.index(word) for word in ("prepare.py", "apply.py", 'exec "$executable"')]
    assert places == sorted(places)


def test_a_file_is_mounted_over_the_images_and_nothing_is_run_for_it() -> None:
    release = rendered(carried(1, {"p.py": PatchFile(b"")}, files={"p.py": TARGET}))
    volume = f'source: "./patches/1-recipe/p.py"\n        target: "{TARGET}"\n        read_only: true\n'
    assert volume in release.head["compose.yaml"].content
    assert [name for name in release.head if name.startswith("patches")] == ["patches/1-recipe/p.py"]
    assert "apply.py" not in release.head["serve.sh"].content


def test_python_finds_a_plugin_where_its_package_lies() -> None:
    release = rendered(carried(1, {"src/gb10.py": PatchFile(b"")}, plugin=PLUGIN))
    assert 'export PYTHONPATH="$patches"/1-recipe/src"${PYTHONPATH:+:$PYTHONPATH}"' in release.head["serve.sh"].content
    assert "patches/1-recipe/src/1_recipe-0.dist-info/entry_points.txt" in release.head
    assert 'VLLM_PLUGINS="gb10"' in release.head[".env"].content
