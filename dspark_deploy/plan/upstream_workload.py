"""The keys of upstream's env file that say what to serve: a published profile, and what differs from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from dspark_deploy.errors import ConfigError
from dspark_deploy.family import Family
from dspark_deploy.model import Model
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.environment import pinned_names
from dspark_deploy.plan.refusals import repository
from dspark_deploy.plan.upstream_keys import DERIVED, IN_PROFILE, MODEL_KEYS, known_keys, left_out
from dspark_deploy.plan.upstream_model import Checkpoint, checkpoint
from dspark_deploy.profile import Profile
from dspark_deploy.strict import Data, Given

Told = tuple[Literal["taken", "same", "derived", "left-out"], str, str]  # fate, where it went, why
DEFAULT = "agent-1m"
_UTILIZATION = ("GPU_MEMORY_UTILIZATION_TEXT", "GPU_MEMORY_UTILIZATION_VISION", "GPU_MEMORY_UTILIZATION")
_OF_THE_RUNTIME = (
    "VLLM_",
    "NCCL_",
    "UCX_",
    "OMPI_",
    "TORCH",
    "PYTORCH_",
    "TRITON_",
    "CUDA_",
    "HF_",
    "FLASHINFER_",
    "B12X_",
)
# What a profile is known by, and what upstream's compose file has for each where the env file says nothing.
_SHAPE = {"max_model_len": 1048576, "max_num_seqs": 6, "max_num_batched_tokens": 8192}
_UNASKED = 3  # how many differences that are said one that nobody asked for is worth
_SAME_WORD = 0.85  # likeness at which a name is taken for a slip: MAX_MODEL_LENGTH, NCCL_IB_HCAS


@dataclass(frozen=True, slots=True)
class UpstreamWorkload:
    """The nearest published profile, and what has to be said beside it."""

    profile: str
    values: Mapping[str, Data]  # `max_num_seqs`, `environment.NCCL_DEBUG` -> value, where it differs
    model: Model | None  # the wanted checkpoint where no model file describes it
    fates: Mapping[str, Told]
    origins: Mapping[str, str]  # of each of `values`: upstream's name
    warnings: tuple[str, ...]


def take_workload(
    names: Sequence[str],
    settled: Mapping[str, str],
    catalogue: Catalogue,
    *,
    profile: str | None,
    own: str,
) -> UpstreamWorkload:
    """Sort `names`, whose values are in `settled`. See upstream_env.take_over for `profile` and `own`."""
    taking = _Taking(settled, catalogue, own)
    wanted = taking.typed([name for name in names if name in IN_PROFILE])
    base = taking.nearest(wanted, profile)
    taking.model(base)
    taking.compare(wanted, base)
    family = catalogue.family(base.family)
    for name in names:
        if name not in taking.fates:
            taking.rest(name, family, {**family.environment, **base.environment})
    return UpstreamWorkload(
        base.name, taking.values, taking.new_model, taking.fates, taking.origins, tuple(taking.warnings)
    )


@dataclass
class _Taking:
    """The sorting, under way."""

    settled: Mapping[str, str]
    catalogue: Catalogue
    own: str
    values: dict[str, Data] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    fates: dict[str, Told] = field(default_factory=dict)
    new_model: Model | None = None
    warnings: list[str] = field(default_factory=list)

    def typed(self, names: Sequence[str]) -> dict[str, Data]:
        """Upstream's name -> value as a profile has it. What no profile can have is told, and left out."""
        found: dict[str, Data] = {}
        chosen = self._utilization()
        for name in names:
            key = IN_PROFILE[name]
            if name in _UTILIZATION and name != chosen:
                self.fates[name] = ("left-out", "", f"upstream's script takes {chosen} instead")
            elif key in {IN_PROFILE[each] for each in found}:
                self.fates[name] = ("left-out", "", "another name of the same setting stands in the file")
            else:
                try:
                    resolved = self.catalogue.profile(DEFAULT, (Given(key, self.settled[name], name),))
                except ConfigError as error:
                    self.fates[name] = ("left-out", "", f"{error.message.partition(': ')[2]}; {error.remedy}")
                else:
                    found[name] = getattr(resolved.profile, key)
        return found

    def _utilization(self) -> str | None:
        """Upstream's start overwrites the plain key with one of the others; the files of July have it alone."""
        text, vision, plain = _UTILIZATION
        chosen = vision if self.settled.get("ENABLE_VL_SIDECAR") == "1" else text
        return next((name for name in (chosen, plain, text, vision) if name in self.settled), None)

    def nearest(self, wanted: Mapping[str, Data], named: str | None) -> Profile:
        """The profile that differs in the fewest values, among those of the image's family; the default one first."""
        if named is not None:
            return self.catalogue.profile(named).profile
        first = self.catalogue.profile(DEFAULT).profile
        others = [each for each in self.catalogue.profiles() if each.name not in {first.name, self.own}]
        family = self._family(wanted)
        candidates = [each for each in (first, *others) if each.family == (family or first.family)] or [first]
        checkpoint_ = self._checkpoint()

        def distance(each: Profile) -> int:
            said = {IN_PROFILE[name] for name in wanted}
            differing = [IN_PROFILE[name] for name in self._differing(wanted, each)]
            unasked = len([key for key, value in _SHAPE.items() if key not in said and getattr(each, key) != value])
            shape = len([key for key in differing if key in _SHAPE])
            return len(differing) + shape + _UNASKED * unasked + (not self._serves(checkpoint_, each))

        return min(candidates, key=distance)

    def _family(self, wanted: Mapping[str, Data]) -> str | None:
        image = next((value for name, value in wanted.items() if IN_PROFILE[name] == "image"), None)
        if image is None:
            return None
        return next((each.name for each in self.catalogue.families() if repository(image) in each.repositories), None)

    def _differing(self, wanted: Mapping[str, Data], base: Profile) -> Iterator[str]:
        family = self.catalogue.family(base.family)
        model = self.catalogue.model(self.values.get("model", base.model))
        for name, value in wanted.items():
            match IN_PROFILE[name]:
                case "image":
                    there = base.image or family.image
                    same = value in {there, f"{there}@{family.digest}"}
                case "served_model_name":
                    same = value == (base.served_model_name or model.served_name)
                case key:
                    same = value == getattr(base, key)
            if not same:
                yield name

    def compare(self, wanted: Mapping[str, Data], base: Profile) -> None:
        """Take over what differs from `base`."""
        differing = set(self._differing(wanted, base))
        for name in sorted(wanted, key=lambda each: IN_PROFILE[each] != "draft_tokens"):  # others are judged by it
            value = wanted[name]
            key = IN_PROFILE[name]
            if name not in differing:
                self.fates[name] = ("same", key, f"profile {base.name} says so")
            elif (why := self._other_image(key, value, base) or self._hopeless(key, value, base)) is not None:
                self.fates[name] = ("left-out", "", why)
            else:
                self._keep(name, key, value)

    def _other_image(self, key: str, value: Data, base: Profile) -> str | None:
        """Why an image can't be the one of `base`."""
        if key != "image":
            return None
        plain = str(value).partition("@")[0]
        if ":" not in plain.rpartition("/")[2]:
            return f"it has a digest and no tag; profile {base.name} has {self.catalogue.family(base.family).image}"
        of = next((each.name for each in self.catalogue.families() if repository(plain) in each.repositories), None)
        return None if of in {None, base.family} else f"it is of family {of}, and profile {base.name} of {base.family}"

    def _hopeless(self, key: str, value: Data, base: Profile) -> str | None:
        """Why a start with it would be refused, whatever else is set. See refusals.py."""
        model, family = self.catalogue.model(self.values.get("model", base.model)), self.catalogue.family(base.family)
        block, most = model.draft_block_size, family.max_verify_rows
        drafts = self.values.get("draft_tokens", base.draft_tokens)
        if key == "draft_tokens" and block is not None and 0 < value < block:
            return f"{model.name} drafts in blocks of {block}, and fewer draft tokens are refused (F102)"
        if key == "max_num_seqs" and most is not None and value * (drafts + 1) > most:
            rows = value * (drafts + 1)
            return f"with {drafts} draft tokens it makes {rows} verify rows, and {family.name} survives {most} (F99)"
        return None

    def _keep(self, name: str, key: str, value: Data) -> None:
        self.values[key], self.origins[key] = value, name
        self.fates[name] = ("taken", key, "")

    # --- the checkpoint -----------------------------------------------------------------------------------------

    def _checkpoint(self) -> Checkpoint:
        return checkpoint({name: self.settled[name] for name in MODEL_KEYS if name in self.settled})

    def _serves(self, wanted: Checkpoint, base: Profile) -> bool:
        return not wanted.deciding or wanted.is_in(self.catalogue.model(base.model), self._mount(base))

    def _mount(self, base: Profile) -> str:
        return self.catalogue.family(base.family).hf_home_in_container

    def model(self, base: Profile) -> None:
        """Which checkpoint the file means, and which entry describes it."""
        wanted = self._checkpoint()
        for name in MODEL_KEYS:
            if name in self.settled and name not in wanted.deciding:
                self.fates[name] = ("left-out", "", wanted.unused)
        if not wanted.deciding:
            return
        named, *others = wanted.deciding
        told = self._model(wanted, base, named)
        self.fates[named] = told
        if told[0] == "left-out":
            self.warnings.append(f"the file serves {wanted}, and this one {base.model}: {told[2]}")
        for other in others:
            self.fates[other] = told if told[0] != "taken" else ("taken", "model", f"together with {named}")

    def _model(self, wanted: Checkpoint, base: Profile, name: str) -> Told:
        if self._serves(wanted, base):
            return ("same", "model", f"profile {base.name} serves {wanted}")
        models = [self.catalogue.model(each) for each in self.catalogue.search.files("model") if each != self.own]
        mount = self._mount(base)
        if (described := next((each for each in models if wanted.is_in(each, mount)), None)) is not None:
            self._keep(name, "model", described.name)
            return self.fates[name]
        like = next((each for each in models if wanted.id is not None and each.id == wanted.id), None)
        if like is None:
            why = f"no model file describes {wanted}: write one as profiles/models/NAME.yaml, and `model: NAME`"
            return ("left-out", "", why)
        try:
            # Not a copy with a change: that would not look at the new value.
            self.new_model = Model.model_validate({**like.model_dump(), "revision": wanted.revision})
        except ValueError:
            return ("left-out", "", f"{wanted.revision} is no commit of 40 hex digits")
        self.origins["model"] = name
        return ("taken", "model", f"{wanted}; a model file of its own, since {like.name} has another revision")

    # --- the container's environment ----------------------------------------------------------------------------

    def rest(self, name: str, family: Family, there: Mapping[str, str]) -> None:
        """A key that is neither of the pair nor of the workload. `there` is the environment without the file."""
        if there.get(name) == self.settled[name]:
            self.fates[name] = ("same", f"environment.{name}", f"family {family.name} or the profile says so")
            return
        self.fates[name] = self._derived(name) or self._environment(name, family)
        if self.fates[name][0] == "taken":
            key = f"environment.{name}"
            self.values[key], self.origins[key] = self.settled[name], name

    def _derived(self, name: str) -> Told | None:
        if name in DERIVED:
            return ("derived", "", DERIVED[name])
        why = left_out(name)
        return None if why is None else ("left-out", "", why)

    def _environment(self, name: str, family: Family) -> Told:
        value, to = self.settled[name], f"environment.{name}"
        forbidden = [each for each in family.forbidden_values if each.name == name and each.value in {None, value}]
        if name in pinned_names(family):
            return ("derived", "", "it is set for each rank")
        if forbidden:
            return ("left-out", "", f"{family.name} can't run with it: {forbidden[0].reason}")
        if name in _read_by(family):
            return ("taken", to, "")
        return self._strange(name, family)

    def _strange(self, name: str, family: Family) -> Told:
        """A variable that the family's file does not name."""
        for other in self.catalogue.families():
            if name in _read_by(other):
                return ("left-out", "", f"it is a switch of family {other.name}, and {family.name} reads it nowhere")
        spelt = known_keys().union(*map(_read_by, self.catalogue.families()))
        if close := get_close_matches(name, spelt, n=1, cutoff=_SAME_WORD):
            return ("left-out", "", f"it is no key of upstream's; did you mean {close[0]}?")
        if name.startswith(_OF_THE_RUNTIME):
            doubt = f"{family.name} is not known to read it" if name.startswith("VLLM_") else ""
            return ("taken", f"environment.{name}", doubt)
        why = "it is no key of upstream's; what the container needs goes into a profile, as environment.NAME"
        return ("left-out", "", why)


def _read_by(family: Family) -> set[str]:
    return {*family.registered, *family.environment}
