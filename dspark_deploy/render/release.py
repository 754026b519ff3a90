"""The release: the pair's rendered files, and the id that names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """One file. What is rendered is UTF-8 with `\\n` line ends; of a user's own, bytes that are no UTF-8 stand in
    `content` as lone surrogates (PEP 383).
    """

    content: str
    mode: int = 0o600

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return self.content.encode(errors="surrogateescape")


@dataclass(frozen=True, slots=True)
class Release:
    """Both nodes' files under one id; each node keeps its half under that id."""

    id: str  # twelve hex digits
    head: Mapping[str, File]  # relative name -> file; manifest.json included
    worker: Mapping[str, File]

    def of(self, node: str) -> Mapping[str, File]:
        """The half that `node` ("head" or "worker") keeps."""
        return {"head": self.head, "worker": self.worker}[node]
