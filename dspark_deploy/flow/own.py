"""What the pair of the inventory is known for on this controller, for arithmetic that asks no host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from dspark_deploy.capacity.measurements import Boot, Sweep
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.intention import read_settings
from dspark_deploy.flow.own_boots import own_boots
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import load_inventory
from dspark_deploy.patch import Patch
from dspark_deploy.plan.resolve import Workload


@dataclass(frozen=True, slots=True)
class Own:
    """Boots and sweeps, the newest first."""

    boots: tuple[Boot, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    patches: tuple[Patch, ...] = ()  # that the inventory names

    def patches_of(self, workload: Workload) -> frozenset[str]:
        """File names of all that changes the image before it serves: some change its scheduler."""
        named = (*workload.family.patches, *workload.profile.patches, *self.patches)
        here = [patch for patch in named if patch.family == workload.family.name]
        files = [name for patch in here for name in (*(each.file for each in patch.programs), *patch.files)]
        return frozenset(PurePosixPath(name).name for name in files)


NOTHING = Own()


def own_of(wish: Wish) -> Own:
    """Nothing where no inventory names a pair. Raises ConfigError for one that can't be read."""
    settings = read_settings(wish)
    if not (settings.inventory.exists() or wish.inventory):
        return NOTHING
    # The benchmarks' results bring their client along, which takes a tenth of a second: most ask without a pair.
    from dspark_deploy.flow.own_sweeps import own_sweeps  # noqa: PLC0415  see the line above

    inventory, models = load_inventory(settings.inventory), catalogue_of(wish).models()
    boots, sweeps = own_boots(wish, inventory.name, models), own_sweeps(wish, inventory.name, models)
    return Own(boots, sweeps, inventory.patches)
