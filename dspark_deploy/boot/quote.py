"""A log line as it may be shown: short, printable, and without the secrets that an engine prints."""

from __future__ import annotations

import re

LIMIT = 320  # characters
MASK = "***"

_SECRETS = (
    (
        re.compile(
            r"""(['"]?(?:api[-_]?keys?|hf_token|token)['"]?\s*[:=]\s*)(\[[^\]]*\]?|'[^']*'?|"[^"]*"?)""", re.IGNORECASE
        ),
        r"\1" + MASK,
    ),
    (re.compile(r"(VLLM_API_KEY|DSPARK_API_KEYS|HF_TOKEN|HUGGING_FACE_HUB_TOKEN)=(\S+)"), r"\1=" + MASK),
    (re.compile(r"\bBearer\s+[\w.~+/=-]{6,}"), f"Bearer {MASK}"),
    (re.compile(r"\b(?:hf_|sk-)[A-Za-z0-9_-]{8,}"), MASK),
)


def quote(text: str, around: int = 0) -> str:
    """The line, shortened to LIMIT characters near position `around`, control characters replaced, secrets masked."""
    begin = 0 if len(text) <= LIMIT or around < LIMIT // 2 else around - LIMIT // 4
    # Masked with some context to spare, so that a secret which the cut would halve is seen whole.
    part = text[max(0, begin - LIMIT) : begin + 2 * LIMIT]
    head = part[: begin - max(0, begin - LIMIT)]
    shown = masked(part)[len(masked(head)) :] if head else masked(part)
    short = "".join(char if char.isprintable() else " " for char in shown[:LIMIT]).strip()
    return f"{'...' if begin else ''}{short}{'...' if len(shown) > LIMIT else ''}"


def masked(text: str) -> str:
    """The text with the secrets that an engine prints made unreadable, at its full length."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
