"""The package tree and the snapshots that stand around the stand-in engine."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.rehearsal.standin import package_tree, snapshots

FAMILIES = ["anemll", "stage-c"]


def run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "module", "exec"), names)  # noqa: S102  our own text
    return names


@pytest.mark.parametrize("family", FAMILIES)
def test_every_file_of_the_tree_is_python(family: str) -> None:
    for text in package_tree.files(family).values():
        ast.parse(text)


@pytest.mark.parametrize(("family", "own", "foreign"), [
    ("anemll", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "VLLM_DSPARK_LOCAL_ARGMAX"),
    ("stage-c", "VLLM_DSPARK_LOCAL_ARGMAX", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"),
])  # fmt: skip
def test_each_family_registers_its_own_names(family: str, own: str, foreign: str) -> None:
    names = run(package_tree.files(family)["vllm/envs.py"])["environment_variables"]
    assert own in names
    assert foreign not in names
    assert "VLLM_HOST_IP" in names
    assert not {"VLLM_TRITON_MLA_SPARSE", "VLLM_IMAGE_TAG"} & names.keys()


def test_the_image_is_in_the_state_that_needs_its_patches() -> None:
    files = package_tree.files("anemll")
    wrap = files["vllm/tokenizers/deepseek_v4.py"].replace("from .deepseek_v4_encoding import encode_messages\n", "")
    names = run(wrap)
    names["encode_messages"] = lambda _messages, **given: given["reasoning_effort"]

    class Tokenizer:
        pass

    tokenizer = names["get_deepseek_v4_tokenizer"](Tokenizer())
    said = {
        effort: tokenizer.apply_chat_template([], thinking=True, reasoning_effort=effort, tokenize=False)
        for effort in ("max", "xhigh", "high", "low")
    }
    assert said == {"max": "max", "xhigh": "max", "high": "high", "low": "high"}
    attention = run(files["vllm/v1/attention/backends/mla/flashmla_sparse.py"])["FlashMLASparseImpl"]
    assert attention("fp8_ds_mla").forward_mqa(1, 2, 3, 4) == ("fp8", 1)
    assert attention("nvfp4_ds_mla").forward_mqa(1, 2, 3, 4) == ("bf16", 1)
    assert attention("nvfp4_ds_mla").entry_bytes() == 584


def test_the_snapshots_encoder_is_another_than_the_images_and_wraps_dicts() -> None:
    own = package_tree.snapshot_encoder()
    assert own != package_tree.files("anemll")["vllm/tokenizers/deepseek_v4_encoding.py"]
    encode = run(own)["encode_arguments_to_dsml"]
    assert encode({"arguments": '{"city": "Bonn"}'}) == '<parameter name="city" string="true">Bonn</parameter>'
    assert 'name="arguments"' in encode({"arguments": {"city": "Bonn"}})


def test_a_snapshot_is_complete_and_deterministic(tmp_path: Path) -> None:
    made = [
        snapshots.write_snapshot(tmp_path / name, snapshots.MODEL_0731, snapshots.REVISION_0731, encoder=True)
        for name in ("a", "b")
    ]
    first, second = (sorted(str(path.readlink()) for path in folder.rglob("*") if path.is_symlink()) for folder in made)
    assert first == second
    index = json.loads((made[0] / "model.safetensors.index.json").read_text())
    shards = set(index["weight_map"].values())
    assert len(shards) == 48
    sizes = []
    for name in shards:
        content = (made[0] / name).read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        (tensor,) = header.values()
        assert len(content) == 8 + length + tensor["data_offsets"][1]
        sizes.append(tensor["data_offsets"][1])
    assert sum(sizes) == index["metadata"]["total_size"]
    assert (made[0].parents[1] / "refs/main").read_bytes() == snapshots.REVISION_0731.encode()
