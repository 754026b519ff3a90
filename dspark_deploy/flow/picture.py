"""`budget --plot`: the picture as a file."""

from __future__ import annotations

from pathlib import Path

from dspark_deploy.capacity.picture import FORMATS, draw
from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.budget import Answer


def refuse_format(path: Path) -> None:
    """Raises ConfigError where the file's ending is none that can be drawn."""
    if _format(path) not in FORMATS:
        raise ConfigError(
            f"--plot {path}: can't draw {path.suffix or 'a file without ending'}",
            remedy=f"name a file that ends in .{', .'.join(FORMATS)}",
        )


def write_picture(answer: Answer, path: Path) -> None:
    """Draw the answer. Raises ConfigError where the file can't be written."""
    picture = draw(answer.work, answer.lane, _format(path))
    try:
        path.write_bytes(picture)
    except OSError as error:
        remedy = "give another file with --plot"
        raise ConfigError(f"{path} can't be written: {error.strerror}", remedy=remedy) from error


def _format(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()
