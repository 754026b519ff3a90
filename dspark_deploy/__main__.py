"""`dspark`, and `python -m dspark_deploy`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from dspark_deploy.errors import ExitCode


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
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupt)
    try:
        # Here, so that a signal finds its answer also while these load, which takes most of a short command's time.
        from dspark_deploy.cli.commands import register_all  # noqa: PLC0415  see the line above
        from dspark_deploy.cli.group import main as run  # noqa: PLC0415  likewise

        register_all()
        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: nothing was changed\n")
        code = ExitCode.INTERRUPTED
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Until a command has its own way to end (remote/clock.py): every signal is what Ctrl-C is to Python."""
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
