"""A Llama of two layers with random weights and a tokenizer of its own: what real vLLM serves here, made from nothing.

It writes English letters and ends after a dozen tokens or two. It is laid out as the published checkpoint is: a hub
snapshot with an index, shards and an encoder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from dspark_deploy.rehearsal.standin.package_tree import snapshot_encoder
from dspark_deploy.rehearsal.standin.snapshots import lay_out

NAME = "dspark-tests/tiny-llama"
REVISION = hashlib.sha1(NAME.encode(), usedforsecurity=False).hexdigest()
SPECIAL = ["<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>", "<think>", "</think>"]
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "vocab_size": 1024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 1048576,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "tie_word_embeddings": False,
}
ENDS = 1.7  # how much longer the end's vector is than a word's: about every 30th token is it
VOCABULARY, WIDTH, INNER, KEYS = 1024, 256, 512, 128
Weights = NDArray[np.float32]


_MAKING = Lock()


def write(hf_home: Path) -> None:
    """Put the model into a Hugging Face home: the same bytes for both nodes, which may ask at the same time."""
    with _MAKING:  # a tokenizer that is learned twice may count its tokens differently
        made = files()
    lay_out(hf_home / "hub", NAME, REVISION, made)


@cache
def files() -> Mapping[str, bytes]:
    """Name in the snapshot -> content."""
    tokenizer = _tokenizer()
    found = {
        "config.json": _json(CONFIG),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": _json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<s>",
                "eos_token": "</s>",
                "pad_token": "<pad>",
            }
        ),
        "encoding/encoding_dsv4.py": snapshot_encoder().encode(),
    }
    shards = _shards(tokenizer)
    where: dict[str, str] = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        where |= dict.fromkeys(tensors, name)
        found[name] = _safetensors(tensors)
    size = sum(2 * tensor.size for tensors in shards for tensor in tensors.values())
    found["model.safetensors.index.json"] = _json({"metadata": {"total_size": size}, "weight_map": where})
    return found


def _tokenizer() -> Tokenizer:
    """Byte-level pairs, learned from this very file."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([Path(__file__).read_text()], trainer)
    return tokenizer


def _shards(tokenizer: Tokenizer) -> list[dict[str, Weights]]:
    """The tensors of each file."""
    random = np.random.default_rng(0)

    def some(*shape: int) -> Weights:
        return random.normal(0, 0.02, shape).astype(np.float32)

    head = some(VOCABULARY, WIDTH) * 10
    words = {token.removeprefix("Ġ"): number for token, number in tokenizer.get_vocab().items()}  # Ġ: a space before
    written = {number for word, number in words.items() if word.isascii() and word.isalpha()}
    head[[number for number in range(VOCABULARY) if number not in written]] = 0  # never the most likely one
    head[CONFIG["eos_token_id"]] = some(WIDTH) * 10 * ENDS
    layers = []
    for number in range(2):
        layer = {
            "self_attn.q_proj": some(WIDTH, WIDTH),
            "self_attn.k_proj": some(KEYS, WIDTH),
            "self_attn.v_proj": some(KEYS, WIDTH),
            "self_attn.o_proj": some(WIDTH, WIDTH),
            "mlp.gate_proj": some(INNER, WIDTH),
            "mlp.up_proj": some(INNER, WIDTH),
            "mlp.down_proj": some(WIDTH, INNER),
            "input_layernorm": np.ones(WIDTH, np.float32),
            "post_attention_layernorm": np.ones(WIDTH, np.float32),
        }
        layers.append({f"model.layers.{number}.{name}.weight": tensor for name, tensor in layer.items()})
    ends = {
        "model.embed_tokens.weight": some(VOCABULARY, WIDTH) * 50,
        "model.norm.weight": np.ones(WIDTH, np.float32),
        "lm_head.weight": head,
    }
    return [*layers, ends]


def _safetensors(tensors: Mapping[str, Weights]) -> bytes:
    """Header length, header, data; as bfloat16, which is the upper half of a float32."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        content = (tensor.view(np.uint32) >> 16).astype("<u2").tobytes()
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
