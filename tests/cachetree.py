"""Models in caches of their own, as the hub client lays them out: sparse shards of real sizes behind real headers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dspark_deploy.rehearsal.standin.snapshots import MODEL_0731, REVISION_0731

MOUNT = "/cache/huggingface"
SHARDS = 48
CHECKPOINT_BYTES = 166_886_535_336  # the preview's 48 shards, measured
TENSORS = 1500  # of one shard, about
ENCODER = b"def encode_messages(messages):\n    return str(messages)\n"
OTHER_REVISION = "6976c7ff" * 5


def header_of(tensors: Mapping[str, int]) -> bytes:
    """A safetensors file's first bytes, for tensors of so many bytes each."""
    described, at = {}, 0
    for name, size in tensors.items():
        described[name] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(described).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


class CacheTree:
    """One model below `hf_home`. Files are reached by their names in the snapshot."""

    def __init__(
        self,
        hf_home: Path,
        *,
        model: str = MODEL_0731,
        revision: str = REVISION_0731,
        directory: str | None = None,
        shards: int = SHARDS,
        size: int = CHECKPOINT_BYTES,
        tensors: int = 4,
        links: bool = True,
    ) -> None:
        self.hf_home = hf_home
        self.model = model
        self.revision = revision
        self.directory = directory
        self.hub = hf_home / "hub"
        self.root = self.hub / f"models--{model.replace('/', '--')}"
        self.folder = hf_home / directory if directory else self.root / "snapshots" / revision
        self.blobs = self.root / "blobs"
        self.links = links and directory is None
        self.shards = [f"model-{number:05d}-of-{shards:05d}.safetensors" for number in range(1, shards + 1)]
        self._write(size // shards, tensors)

    def link(self, name: str) -> Path:
        """The name itself, a link where the tree has links."""
        return self.folder / name

    def put(self, name: str, content: bytes, size: int | None = None) -> None:
        """Have a file: `content`, and holes up to `size`. Blobs are named by their hash, sparse ones by another."""
        known = hashlib.sha256(content + str(size).encode()) if size else _hash_of(name, content)
        path = self.link(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        blob = self.blobs / known.hexdigest() if self.links else path
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        if size is not None:
            os.truncate(blob, size)
        if self.links:
            path.unlink(missing_ok=True)
            path.symlink_to(os.path.relpath(blob, path.parent))

    def ref(self, content: bytes) -> None:
        """Have refs/main say this, byte for byte."""
        (self.root / "refs").mkdir(exist_ok=True)
        (self.root / "refs" / "main").write_bytes(content)

    def request(self, **changes: Any) -> dict[str, Any]:
        """What `verify_cache` and `hash_cache` are asked."""
        known = {
            "pair": "spark-pair",
            "hf_home": str(self.hf_home),
            "hub_cache": None,
            "mount": MOUNT,
            "model": None if self.directory else self.model,
            "revision": None if self.directory else self.revision,
            "directory": self.directory,
            "encoder": self.directory is None,
        }
        return {**known, **changes}

    def _write(self, shard_size: int, tensors: int) -> None:
        weights: dict[str, str] = {}
        data = 0
        for number, name in enumerate(self.shards):
            header, size = self._header(number, shard_size, tensors)
            self.put(name, header, size)
            weights |= dict.fromkeys(json.loads(header[8:]), name)
            data += size - len(header)
        self.put("model.safetensors.index.json", _json({"metadata": {"total_size": data}, "weight_map": weights}))
        self.put("config.json", _json({"architectures": ["DeepseekV4ForCausalLM"], "dspark_block_size": 5}))
        self.put("generation_config.json", _json({"temperature": 1.0}))
        self.put("tokenizer.json", _json({"version": "1.0"}))
        self.put("tokenizer_config.json", _json({"model_max_length": 1048576}))
        self.put("README.md", b"# A model\n")
        if self.directory is None:
            self.put("encoding/encoding_dsv4.py", ENCODER)
            self.ref(self.revision.encode())

    def _header(self, number: int, shard_size: int, tensors: int) -> tuple[bytes, int]:
        names = [f"layers.{number}.ffn.experts.{expert}.w1.weight" for expert in range(tensors)]
        header = header_of(dict.fromkeys(names, shard_size // tensors))
        return header, len(header) + shard_size // tensors * tensors


def _hash_of(name: str, content: bytes) -> Any:
    if name == "tokenizer.json" or name.endswith(".safetensors"):
        return hashlib.sha256(content)
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)


def _json(value: object) -> bytes:
    return (json.dumps(value) + "\n").encode()
