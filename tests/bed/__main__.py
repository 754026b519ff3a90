"""A bed to try things on by hand: `python -m tests.bed`, as root, from the checkout. It goes when the shell ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .bed import Bed
from .packages import install_packages

WELCOME = """\
Two hosts are up. This shell is the client: on their LAN, with no way anywhere else.
  ssh -F {ssh_config} spark-head      (spark-worker, and the other aliases in that file)
  dspark -i {inventory} up
Everything ends with this shell.
"""


def main() -> int:
    """Open a bed around a shell."""
    install_packages()
    bed = Bed.start()
    try:
        sys.stdout.write(WELCOME.format(ssh_config=bed.ssh_config, inventory=bed.inventory()))
        sys.stdout.flush()
        tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PS1": "client$ "}
        return subprocess.run(
            bed.on_lan("bash", "--norc"), check=False, cwd=bed.client, env=bed.environment(tools)
        ).returncode
    finally:
        bed.close()


if __name__ == "__main__":
    raise SystemExit(main())
