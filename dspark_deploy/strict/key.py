"""An API key: one line of visible ASCII. It is never shown, not even in the error that refuses it."""

from __future__ import annotations

import stat
from pathlib import Path

from pydantic import SecretStr

from dspark_deploy.strict.document import read_text
from dspark_deploy.strict.model import Mistake

_WRITE = "write one key on one line"
_LONGEST = 4096  # characters; servers refuse headers of several times that, and a system such variables


def key_in(text: str) -> SecretStr:
    """The key that `text` is; a line end behind it is no part of it. Raises Mistake."""
    lines = text.splitlines()
    if not any(line.strip() for line in lines):
        raise Mistake("is empty", remedy=_WRITE)
    if len(lines) > 1:
        raise Mistake(f"holds {len(lines)} lines", remedy=_WRITE)
    if not all("!" <= each <= "~" for each in lines[0]):
        why = "holds a blank or a character that no HTTP header carries"
        raise Mistake(why, remedy="write the key alone, in visible ASCII characters")
    if len(lines[0]) > _LONGEST:
        raise Mistake(f"holds {len(lines[0])} characters", remedy=f"write a key of at most {_LONGEST}")
    return SecretStr(lines[0])


def read_key(path: Path) -> SecretStr:
    """The key in a file that its owner alone may read. Raises Mistake, and ConfigError where it can't be read."""
    if not path.is_file():
        why = "is no regular file" if path.exists() else "is not there"
        raise Mistake(why, remedy="name a file that holds one key, or name no key file")
    key = key_in(read_text(path, absent="it was there a moment ago"))
    refuse_readable(path)
    return key


def refuse_readable(path: Path) -> None:
    """Raise Mistake where others than its owner may do anything with a file that holds a key."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Mistake("can be read by others", remedy=f"chmod 600 {path}")
