"""Write the golden files anew: `make golden`, after a change that was meant to change what is rendered.

Then read the diff: it is what the next `dspark up` would change on everybody's nodes.
"""

from __future__ import annotations

from pathlib import Path

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.inventory import load_inventory
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.resolve import resolve, resolve_workload
from dspark_deploy.render.render import render

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = ("compose.yaml", ".env", "serve.sh", "manifest.json")  # prepare.py is templates/prepare.py itself


def rendered() -> dict[str, str]:
    """`PROFILE/NODE/FILE` -> content, for both ranks of every bundled profile."""
    inventory = load_inventory(GOLDEN / "inventory.yaml")
    catalogue = Catalogue(SearchPath((data_folder("profiles"),)))
    files: dict[str, str] = {}
    for profile in catalogue.profiles():
        release = render(resolve(inventory, catalogue, resolve_workload(catalogue, profile.name)))
        for node in ("head", "worker"):
            files |= {f"{profile.name}/{node}/{name}": release.of(node)[name].content for name in FILES}
    return files


def stored() -> dict[str, str]:
    """What lies in tests/golden, in the same form."""
    paths = [path for path in GOLDEN.glob("*/*/*") if path.is_file()]
    return {path.relative_to(GOLDEN).as_posix(): path.read_bytes().decode() for path in paths}


def refresh() -> None:
    """Make tests/golden hold exactly what is rendered now."""
    wanted = rendered()
    for name in stored().keys() - wanted.keys():
        (GOLDEN / name).unlink()
    for name, content in wanted.items():
        path = GOLDEN / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())


if __name__ == "__main__":
    refresh()
