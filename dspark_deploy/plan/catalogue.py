"""Profiles, models and families by name, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dspark_deploy.bundled import SearchPath
from dspark_deploy.family import Family, load_family
from dspark_deploy.model import Model, load_model
from dspark_deploy.profile import Profile, Resolved, load_profile
from dspark_deploy.strict import Given


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the data files on a search path offer. Every method may raise ConfigError with file, line and key."""

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
        return (self.profile(name).profile for name in sorted(self.search.files("profile")))

    def families(self) -> Iterator[Family]:
        """All families, by name."""
        return (self.family(name) for name in sorted(self.search.files("family")))
