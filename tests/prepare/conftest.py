"""A package tree and a hub cache as an image and a node have them, and prepare.py run on them as in the container.

The code in the trees is written after the shape of vLLM 0.25's, which Anemll's image is made from, and of the 0731
checkpoint's encoder; only what prepare.py looks for is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "templates" / "prepare.py"
REVISION = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
MODEL = "deepseek-ai/DeepSeek-V4-Flash-0731"

WRAPPER = '''\
"""The chat template, which is no Jinja: <é>."""

from .deepseek_v4_encoding import encode_messages


def wrap(tokenizer):
    class Wrapped(tokenizer.__class__):
        def apply_chat_template(self, messages, tools=None, **kwargs):
            mode = "thinking" if kwargs.get("thinking") else "chat"
            reasoning_effort = kwargs.get("reasoning_effort")
            if not isinstance(reasoning_effort, str):
                reasoning_effort = None
            elif reasoning_effort == "none":
                mode = "chat"
                reasoning_effort = None
            elif reasoning_effort in ("max", "xhigh"):
                reasoning_effort = "max"  # é: columns are bytes
            else:
                reasoning_effort = "high"
            return encode_messages(messages, mode, reasoning_effort)

    return Wrapped
'''

SPARSE_ATTENTION = """\
class Implementation:
    def forward_mqa(self, q, cache, metadata):
        use_fp8_cache = self.kv_cache_dtype == "fp8_ds_mla"
        if not use_fp8_cache:
            return self.slow(q, cache, metadata)
        return self.fast(q, cache, metadata)
"""

ENCODER = """\
import json


def encode_arguments_to_dsml(tool_call):
    try:
        arguments = json.loads(tool_call["arguments"])
    except Exception as err:
        arguments = {"arguments": tool_call["arguments"]}
    return "\\n".join(f"{key}={value}" for key, value in arguments.items())


def encode_messages(messages, mode, reasoning_effort):
    return (messages, mode, reasoning_effort)
"""


@dataclass
class Container:
    """What prepare.py meets: the image's packages, the mounted cache, and the environment."""

    packages: Path
    cache: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def wrapper(self) -> Path:
        return self.packages / "vllm/tokenizers/deepseek_v4.py"

    @property
    def encoder(self) -> Path:
        return self.packages / "vllm/tokenizers/deepseek_v4_encoding.py"

    @property
    def sparse_attention(self) -> Path:
        return self.packages / "vllm/v1/attention/backends/mla/flashmla_sparse.py"

    @property
    def model(self) -> Path:
        return self.cache / "hub/models--deepseek-ai--DeepSeek-V4-Flash-0731"

    @property
    def snapshot_encoder(self) -> Path:
        return self.model / f"snapshots/{REVISION}/encoding/encoding_dsv4.py"

    def prepare(self, *steps: str) -> subprocess.CompletedProcess[str]:
        """Run it as serve.sh does."""
        about = ("--family", "anemll", "--image", "ghcr.io/x:1", "--packages", str(self.packages))
        return subprocess.run(
            [sys.executable, "-I", "-S", PROGRAM, *about, *steps],
            env={"PATH": os.environ["PATH"], "HF_HOME": str(self.cache), **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def container(tmp_path: Path) -> Container:
    made = Container(tmp_path / "dist-packages", tmp_path / "huggingface")
    blob = made.model / "blobs/5f2c"
    for path, content in [
        (made.wrapper, WRAPPER),
        (made.encoder, "def encode_messages(messages): ...\n"),
        (made.sparse_attention, SPARSE_ATTENTION),
        (blob, ENCODER),
        (made.model / "refs/main", REVISION),
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    made.snapshot_encoder.parent.mkdir(parents=True)
    made.snapshot_encoder.symlink_to(Path("../../../blobs/5f2c"))
    return made
