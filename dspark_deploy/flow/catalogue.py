"""`profiles` and `families`: what the data files on this machine offer, and where each value comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dspark_deploy.bundled import config_home, search_path
from dspark_deploy.errors import ConfigError
from dspark_deploy.family import Family
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.profile import Profile

Read = TypeVar("Read")
Line = TypeVar("Line")


@dataclass(frozen=True, slots=True)
class Listing(Generic[Line]):
    """What can be chosen, and by name the files that can't be read: they stand in nobody's way but their own."""

    lines: tuple[Line, ...]
    broken: Mapping[str, ConfigError]


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One profile in the list. Lengths are tokens."""

    name: str
    aliases: tuple[str, ...]
    title: str
    family: str
    model: str
    max_model_len: int
    max_num_seqs: int


@dataclass(frozen=True, slots=True)
class ProfileDetail:
    """One profile with `extends` followed: value by name, and the place each came from."""

    name: str
    file: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FamilyLine:
    """One family in the list."""

    name: str
    title: str
    image: str
    digest: str | None


@dataclass(frozen=True, slots=True)
class FamilyDetail:
    """One family as its file says it."""

    name: str
    file: str
    values: Mapping[str, Any]


def list_profiles(wish: Wish) -> Listing[ProfileLine]:
    """All profiles, by name."""
    return _listing(catalogue_of(wish).every_profile(), _profile_line)


def _profile_line(profile: Profile) -> ProfileLine:
    return ProfileLine(
        profile.name,
        profile.aliases,
        profile.title,
        profile.family,
        profile.model,
        profile.max_model_len,
        profile.max_num_seqs,
    )


def _listing(every: Mapping[str, Read | ConfigError], line: Callable[[Read], Line]) -> Listing[Line]:
    broken = {name: each for name, each in every.items() if isinstance(each, ConfigError)}
    return Listing(tuple(line(each) for each in every.values() if not isinstance(each, ConfigError)), broken)


def show_profile(wish: Wish, name: str) -> ProfileDetail:
    """One profile, resolved. Raises ConfigError with the nearest name."""
    catalogue = catalogue_of(wish)
    resolved = catalogue.profile(name)
    profile = resolved.profile
    file = catalogue.search.find("profile", profile.name if "/" not in name else name)
    return ProfileDetail(profile.name, str(file), profile.model_dump(mode="json"), resolved.sources)


def list_families(wish: Wish) -> Listing[FamilyLine]:
    """All families, by name."""
    every = catalogue_of(wish).every_family()
    return _listing(every, lambda each: FamilyLine(each.name, each.title, each.image, each.digest))


def show_family(wish: Wish, name: str) -> FamilyDetail:
    """One family. Raises ConfigError with the nearest name."""
    catalogue = catalogue_of(wish)
    family: Family = catalogue.family(name)
    file = catalogue.search.find("family", name)
    return FamilyDetail(family.name, str(file), family.model_dump(mode="json"))


def catalogue_of(wish: Wish) -> Catalogue:
    """The data files that this wish sees: ./profiles, the user's own, the bundled ones."""
    return Catalogue(search_path(wish.directory, config_home(wish.environment, wish.home)))
