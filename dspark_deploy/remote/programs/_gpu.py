"""The GPU and who holds it, as nvidia-smi tells them."""

from __future__ import annotations

from dspark_deploy.remote.programs._command import Command
from dspark_deploy.remote.programs._frame import find_on_path
from dspark_deploy.remote.programs._system import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = "--format=csv,noheader,nounits"
LIMIT_S = 5.0  # a driver that hangs holds it for ever


class NvidiaSmi:
    """Both questions, asked at once and in the background: without persistence mode the driver is loaded first."""

    def __init__(self, root: str) -> None:
        self._root = root
        program = find_on_path("nvidia-smi")
        words = ("--query-gpu=name,driver_version", "--query-compute-apps=pid,process_name,used_memory")
        self._gpus, self._apps = (Command(program and (program, each, FORMAT)) for each in words)

    def gpus(self) -> list[dict[str, Any]]:
        """Each GPU. Raises LookupError where there is no tool or no driver, TimeoutError where it hangs."""
        rows = [line.rpartition(",") for line in _lines(self._gpus)]
        return [{"name": name.strip(), "driver": driver.strip()} for name, comma, driver in rows if comma]

    def processes(self) -> list[dict[str, Any]]:
        """Each process that computes on it. Raises as `gpus` does."""
        found = []
        for line in _lines(self._apps):
            pid, _, rest = line.partition(",")
            name, _, used = rest.rpartition(",")
            if pid.strip().isdigit():
                short = name.strip().rpartition("/")[2]
                found.append(process(self._root, int(pid), short, _mebibytes(used.strip())))
        return found


def _lines(command: Command) -> list[str]:
    """What it answered; a line that is no row, a warning of the driver for example, is the caller's to pass over."""
    if command.argv is None:
        raise LookupError("nvidia-smi: not found on PATH")
    code, said = command.read(LIMIT_S)
    if code:
        raise LookupError(said.splitlines()[0] if said else f"nvidia-smi ended with exit code {code}")
    return said.splitlines()


def _mebibytes(text: str) -> int | None:
    """`412`; None for [N/A], which a GB10 says of most memory."""
    return int(text) << 20 if text.isdigit() else None
