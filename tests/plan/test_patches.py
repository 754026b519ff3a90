"""Patches in a deployment: which apply, what they are bound to, and what plugins switch on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.patch import Patch
from dspark_deploy.plan.argv import serve_argv
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.environment import environment
from dspark_deploy.plan.patches import Carried, PatchFile, applying, expect_whole, fits, plugin_metadata
from dspark_deploy.plan.refusals import refuse_impossible
from tests.plan.deployments import CATALOGUE, deploy, example_inventory
from tests.samples import IMAGE, IMAGE_ID, image

PYPROJECT = """\
[project]
name = "vllm-gb10-hybrid.nvfp4"
version = "0.1.0"
[project.entry-points."vllm.general_plugins"]
gb10 = "hybrid:register"
"""
PLUGIN = {"name": "gb10", "flags": {"--quantization": "modelopt_gb10_hybrid"}}


def patch(**changes: Any) -> Patch:
    return Patch.model_validate({"folder": "/home/me/my recipe", "family": "anemll", "image": IMAGE, **changes})


def carried(number: int = 1, content: Mapping[str, str] | None = None, **changes: Any) -> Carried:
    files = {name: PatchFile(text.encode()) for name, text in (content or {}).items()}
    return Carried(number, patch(**changes), f"inventory.yaml line 9: `patches[{number - 1}]`", files)


def deployed(*patches: Carried, **given: str) -> Deployment:
    return replace(deploy(given=given), patches=patches)


def test_those_of_the_family_the_profile_and_the_inventory_apply_in_that_order_and_others_not() -> None:
    of_the_inventory = patch(programs=({"file": "c.py"},))
    foreign = patch(family="stage-c", programs=({"file": "d.py"},))
    family = CATALOGUE.family("anemll").model_copy(update={"patches": (patch(programs=({"file": "a.py"},)),)})
    profile = deploy().profile.model_copy(update={"patches": (patch(programs=({"file": "b.py"},)),)})
    inventory = example_inventory().model_copy(update={"patches": (foreign, of_the_inventory)})
    found = applying(family, profile, inventory)
    assert [(origin, at, each.programs[0].file) for origin, at, each in found] == [
        ("family", 0, "a.py"),
        ("profile", 0, "b.py"),
        ("inventory", 1, "c.py"),
    ]


@pytest.mark.parametrize(
    ("bound_to", "digests", "verdict"),
    [
        (IMAGE, (), True),
        ("ghcr.io/anemll/dspark-vllm-gx10:0.1.0", (), False),
        (IMAGE_ID, (), True),
        ("sha256:" + "0" * 64, (), False),
        ("sha256:" + "d" * 64, ("ghcr.io/anemll/dspark-vllm-gx10@sha256:" + "d" * 64,), True),
        (f"{IMAGE}@sha256:" + "d" * 64, ("ghcr.io/anemll/dspark-vllm-gx10@sha256:" + "d" * 64,), True),
        (f"{IMAGE}@sha256:" + "d" * 64, ("ghcr.io/anemll/dspark-vllm-gx10@sha256:" + "e" * 64,), False),
        (f"{IMAGE}@sha256:" + "d" * 64, (), None),
    ],
)
def test_a_patch_fits_the_image_that_it_is_bound_to(
    bound_to: str, digests: tuple[str, ...], verdict: bool | None
) -> None:
    assert fits(patch(image=bound_to, files={"a.py": "/opt/a.py"}), image(digests=digests)) is verdict


def test_a_folders_name_in_a_release_is_plain_and_in_order() -> None:
    assert carried(2, programs=({"file": "a.py"},)).name == "2-my-recipe"
    assert carried(3, folder="/recipes/...", programs=({"file": "a.py"},)).name == "3-patch"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"programs": ({"file": "b.py"},)}, "`programs[0].file`: /home/me/my recipe has no file b.py"),
        ({"files": {"b.py": "/opt/b.py"}}, "`files.b.py`: /home/me/my recipe has no file b.py"),
        ({"plugin": {"name": "other"}}, "no entry point other in /home/me/my recipe/pyproject.toml"),
    ],
)
def test_what_is_named_and_not_there_is_refused_with_its_key(changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        expect_whole(carried(content={"a.py": "", "pyproject.toml": PYPROJECT}, **changes))
    assert raised.value.message.startswith("inventory.yaml line 9: `patches[0]`")
    assert said in raised.value.message


def test_a_plugin_is_found_by_two_files_beside_its_package() -> None:
    told = plugin_metadata(carried(content={"pyproject.toml": PYPROJECT}, plugin=PLUGIN))
    assert told == {
        "vllm_gb10_hybrid_nvfp4-0.1.0.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: vllm-gb10-hybrid.nvfp4\nVersion: 0.1.0\n"
        ),
        "vllm_gb10_hybrid_nvfp4-0.1.0.dist-info/entry_points.txt": "[vllm.general_plugins]\ngb10 = hybrid:register\n",
    }
    own = plugin_metadata(carried(plugin={**PLUGIN, "entry": "hybrid.main:go"}))
    assert "gb10 = hybrid.main:go\n" in own["1_my_recipe-0.dist-info/entry_points.txt"]


def test_a_pyproject_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"pyproject\.toml can't be read"):
        expect_whole(carried(content={"pyproject.toml": "[project"}, plugin=PLUGIN))


def test_a_plugin_is_switched_on_by_its_name_and_its_flags_on_both_ranks() -> None:
    deployment = deployed(carried(content={"pyproject.toml": PYPROJECT}, plugin=PLUGIN))
    for rank in deployment.ranks:
        argv = serve_argv(deployment, rank)
        assert argv[argv.index("--quantization") + 1] == "modelopt_gb10_hybrid"
        assert environment(deployment, rank)["VLLM_PLUGINS"] == "gb10"
    beside = deployed(*deployment.patches, **{"environment.VLLM_PLUGINS": "mine"})
    assert environment(beside, beside.head)["VLLM_PLUGINS"] == "mine,gb10"
    assert "VLLM_PLUGINS" not in environment(deploy(), deploy().head)


@pytest.mark.parametrize(
    ("patches", "said"),
    [
        ((carried(files={"a.py": "/opt/dspark/serve.sh"}),), "is dspark's own place in the container"),
        ((carried(files={"a.py": "/cache/huggingface/a.py"}),), "is in the cache"),
        ((carried(files={"a.py": "/opt/a.py"}), carried(2, files={"b.py": "/opt/a.py"})), "is mounted by"),
        ((carried(plugin={"name": "x", "entry": "x:y", "flags": {"--port": 1}}),), "is made from the profile"),
        (
            (carried(plugin={"name": "x", "entry": "x:y", "flags": {"--linear-backend": "x"}}),),
            "anemll can't take it",
        ),
    ],
)
def test_patches_that_can_not_go_together_with_what_is_there_are_refused(
    patches: tuple[Carried, ...], said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_impossible(deployed(*patches), CATALOGUE)
    assert said in raised.value.message
