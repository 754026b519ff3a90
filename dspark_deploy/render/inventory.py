"""What `init` writes: an inventory, and where an env file of upstream's asks for one, a profile and a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dspark_deploy.model import Model
from dspark_deploy.plan.draft import Draft, Said
from dspark_deploy.render.quoting import plain_value
from dspark_deploy.render.template import fill

_ENVIRONMENT = "environment."


def inventory_file(draft: Draft, notes: Sequence[str], *, origin: str, tool: str) -> str:
    """An inventory with its reasons as comments. `origin` is what it was made from."""
    return fill("inventory.yaml", said=draft, notes=notes, origin=origin, tool=tool)


def profile_file(name: str, base: str, values: Mapping[str, Said], *, origin: str, tool: str) -> str:
    """A profile that says what differs from `base`. Entries of the environment are `environment.NAME`."""
    own = {key: said for key, said in values.items() if not key.startswith(_ENVIRONMENT)}
    entries = {key.removeprefix(_ENVIRONMENT): said for key, said in values.items() if key.startswith(_ENVIRONMENT)}
    title = f"{base}, as {origin} has it"
    return fill(
        "profile.yaml", profile=name, base=base, title=title, values=own, environment=entries, origin=origin, tool=tool
    )


def model_file(model: Model, *, like: str, origin: str, tool: str) -> str:
    """A model of that name, all of it."""
    values = model.model_dump(mode="json", exclude_none=True)
    texts = {key: _list(value) if isinstance(value, list) else plain_value(value) for key, value in values.items()}
    return fill("model.yaml", values=texts, like=like, origin=origin, tool=tool)


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(plain_value, values))}]"
