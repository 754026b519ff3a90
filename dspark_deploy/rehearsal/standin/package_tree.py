"""The parts of vLLM's package tree that a container's preparation looks into, in the state a runtime ships them.

Written for this project after the described behaviour of the real files; none of it is vLLM's text:
the template wrapper treats every effort but max as high, the encoder is an older one that wraps tool arguments given
as a dict, and the sparse attention takes its fp8 path for one of two equal cache formats only.
"""

from __future__ import annotations

from .vllm_family import FAMILIES, known_names

WRAPPER = '''"""Chat template of DeepSeek V4, by the Python encoder."""

import copy
from typing import Any

from .deepseek_v4_encoding import encode_messages


def get_deepseek_v4_tokenizer(tokenizer: Any) -> Any:
    """Return a copy of the tokenizer that renders conversations with the encoder."""
    wrapped = copy.copy(tokenizer)

    class _DeepseekV4Tokenizer(tokenizer.__class__):  # type: ignore
        def apply_chat_template(self, messages, tools=None, **kwargs):
            thinking = bool(kwargs.get("thinking") or kwargs.get("enable_thinking"))
            thinking_mode = "thinking" if thinking else "chat"
            reasoning_effort = kwargs.get("reasoning_effort")
            if not isinstance(reasoning_effort, str):
                reasoning_effort = None
            elif reasoning_effort == "none":
                thinking_mode = "chat"
                reasoning_effort = None
            elif reasoning_effort in ("max", "xhigh"):
                reasoning_effort = "max"
            else:
                reasoning_effort = "high"
            messages = list(kwargs.get("conversation", messages))
            if tools:
                messages.insert(0, {"role": "system", "tools": tools})
            prompt = encode_messages(
                messages,
                thinking_mode=thinking_mode,
                drop_thinking=kwargs.get("drop_thinking", True),
                reasoning_effort=reasoning_effort,
            )
            return self.encode(prompt) if kwargs.get("tokenize", True) else prompt

    wrapped.__class__ = _DeepseekV4Tokenizer
    return wrapped
'''

ENCODER = '''"""Conversation encoder of DeepSeek V4, {origin}."""

import json

ORIGIN = "{origin}"


def encode_arguments_to_dsml(tool_call):
    """Render the arguments of one tool call as DSML parameters."""
    try:
        arguments = json.loads(tool_call["arguments"])
    except Exception:
        arguments = {{"arguments": tool_call["arguments"]}}
    lines = []
    for name, value in arguments.items():
        is_text = isinstance(value, str)
        shown = value if is_text else json.dumps(value, ensure_ascii=False)
        lines.append(f'<parameter name="{{name}}" string="{{str(is_text).lower()}}">{{shown}}</parameter>')
    return "\\n".join(lines)


def encode_messages(
    messages,
    thinking_mode,
    context=None,
    drop_thinking=True,
    add_default_bos_token=True,
    reasoning_effort=None,
):
    """Render a conversation as one prompt. The tools of a request stand in its system message."""
    parts = [f"[{{thinking_mode}} {{reasoning_effort}}]"]
    for message in [*(context or ()), *messages]:
        parts.append(f"{{message['role']}}: {{message.get('content') or ''}}")
        for tool in message.get("tools") or ():
            parts.append(json.dumps(tool["function"], ensure_ascii=False))
        for call in message.get("tool_calls") or ():
            parts.append(encode_arguments_to_dsml(call["function"]))
    return "\\n".join(parts)
'''

SPARSE_ATTENTION = '''"""Sparse multi-head latent attention over FlashMLA kernels."""


class FlashMLASparseImpl:
    """One attention layer."""

    def __init__(self, kv_cache_dtype: str) -> None:
        self.kv_cache_dtype = kv_cache_dtype

    def forward_mqa(self, q, kv_cache, attn_metadata, layer):
        use_fp8_cache = self.kv_cache_dtype == "fp8_ds_mla"
        if not use_fp8_cache:
            return self._forward_bf16_kv(q, kv_cache, attn_metadata)
        return self._forward_fp8_kv(q, kv_cache, attn_metadata)

    def _forward_bf16_kv(self, q, kv_cache, attn_metadata):
        return ("bf16", q)

    def _forward_fp8_kv(self, q, kv_cache, attn_metadata):
        return ("fp8", q)

    def entry_bytes(self) -> int:
        if self.kv_cache_dtype in ("fp8_ds_mla", "nvfp4_ds_mla"):
            return 584
        return 1152
'''


def files(family_name: str) -> dict[str, str]:
    """The tree of a family: path below the packages folder -> text."""
    family = FAMILIES[family_name]
    names = "".join(f'    "{name}": lambda: os.environ.get("{name}"),\n' for name in sorted(known_names(family)))
    envs = f'"""Environment names of this runtime."""\n\nimport os\n\nenvironment_variables = {{\n{names}}}\n'
    version = f'"""A stand-in for vLLM\'s package tree."""\n\n__version__ = "{family.version}"\n'
    return {
        "vllm/__init__.py": version,
        "vllm/envs.py": envs,
        "vllm/tokenizers/__init__.py": "",
        "vllm/tokenizers/deepseek_v4.py": WRAPPER,
        "vllm/tokenizers/deepseek_v4_encoding.py": ENCODER.format(origin="as the image ships it"),
        "vllm/v1/__init__.py": "",
        "vllm/v1/attention/__init__.py": "",
        "vllm/v1/attention/backends/__init__.py": "",
        "vllm/v1/attention/backends/mla/__init__.py": "",
        "vllm/v1/attention/backends/mla/flashmla_sparse.py": SPARSE_ATTENTION,
    }


def snapshot_encoder() -> str:
    """The newer encoder that a 0731 snapshot carries as encoding/encoding_dsv4.py."""
    return ENCODER.format(origin="as the snapshot carries it")
