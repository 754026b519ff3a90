"""Before anything is changed: a node that can't do what it is asked is a refusal, not a launch that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dspark_deploy.errors import CheckRefused, StepFailed


@contextmanager
def untouched() -> Iterator[None]:
    """Nothing is changed in the body. Raises CheckRefused in place of StepFailed, whose exit code would say undone."""
    try:
        yield
    except StepFailed as error:
        raise CheckRefused(error.message, why=error.why, remedy=error.remedy, node=error.node) from error
