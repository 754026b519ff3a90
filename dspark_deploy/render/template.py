"""The templates, filled in. A name that a template uses and nobody gave is an error, never an empty text."""

from __future__ import annotations

import shlex
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dspark_deploy.bundled import data_folder
from dspark_deploy.render.quoting import comment, env_string, plain_value, quoted, yaml_string


def fill(name: str, **values: object) -> str:
    """The text of `templates/NAME.j2` with these values. Ends in one newline."""
    return _templates().get_template(f"{name}.j2").render(values)


def static(name: str) -> str:
    """The text of `templates/NAME`, which is no template."""
    return (data_folder("templates") / name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(data_folder("templates")),
        autoescape=False,  # noqa: S701  no HTML: each value is quoted by a filter that its reader needs
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        yaml=yaml_string, env=env_string, shell=shlex.quote, plain=plain_value, quoted=quoted, comment=comment
    )
    return templates
