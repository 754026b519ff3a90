"""The flags of `vllm serve`, for a slip of the pen in a profile: profiles/vllm-flags-0.32.0.txt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dspark_deploy.bundled import data_folder
from dspark_deploy.strict import read_text


@cache
def known_flags() -> Mapping[str, tuple[str, ...]]:
    """Flag -> the words that its value is limited to; empty where it is free, or has none."""
    text = read_text(data_folder("profiles") / "vllm-flags-0.32.0.txt", absent="reinstall dspark-deploy")
    lines = (line.split() for line in text.splitlines() if line.startswith("--"))
    return {flag: tuple(words) for flag, *words in lines}
