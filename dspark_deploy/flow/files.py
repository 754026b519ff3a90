"""Files on this machine that are written together, and never over one that is there unless told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dspark_deploy.errors import ConfigError


class NewFiles:
    """Texts by path. Nothing is written before `write`."""

    def __init__(self, *, force: bool) -> None:
        self._force = force
        self._texts: dict[Path, str] = {}

    @property
    def texts(self) -> Mapping[Path, str]:
        """Path -> text, in the order in which they were added."""
        return self._texts

    def expect(self, path: Path) -> None:
        """Raise ConfigError where a file is there that may not be written over."""
        if path.exists() and not self._force:
            raise ConfigError(
                f"{path} is there already, and is not written over",
                remedy="say --force to write it anew, or name another file with -i",
            )

    def add(self, path: Path, text: str) -> None:
        """One more. Raises ConfigError, as `expect`."""
        self.expect(path)
        self._texts[path] = text

    def write(self, check: Callable[[Path], object]) -> None:
        """Write all of them: first beside their places, then, once `check` took the last one, into them.

        Raises ConfigError where one can't be written; what `check` raises names the file by its part's name.
        """
        parts = {path: path.with_name(f".{path.name}.part") for path in self._texts}
        try:
            for path, text in self._texts.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                parts[path].write_text(text, encoding="utf-8", newline="\n")
            check(parts[list(self._texts)[-1]])
            for path, part in parts.items():
                part.replace(path)
        except OSError as error:
            raise ConfigError(
                f"{error.filename} can't be written: {error.strerror}", remedy="name another file with -i"
            ) from error
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)
