"""Whether this controller itself gets an answer where a user's client would dial."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

DIAL_S = 1.0


def answers(url: str) -> bool:
    """Whether a TCP connection to `url`'s host and port opens from here within a second."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=DIAL_S):
            return True
    except OSError:
        return False
