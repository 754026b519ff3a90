"""Profiles, models and families by name, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dspark_deploy.bundled import Kind, SearchPath, named_in
from dspark_deploy.errors import ConfigError
from dspark_deploy.family import Family, load_family
from dspark_deploy.model import Model, load_model
from dspark_deploy.profile import Profile, Resolved, load_profile
from dspark_deploy.strict import Given

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the data files on a search path offer. Where one is asked for, ConfigError names file, line and key.

    Where all are, a file that can't be read is left out: it is nobody's wish yet, and must not stand in its way.
    """

    search: SearchPath

    def profile(self, name: str, given: Sequence[Given] = ()) -> Resolved:
        """One profile by name, alias or path, with overrides over it, the strongest first."""
        return load_profile(name, self.search, given)

    def model(self, name: str) -> Model:
        """One model by name or path."""
        return load_model(name, self.search)

    def family(self, name: str) -> Family:
        """One family by name or path."""
        return load_family(name, self.search)

    def profiles(self) -> Iterator[Profile]:
        """All profiles, by name."""
        return (each for each in self.every_profile().values() if isinstance(each, Profile))

    def families(self) -> Iterator[Family]:
        """All families, by name."""
        return (each for each in self.every_family().values() if isinstance(each, Family))

    def models(self) -> tuple[Model, ...]:
        """All models, by name."""
        return tuple(each for each in self._every("model", self.model).values() if isinstance(each, Model))

    def every_profile(self) -> Mapping[str, Profile | ConfigError]:
        """Each file's profile, or what is wrong with the file."""
        return self._every("profile", self._usable_profile)

    def every_family(self) -> Mapping[str, Family | ConfigError]:
        """Each file's family, or what is wrong with the file."""
        return self._every("family", self.family)

    def _usable_profile(self, name: str) -> Profile:
        resolved = self.profile(name)
        kinds: tuple[Kind, ...] = ("family", "model")
        for kind in kinds:
            with named_in(lambda: resolved.sources[kind]):  # noqa: B023  called before the loop goes on
                self.search.find(kind, getattr(resolved.profile, kind))
        return resolved.profile

    def _every(self, kind: Kind, load: Callable[[str], T]) -> dict[str, T | ConfigError]:
        found: dict[str, T | ConfigError] = {}
        for name in sorted(self.search.files(kind)):
            try:
                found[name] = load(name)
            except ConfigError as error:
                found[name] = error
        return found
