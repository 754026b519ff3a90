"""Small but true model snapshots: the hub's layout, valid safetensors, a few KiB instead of 155 GiB.

Everything is a function of the arguments: two nodes that write the same model hold the same bytes and blob names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from .package_tree import snapshot_encoder

SHARDS = 48  # of the published checkpoints; the original V4-Flash has 46
MODEL_0731 = "deepseek-ai/DeepSeek-V4-Flash-0731"
REVISION_0731 = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
MODEL_PREVIEW = "deepseek-ai/DeepSeek-V4-Flash-DSpark"
REVISION_PREVIEW = hashlib.sha1(MODEL_PREVIEW.encode(), usedforsecurity=False).hexdigest()  # made up
PLAIN_DIRECTORY = "fraserprice/DeepSeek-V4-Flash-DSpark"

_DRAFT_BLOCK_SIZE = {MODEL_0731: 5, MODEL_PREVIEW: 5, PLAIN_DIRECTORY: 5}


def write_all(hf_home: Path) -> None:
    """Fill a Hugging Face home with what the published profiles serve."""
    write_snapshot(hf_home / "hub", MODEL_0731, REVISION_0731, encoder=True)
    write_snapshot(hf_home / "hub", MODEL_PREVIEW, REVISION_PREVIEW)
    write_directory(hf_home / PLAIN_DIRECTORY, PLAIN_DIRECTORY)


def write_snapshot(hub: Path, model: str, revision: str, *, encoder: bool = False, shards: int = SHARDS) -> Path:
    """Write one revision of a model into a hub cache, `refs/main` naming it. Returns the snapshot's folder."""
    return lay_out(hub, model, revision, _files(model, encoder=encoder, shards=shards))


def lay_out(hub: Path, model: str, revision: str, files: Mapping[str, bytes]) -> Path:
    """Put files into a hub cache as one revision of a model. Returns the snapshot's folder.

    As the hub client does it: real files below `blobs`, named by sha256 for large files and by git's sha1 for
    small ones, and relative links below `snapshots`.
    """
    root = hub / f"models--{model.replace('/', '--')}"
    snapshot = root / "snapshots" / revision
    for name, content in files.items():
        blob = root / "blobs" / _blob_name(name, content)
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    (root / "refs").mkdir(exist_ok=True)
    (root / "refs" / "main").write_text(revision)  # 40 bytes, no newline: newer hub clients do not strip one
    return snapshot


def write_directory(folder: Path, model: str, *, shards: int = SHARDS) -> Path:
    """Write a model as a plain directory of real files, as older lanes keep theirs."""
    for name, content in _files(model, encoder=False, shards=shards).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def _files(model: str, *, encoder: bool, shards: int) -> dict[str, bytes]:
    names = [f"model-{number:05d}-of-{shards:05d}.safetensors" for number in range(1, shards + 1)]
    weights = {f"layers.{number}.weight": name for number, name in enumerate(names)}
    tensor_bytes = 16
    found = {name: _shard(tensor, tensor_bytes, seed=model) for tensor, name in weights.items()}
    found["config.json"] = _json(
        {
            "architectures": ["DeepseekV4ForCausalLM"],
            "model_type": "deepseek_v4",
            "max_position_embeddings": 1048576,
            "num_hidden_layers": 43,
            "dspark_block_size": _DRAFT_BLOCK_SIZE.get(model, 5),
            "torch_dtype": "bfloat16",
        }
    )
    found["generation_config.json"] = _json({"temperature": 1.0, "top_p": 1.0})
    found["tokenizer.json"] = _json({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}})
    found["tokenizer_config.json"] = _json({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1048576})
    found["model.safetensors.index.json"] = _json(
        {
            "metadata": {"total_size": tensor_bytes * shards},
            "weight_map": weights,
        }
    )
    if encoder:
        found["encoding/encoding_dsv4.py"] = snapshot_encoder().encode()
    return found


def _shard(tensor: str, size: int, seed: str) -> bytes:
    """One safetensors file with one float32 tensor: header length, header, data."""
    header = json.dumps({tensor: {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    data = hashlib.sha256(f"{seed}/{tensor}".encode()).digest()[:size]
    return len(header).to_bytes(8, "little") + header + data


def _blob_name(name: str, content: bytes) -> str:
    if name.endswith(".safetensors") or name == "tokenizer.json":
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
