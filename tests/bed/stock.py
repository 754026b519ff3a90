"""What a bed's nodes are born with: how large their disk is, which images dockerd has, which models the cache holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.rehearsal.standin import snapshots

from . import images


@dataclass(frozen=True, slots=True)
class Stock:
    """One kind of bed. Beds of all kinds share names and the lock (keeper.Names)."""

    name: str  # of its disk in the cache folder
    disk_size: str  # as truncate reads it
    fingerprint: Callable[[], str]  # changes with the images
    archive: Callable[[], AbstractContextManager[Path]]  # for `docker load`; asked for only when there is no disk yet
    write_models: Callable[[Path], None]  # into a Hugging Face home


@contextmanager
def _standin_images() -> Iterator[Path]:
    yield images.archive()


STANDIN = Stock("disk", "3G", images.archive_name, _standin_images, snapshots.write_all)
"""The stand-in for vLLM in the images of both families, and the published models in a few KiB."""
