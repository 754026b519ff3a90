"""The API key on a node: looked at, kept, taken away. It travels on the program's standard input and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from dspark_deploy.remote.host import Host

KEY_S = 15


@dataclass(frozen=True, slots=True)
class KeptKey:
    """What a node keeps, held against what it should."""

    same: bool  # it keeps just that
    at: float | None  # when what it keeps was written, seconds since the epoch, its clock; None: it keeps none


def look_at_key(host: Host, pair: str, key: SecretStr | None) -> KeptKey:
    """Whether the node keeps `key`. Changes nothing; raises StepFailed or NodeUnreachable."""
    answer = _call(host, pair, key, change=False)
    return KeptKey(answer["same"], answer["at"])


def keep_key(host: Host, pair: str, key: SecretStr | None) -> SecretStr | None:
    """Have the node keep `key`, or none. Returns the one that it kept before. Raises StepFailed or NodeUnreachable."""
    before: str | None = _call(host, pair, key, change=True)["before"]
    return None if before is None else SecretStr(before)


def _call(host: Host, pair: str, key: SecretStr | None, *, change: bool) -> dict[str, Any]:
    text = None if key is None else key.get_secret_value()
    return host.call("secret", {"pair": pair, "key": text, "change": change}, timeout_s=KEY_S)
