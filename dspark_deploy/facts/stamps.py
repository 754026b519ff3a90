"""The engine's time stamps: RFC 3339 to the nanosecond. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

SECOND = 1_000_000_000  # nanoseconds
_PARTS = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def nanoseconds(stamp: str) -> int:
    """Since the epoch; 0 where it is no time stamp."""
    match = _PARTS.fullmatch(stamp)
    if match is None:
        return 0
    whole, fraction, zone = match.groups()
    seconds = datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp()
    return int(seconds) * SECOND + int((fraction or "0").ljust(9, "0"))


def shifted(stamp: str, seconds: float) -> str:
    """The stamp so much later, to the microsecond; as it is where it is none."""
    at = nanoseconds(stamp)
    return stamp if not at else rfc3339(at + round(seconds * SECOND))


def rfc3339(at: int) -> str:
    """Nanoseconds since the epoch, to the microsecond."""
    seconds, rest = divmod(at, SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"
