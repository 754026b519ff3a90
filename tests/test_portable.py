"""The controller's side runs on Linux and macOS: nothing of it names what only Linux has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dspark_deploy

PACKAGE = Path(dspark_deploy.__file__).parent
ON_NODES = ("remote/programs/", "rehearsal/standin/")  # these run on Linux; mypy for darwin looks at them too
LINUX_MODULES = {"ctypes", "crypt", "nis", "ossaudiodev", "spwd", "pyinotify", "prctl", "systemd"}
LINUX_NAMES = {
    "os": {"eventfd", "memfd_create", "pidfd_open", "pidfd_getfd", "setns", "splice", "unshare", "sched_setaffinity"},
    "select": {"epoll"},
    "signal": {"pidfd_send_signal", "signalfd", "sigtimedwait"},
    "socket": {"AF_NETLINK", "AF_PACKET", "SO_PEERCRED", "SO_BINDTODEVICE"},
}
PATH = re.compile(r"/(proc|sys)/[\w./-]*")  # and nothing else: no sentence about one
FILES = sorted(path for path in PACKAGE.rglob("*.py") if not str(path.relative_to(PACKAGE)).startswith(ON_NODES))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_controllers_side_names_nothing_that_only_linux_has(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert imported(tree) & LINUX_MODULES == set()
    used = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    assert used & {f"{module}.{name}" for module, names in LINUX_NAMES.items() for name in names} == set()


def test_the_controllers_side_opens_no_file_of_proc_or_sys() -> None:
    texts = {
        f"{path.relative_to(PACKAGE)}: {node.value}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PATH.fullmatch(node.value)
    }
    assert texts == set()


def imported(tree: ast.Module) -> set[str]:
    """The top-level modules that a file imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
            found |= {alias.name for alias in node.names if alias.name in LINUX_NAMES.get(node.module, ())}
    return found
