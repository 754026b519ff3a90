"""`init`: an inventory for two nodes, from what they are or from what an env file of upstream's says, or from both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy import __version__
from dspark_deploy.checks.finding import Finding
from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.files import NewFiles
from dspark_deploy.flow.foretell import foretell
from dspark_deploy.flow.intention import existing, read_settings
from dspark_deploy.flow.meet import Met, meet
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory, Node, load_inventory
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.draft import OF_THE_PAIR, ORDER, Draft, Said, Value
from dspark_deploy.plan.pairing import Candidate
from dspark_deploy.plan.refusals import repository
from dspark_deploy.plan.upstream_draft import inventory_values, profile_values
from dspark_deploy.plan.upstream_env import KeyFate, TakenOver, nested, take_over
from dspark_deploy.remote.clock import Clock
from dspark_deploy.render.inventory import inventory_file, model_file, profile_file
from dspark_deploy.settings import Settings
from dspark_deploy.strict import read_assignments, read_text, validate

FILL_IN = {"head": "local", "worker": "spark-worker"}  # hosts of an env file that names none


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line of `init` says beside the common options."""

    hosts: tuple[str, str] | None = None  # head, worker; None: nobody is asked
    from_env: Path | None = None
    name: str = "spark-pair"
    force: bool = False
    dry_run: bool = False
    api_port: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of the inventory."""

    key: str
    value: Value
    why: str


@dataclass(frozen=True, slots=True)
class Network:
    """One way in which the nodes are joined."""

    network: str
    rails: tuple[str, ...]
    carried: tuple[str, ...]  # of each rail: whole, small, one-way, nothing, untried
    chosen: bool


@dataclass(frozen=True, slots=True)
class InitReport:
    """What was chosen, and what was written."""

    inventory: str  # its path
    files: Mapping[str, str]  # path -> text, the inventory last
    written: bool  # not on a dry run
    choices: tuple[Choice, ...]
    networks: tuple[Network, ...]  # the best first; empty where nobody was asked
    images: Mapping[str, Mapping[str, str]]  # node -> reference that is there -> its family
    caches: Mapping[str, tuple[str, ...]]  # node -> hub ids and folders that its mounted cache holds
    keys: tuple[KeyFate, ...]  # of the env file
    findings: tuple[Finding, ...]  # what `up` would refuse or warn of
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known before a node is asked."""

    wish: Wish
    asked: Asked
    path: Path  # of the inventory
    files: NewFiles
    catalogue: Catalogue
    taken: TakenOver | None
    seed: Inventory  # hosts and ports alone
    wanted: str | None  # the profile to name


def initialise(wish: Wish, asked: Asked, observer: Observer, clock: Clock) -> InitReport:
    """Make an inventory and what belongs to it. Never over a file that is there, unless told to.

    Raises ConfigError for hosts or a file that can't be meant, NodeUnreachable, and CheckRefused where nothing joins
    the nodes; nothing is written then.
    """
    begun = begin(wish, asked)
    if asked.hosts is None:
        return finish(begun, None)
    with open_pair(begun.seed, wish, clock) as hosts:
        met = meet(hosts, begun.seed, begun.catalogue, begun.taken, observer, clock, wanted=begun.wanted)
    return finish(begun, met)


def begin(wish: Wish, asked: Asked) -> Begun:
    """Read what there is on this machine. Raises ConfigError."""
    settings, catalogue = read_settings(wish), catalogue_of(wish)
    files = NewFiles(force=asked.force or asked.dry_run)
    files.expect(settings.inventory)
    wanted, own = wish.profile or settings.profile, own_name(asked.name)
    taken = None
    if asked.from_env is not None:
        text = read_text(wish.directory / asked.from_env, absent="name an env file of upstream's scripts, .env.dspark")
        found = read_assignments(text, {"HOME": "~"})
        taken = take_over(found, catalogue, profile=None if wanted == own else wanted, own=own)
        wanted = taken.workload.profile
    return Begun(wish, asked, settings.inventory, files, catalogue, taken, _seed(asked, taken, wish, settings), wanted)


def finish(begun: Begun, met: Met | None) -> InitReport:
    """Write the files and say what was chosen. `met`: both nodes, where they were asked."""
    taken = met.taken if met else begun.taken
    made = _Made(begun.asked, begun.wish, begun.path, begun.catalogue, begun.seed, met, taken)
    made.add_to(begun.files)
    if not begun.asked.dry_run:
        begun.files.write(load_inventory)
    return made.report(begun.files)


def own_name(pair: str) -> str:
    """What a profile and a model are called that an env file asks for."""
    return f"{pair}-env"


