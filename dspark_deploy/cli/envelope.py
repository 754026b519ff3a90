"""The JSON that scripts rely on: one object on standard output, whatever happened."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import click

from dspark_deploy.errors import DsparkError, ExitCode

SCHEMA = 1
# Commands that print one object a line: their envelope is a line too.
FOLLOWING = frozenset({"watch", "logs", "supervise"})


def print_envelope(
    command: str,
    code: ExitCode,
    *,
    result: Any = None,
    warnings: Sequence[str] = (),
    errors: Sequence[DsparkError] = (),
    line: bool = False,
) -> None:
    """Print the envelope of a command that ended with `code`; in one line where it is one of many."""
    document = {
        "schema": SCHEMA,
        "command": command,
        "ok": code is ExitCode.OK,
        "exit_code": int(code),
        "result": plain(result),
        "warnings": list(warnings),
        "errors": [_error(error) for error in errors],
    }
    click.echo(json.dumps(document, indent=None if line or command in FOLLOWING else 2))


def plain(value: Any) -> Any:
    """A report as JSON's own types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, PurePath) else value


def _error(error: DsparkError) -> dict[str, str | None]:
    return {
        "code": error.id,
        "node": error.node,
        "message": error.message,
        "why": error.why,
        "remedy": error.remedy,
    }
