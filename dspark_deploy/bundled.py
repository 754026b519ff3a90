"""Where data files lie: the ones that travel with the package, and the ones that users put beside or before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from dspark_deploy.errors import ConfigError
from dspark_deploy.strict import Document, from_home, nearest, read_document

Kind = Literal["profile", "model", "family"]

_FOLDERS: Mapping[Kind, str] = {"profile": ".", "model": "models", "family": "families"}
_NOT_PROFILES = frozenset({"signatures", "measurements", "lanes"})  # data of other kinds that lies beside the profiles


@cache
def data_folder(name: Literal["templates", "profiles"]) -> Path:
    """The bundled folder: inside the package where it was installed, beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The folders that hold profiles, with `models/` and `families/` below them; the strongest first."""

    folders: tuple[Path, ...]

    def find(self, kind: Kind, name: str) -> Path:
        """The file of that name, or the file itself where a path is given.

        Raises ConfigError with the nearest name and all of them.
        """
        if "/" in name or name.endswith((".yaml", ".yml")):
            return from_home(Path(name))
        path = self.look_up(kind, name)
        if path is None:
            raise self.unknown(kind, name)
        return path

    def read(self, kind: Kind, name: str) -> Document:
        """The file of that name, which has to call itself by its file's name: one thing, one name."""
        path = self.find(kind, name)
        document = read_document(path, absent=f"name a {kind} file that exists")
        said = document.data.get("name", path.stem)
        if said != path.stem:
            message = f"is {said}, in a file called {path.name}"
            raise document.error(("name",), message, remedy=f"name the file {said}.yaml, or write `name: {path.stem}`")
        return document

    def look_up(self, kind: Kind, name: str) -> Path | None:
        """The file of that name in the strongest folder that has one."""
        return self.files(kind).get(name)

    def files(self, kind: Kind) -> dict[str, Path]:
        """All files of a kind by name. A stronger folder's file hides a weaker one's."""
        found: dict[str, Path] = {}
        for folder in reversed(self.folders):
            found |= {path.stem: path for path in sorted((folder / _FOLDERS[kind]).glob("*.yaml"))}
        if kind == "profile":
            return {name: path for name, path in found.items() if name not in _NOT_PROFILES}
        return found

    def unknown(self, kind: Kind, name: str, *, also: tuple[str, ...] = (), why: str = "") -> UnknownName:
        """No file of that name. `also` are further names that would have done."""
        known = sorted({*self.files(kind), *also})
        guess = nearest(name, known)
        hint = f"did you mean `{guess}`? " if guess else ""
        return UnknownName(f"no {kind} is called `{name}`", why=why, remedy=f"{hint}known: {', '.join(known)}")


class UnknownName(ConfigError):
    """No data file has that name."""


@contextmanager
def named_in(place: Callable[[], str]) -> Iterator[None]:
    """Let the error of a name that is unknown say where the name stands: a file and its line, a flag, a variable."""
    try:
        yield
    except UnknownName as error:
        raise ConfigError(f"{place()}: {error.message}", why=error.why, remedy=error.remedy) from error


def search_path(cwd: Path, config_home: Path) -> SearchPath:
    """`./profiles`, then the user's own below `config_home` (`~/.config`), then the bundled ones."""
    folders = (cwd / "profiles", config_home / "dspark" / "profiles", data_folder("profiles"))
    once = {folder.resolve(): folder for folder in reversed(folders)}  # in a checkout the first is the last
    return SearchPath(tuple(reversed(once.values())))


def config_home(environ: Mapping[str, str], home: Path) -> Path:
    """XDG's rule: `$XDG_CONFIG_HOME` where it is an absolute path, else `~/.config`."""
    given = Path(environ.get("XDG_CONFIG_HOME", ""))
    return given if given.is_absolute() else home / ".config"
