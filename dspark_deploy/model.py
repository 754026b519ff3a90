"""Models: a checkpoint, where it lies and what is known of it. Data, one file a model."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, PositiveInt, model_validator

from dspark_deploy.bundled import SearchPath
from dspark_deploy.strict import Mistake, Name, Strict, Text, validate

Revision = Annotated[str, Field(pattern="^[0-9a-f]{40}$", description="a commit of 40 hex digits, in quotes")]
Directory = Annotated[
    str,
    Field(
        pattern=r"^[^/.\x00-\x1f][^/\x00-\x1f]*(/[^/.\x00-\x1f][^/\x00-\x1f]*)*$",
        description="a folder below hf_home: a relative path without `..`",
    ),
]
HubId = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$", description="org/name, as the hub writes it")]


class Model(Strict):
    """A hub snapshot (`id`, with or without `revision`) or a plain directory below the cache mount (`directory`)."""

    name: Name
    id: HubId | None = None  # org/name on the hub
    revision: Revision | None = None  # None: refs/main decides
    directory: Directory | None = None  # relative to hf_home
    served_name: Text  # what clients put in `model`
    draft_block_size: PositiveInt | None = None  # tokens the checkpoint drafts at once, where it is known
    families: tuple[Name, ...]  # image families that this checkpoint was published on
    ships_encoder: bool = False  # encoding/encoding_dsv4.py is part of the snapshot

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.id is None) == (self.directory is None):
            raise Mistake(
                "a model lies either on the hub or in a directory",
                remedy="give either `id` (org/name) or `directory` (below hf_home)",
            )
        if self.directory is not None and self.revision is not None:
            raise Mistake("a plain directory has no revision", remedy="leave `revision` out")
        return self


def load_model(name: str, search: SearchPath) -> Model:
    """The model of that name, or in the file at that path. Raises ConfigError with file, line and key."""
    document = search.read("model", name)
    return validate(Model, document.data, document.where)
