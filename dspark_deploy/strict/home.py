"""`~` in a path that a file or a variable of this machine holds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def from_home(path: Path) -> Path:
    """With `~` and `~user` written out; `~` of a user whom nobody knows stays as it stands, as in a shell."""
    with suppress(RuntimeError):  # that is how pathlib says that there is no such user
        return path.expanduser()
    return path
