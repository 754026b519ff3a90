"""From a command line to what is meant: files and variables read, nothing asked of any node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.bundled import named_in
from dspark_deploy.capacity.measurements import Boot
from dspark_deploy.checks.every import expect_known
from dspark_deploy.errors import ConfigError
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.key import key_of
from dspark_deploy.flow.own_boots import own_boots
from dspark_deploy.flow.patches import read_patches
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory, Node, load_inventory
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.patches import Carried
from dspark_deploy.plan.resolve import Workload, resolve, resolve_workload
from dspark_deploy.profile import OVERRIDABLE
from dspark_deploy.settings import Settings, load_settings
from dspark_deploy.strict import Given, read_document


@dataclass(frozen=True, slots=True)
class Intention:
    """What the user means, as far as this machine can tell."""

    inventory: Inventory
    catalogue: Catalogue
    workload: Workload
    warnings: tuple[str, ...]
    online: bool = False  # start also where the caches are not complete
    skip: tuple[str, ...] = ()  # ids of checks whose failures are let pass
    keyed: bool = False  # there is a key for the API to ask for
    patches: tuple[Carried, ...] = ()  # the user's own, with their files
    boots: tuple[Boot, ...] = ()  # of the pair and model, on this controller's record; the newest first

    @property
    def images(self) -> tuple[str, ...]:
        """The image references that a probe has to look up."""
        return (self.workload.image,)

    @property
    def ports(self) -> tuple[int, ...]:
        """See ports_of."""
        return ports_of(self.inventory)

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """See paths_of."""
        return paths_of(self.inventory)

    @property
    def complete(self) -> bool:
        """Whether nothing is left for a node to tell."""
        rdma = self.workload.family.rdma
        return all(_complete(node, rdma=rdma) for node in nodes_of(self.inventory).values())

    def resolve(self, facts: Mapping[str, NodeFacts] | None) -> Deployment:
        """The deployment; `facts` fill in what the inventory leaves open."""
        return resolve(
            self.inventory,
            self.catalogue,
            self.workload,
            facts,
            excused=self.skip,
            keyed=self.keyed,
            patches=self.patches,
        )


def load_intention(wish: Wish) -> Intention:
    """Read inventory, variables, profile, model and family. Raises ConfigError with file, line and key."""
    expect_known(wish.skip)
    _, found = load_meant(wish)
    if found is None:
        raise ConfigError(
            f"no profile is named, and {read_settings(wish).inventory} has no default",
            remedy="add `-p agent-1m`, or `profile: agent-1m` to the inventory; `dspark profiles` lists them",
        )
    return found


def load_meant(wish: Wish) -> tuple[Inventory, Intention | None]:
    """The same, for a command that has something to say where no profile is named. Raises ConfigError."""
    settings = read_settings(wish)
    inventory = _inventory(settings, wish)
    profile = wish.profile or settings.profile or inventory.profile
    if profile is None:
        return inventory, None
    catalogue = catalogue_of(wish)
    with named_in(lambda: _place_of_profile(wish, settings)):
        workload = resolve_workload(catalogue, profile, (*flags_of(wish), *settings.given))
    keyed = key_of(inventory, settings) is not None
    patches = read_patches(inventory, settings.inventory, workload, catalogue)
    boots = own_boots(wish, inventory.name, (workload.model,))
    return inventory, Intention(
        inventory, catalogue, workload, settings.warnings, wish.online, wish.skip, keyed, patches, boots
    )


def _place_of_profile(wish: Wish, settings: Settings) -> str:
    if wish.profile:
        return "--profile"
    if settings.profile_source:
        return settings.profile_source
    return read_document(settings.inventory, absent="it was there a moment ago").where(("profile",))


def load_inventory_of(wish: Wish) -> Inventory:
    """The inventory alone, for commands that serve no profile."""
    return _inventory(read_settings(wish), wish)


def read_settings(wish: Wish) -> Settings:
    """Variables and the `.env` beside the inventory."""
    return load_settings(wish.environment, OVERRIDABLE, inventory=wish.inventory, directory=wish.directory)


def _inventory(settings: Settings, wish: Wish) -> Inventory:
    inventory = load_inventory(settings.inventory)
    ssh_config = wish.ssh_config or settings.ssh_config or inventory.ssh_config
    return inventory.model_copy(update={"ssh_config": existing(ssh_config)})


def existing(ssh_config: Path | None) -> Path | None:
    """`ssh -G` takes a missing file for an empty one, and would then dial the alias as if it were a name."""
    if ssh_config is not None and not ssh_config.is_file():
        why = "is not a file" if ssh_config.exists() else "does not exist"
        raise ConfigError(f"ssh_config {ssh_config} {why}", remedy="name a file that exists, or leave it out")
    return ssh_config


def flags_of(wish: Wish) -> tuple[Given, ...]:
    """The command line's own overrides, the strongest first: of two for one key the later one counts."""
    given = [_set(text) for text in reversed(wish.overrides)]
    if wish.family is not None:
        given.insert(0, Given("family", wish.family, "--family"))
    return tuple(given)


def _set(text: str) -> Given:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: not KEY=VALUE", remedy="write --set max_num_seqs=4")
    return Given(key.strip(), value, "--set")


def nodes_of(inventory: Inventory) -> dict[str, Node]:
    """Both, head first."""
    return {"head": inventory.head, "worker": inventory.worker}


def ports_of(inventory: Inventory) -> tuple[int, ...]:
    """The head's ports whose listeners a probe has to name."""
    return (inventory.api.port, inventory.master_port)


def paths_of(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """The folders that a probe has to look at, by node, as the inventory has them."""
    return {node: _folders(known) for node, known in nodes_of(inventory).items()}


def _folders(node: Node) -> tuple[str, ...]:
    return (node.hf_home,) if node.hub_cache is None else (node.hf_home, node.hub_cache)


def _complete(node: Node, *, rdma: bool) -> bool:
    wiring: Sequence[object] = (node.fabric.interface, node.fabric.address, node.fabric.hca if rdma else None)
    return "auto" not in wiring and not any(folder.startswith("~") for folder in _folders(node))
