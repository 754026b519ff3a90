"""`dspark`, and `python -m dspark_deploy`."""

from __future__ import annotations

import gc
import os
import sys

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main as run


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.platform == "win32":
        sys.exit("dspark does not run on Windows itself: use it inside WSL")
    # A closed stream (`>&-`) is None: what would go there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  likewise
    for stream in (sys.stdout, sys.stderr):
        # A log line or a name that the terminal's encoding can't show must not end the command.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are TextIOWrapper here
    # Modules are loaded and kept: looking for garbage among them costs a tenth of a command's start.
    gc.set_threshold(100_000)
    register_all()
    sys.exit(run())


if __name__ == "__main__":
    main()
