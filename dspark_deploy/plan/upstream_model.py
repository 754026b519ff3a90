"""Which checkpoint an env file of upstream's means: its start script resolves it from up to six keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dspark_deploy.model import Model
from dspark_deploy.plan.upstream_keys import ABLITERATED, OFFICIAL, OFFICIAL_REVISION


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A hub id at a revision (None: the default branch), or a path in the container."""

    id: str | None
    path: str | None
    revision: str | None
    deciding: tuple[str, ...]  # the keys that say so, the one that names it first; empty: the file says nothing

    def __str__(self) -> str:
        """As it is asked for."""
        where = f" at {self.revision[:8]}" if self.revision else ""
        return f"{self.id or self.path}{where or (' without a revision' if self.id else '')}"

    def is_in(self, model: Model, mount: str) -> bool:
        """Whether that model is it. `mount` is where hf_home lies in the container."""
        if self.path is not None:
            return model.directory is not None and self.path.rstrip("/") == f"{mount}/{model.directory}"
        return model.id == self.id and model.revision == self.revision

    @property
    def unused(self) -> str:
        """Why another key of these decides nothing."""
        if not self.deciding:
            return "without a checkpoint that it belongs to it decides nothing"
        return f"{self.deciding[0]} decides which checkpoint is served"


def checkpoint(given: Mapping[str, str]) -> Checkpoint:
    """What those keys mean, as upstream's start script has it since ABLITERATED exists; before, DSPARK_MODEL alone."""
    if given.get("ABLITERATED") == "1":
        named = _first(given, "DSPARK_MODEL_ABLITERATED", "ABLITERATED")
        identity = given.get("DSPARK_MODEL_ABLITERATED", ABLITERATED)
        deciding = _present(given, named, "ABLITERATED", "DSPARK_REVISION_ABLITERATED")
        return Checkpoint(identity, None, given.get("DSPARK_REVISION_ABLITERATED") or None, deciding)
    named = _first(given, "DSPARK_MODEL_OFFICIAL", "DSPARK_MODEL", "ABLITERATED", "DSPARK_REVISION")
    identity = given.get("DSPARK_MODEL_OFFICIAL") or given.get("DSPARK_MODEL") or OFFICIAL
    deciding = _present(given, named, "ABLITERATED", "DSPARK_REVISION")
    if identity.startswith("/"):
        return Checkpoint(None, identity, None, _present(given, named))
    revision = given.get("DSPARK_REVISION", OFFICIAL_REVISION if identity == OFFICIAL else "")
    return Checkpoint(identity, None, revision or None, deciding)


def _first(given: Mapping[str, str], *names: str) -> str | None:
    return next((name for name in names if given.get(name)), None)


def _present(given: Mapping[str, str], *names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None and name in given))