def _seed(asked: Asked, taken: TakenOver | None, wish: Wish, settings: Settings) -> Inventory:
    """Hosts and ports alone. Raises ConfigError, naming the argument."""
    known = taken.inventory if taken else {}
    head, worker = asked.hosts or (FILL_IN["head"], known.get("worker.host", FILL_IN["worker"]))
    data = {"name": asked.name, "head.host": head, "worker.host": worker}
    data |= {key: value for key, value in known.items() if key in {"api.port", "master_port"}}
    data |= {"api.port": asked.api_port} if asked.api_port else {}
    seed = validate(Inventory, nested(data), lambda key: "--name" if key == ("name",) else "HEAD WORKER")
    if seed.head.spec.identity == seed.worker.spec.identity:
        raise ConfigError(
            f"HEAD WORKER: both are {worker}, and a pair is two nodes", remedy="give the second node's own host"
        )
    path = wish.directory / wish.ssh_config if wish.ssh_config else settings.ssh_config
    return seed.model_copy(update={"ssh_config": existing(path)})


@dataclass(frozen=True, slots=True)
class _Made:
    """The files, from all that is known by now."""

    asked: Asked
    wish: Wish
    path: Path
    catalogue: Catalogue
    seed: Inventory
    met: Met | None
    taken: TakenOver | None

    def add_to(self, files: NewFiles) -> None:
        """Every file with its text, the inventory last."""
        folder, name, origin = self.wish.directory / "profiles", self._own_name, self._origin
        if self.taken is not None:
            workload = self.taken.workload
            if workload.model is not None:
                model = workload.model.model_copy(update={"name": name})
                text = model_file(model, like=workload.model.name, origin=origin, tool=__version__)
                files.add(folder / "models" / f"{name}.yaml", text)
            if values := profile_values(self.taken, name):
                text = profile_file(name, workload.profile, values, origin=origin, tool=__version__)
                files.add(folder / f"{name}.yaml", text)
        files.add(self.path, self._text)

    def report(self, files: NewFiles) -> InitReport:
        """All of it, and what `up` would say."""
        met, draft = self.met, self._draft
        findings, warnings = ((), ()) if self.asked.dry_run else foretell(self.wish, self.path, met)
        return InitReport(
            inventory=str(self.path),
            files={str(path): text for path, text in files.texts.items()},
            written=not self.asked.dry_run,
            choices=tuple(Choice(key, draft[key].value, draft[key].why) for key in ORDER if key in draft),
            networks=tuple(_network(each, met.chosen) for each in met.candidates) if met else (),
            images=_images(met, self.catalogue) if met else {},
            caches={node: (*at.models, *at.directories) for node, at in met.places.items()} if met else {},
            keys=self.taken.keys if self.taken else (),
            findings=findings,
            warnings=(*self._notes, *self._doubts(), *warnings),
        )

    def _doubts(self) -> tuple[str, ...]:
        return (*(self.taken.warnings if self.taken else ()), *(self.met.profile.lacking if self.met else ()))

    @property
    def _text(self) -> str:
        return inventory_file(self._draft, self._notes, origin=self._origin, tool=__version__)

    @property
    def _origin(self) -> str:
        sources = [self.asked.from_env.name] if self.asked.from_env else []
        return " and ".join([*sources, "what both nodes say"] if self.met else sources)

    @property
    def _own_name(self) -> str:
        return own_name(self.seed.name)

    @property
    def _draft(self) -> Draft:
        """The first that says something of a key is the weakest."""
        draft = {
            "name": Said(self.seed.name, "the compose project, the lock, and the folder on the nodes"),
            **OF_THE_PAIR,
        }
        draft |= {
            "head.host": self._host("head", self.seed.head),
            "worker.host": self._host("worker", self.seed.worker),
        }
        if self.wish.ssh_config is not None:  # a variable's is there for the next command, too
            draft["ssh_config"] = Said(str(self.seed.ssh_config))
        draft |= self.met.draft if self.met else {}
        if self.taken is not None:
            found = self.met.draft if self.met else {}
            draft |= inventory_values(self.taken, found, hosts_given=self.asked.hosts is not None)
            draft["profile"] = Said(self.taken.workload.profile, f"serves what {self._origin} says")
            if profile_values(self.taken, self._own_name):
                draft["profile"] = Said(self._own_name, f"profiles/{self._own_name}.yaml")
        if self.asked.api_port:
            draft["api.port"] = Said(self.asked.api_port, "as --api-port says")
        return draft

    def _host(self, name: str, node: Node) -> Said:
        if self.met is not None:
            facts = self.met.facts[name]
            return Said(node.host, f"{facts.user} on {facts.hostname}, {facts.architecture}")
        if name == "head":
            return Said(node.host, "upstream's scripts run on the head itself; from elsewhere, write its ssh alias")
        return Said(node.host, "FILL IN: the env file does not name the worker")

    @property
    def _notes(self) -> tuple[str, ...]:
        return self.met.notes if self.met else ()


def _network(candidate: Candidate, chosen: Candidate) -> Network:
    return Network(
        network=str(candidate.first.network),
        rails=tuple(map(str, candidate.rails)),
        carried=tuple(rail.carried for rail in candidate.rails),
        chosen=bool(set(chosen.rails) & set(candidate.rails)),
    )


def _images(met: Met, catalogue: Catalogue) -> dict[str, dict[str, str]]:
    families = {name: family.name for family in catalogue.families() for name in family.repositories}
    return {
        node: {image.reference: families.get(repository(image.reference), "") for image in known.images}
        for node, known in met.facts.items()
    }
