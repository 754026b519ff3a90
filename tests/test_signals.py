"""Whatever ends a command by a signal is answered, also while the command is only starting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DSPARK = Path(sys.executable).with_name("dspark")
# Python runs this before anything else, and the tool's own first import of click finds it: the signal comes just there.
SITECUSTOMIZE = """
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder())
"""

AS_MEANT = """
import os, signal, sys
signal.signal(int(sys.argv[1]), signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("number", "module"),
    [
        (signal.SIGINT, "click"),
        (signal.SIGTERM, "click"),
        (signal.SIGHUP, "click"),
        (signal.SIGTERM, "dspark_deploy.flow.down"),
    ],
    ids=["ctrl-c", "term", "hup", "term-in-the-command"],
)
def test_a_signal_while_the_command_loads_is_told(tmp_path: Path, number: signal.Signals, module: str) -> None:
    ran = _signalled(tmp_path, number, module)
    assert (ran.returncode, ran.stdout) == (130, "")
    assert "interrupted: nothing was changed" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_under_nohup_the_end_of_the_terminal_ends_nothing(tmp_path: Path) -> None:
    ran = _signalled(tmp_path, signal.SIGHUP, "dspark_deploy.flow.down", ignored=True)
    assert ran.returncode == 2
    assert "nothing.yaml" in ran.stderr


def _signalled(
    folder: Path, number: signal.Signals, module: str, *, ignored: bool = False
) -> subprocess.CompletedProcess[str]:
    """`down` without an inventory, which gets a signal as soon as `module` is imported.

    Whoever runs the tests may ignore that signal, as nohup and a shell's background jobs do: it is set as it is meant.
    """
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE.format(module=module, number=int(number)))
    argv = [*(["nohup"] if ignored else []), str(DSPARK), "down", "-i", "nothing.yaml"]
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", AS_MEANT, str(int(number)), *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
