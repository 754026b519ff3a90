"""Ask a node what one of its releases serves."""

from __future__ import annotations

from dspark_deploy.plan.served import Served
from dspark_deploy.remote.host import Host
from dspark_deploy.render.manifest import parse_served

READ_S = 15


def read_served(host: Host, pair: str, release: str) -> Served | None:
    """From the manifest that the node keeps; None where it keeps none, or one of another tool version's shape."""
    manifest = f".local/share/dspark/{pair}/releases/{release}/manifest.json"
    result = host.run(("cat", manifest), timeout_s=READ_S)
    return parse_served(result.stdout) if result.returncode == 0 else None


def read_files(host: Host, pair: str, release: str) -> dict[str, str] | None:
    """A release's files, name -> content; None where the node keeps no such release whole."""
    files: dict[str, str] | None = host.call("read_release", {"pair": pair, "release": release}, timeout_s=READ_S)[
        "files"
    ]
    return files
