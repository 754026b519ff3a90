"""Profiles: what to serve, the same for any pair of nodes. Data, one file a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from dspark_deploy.bundled import SearchPath, named_in
from dspark_deploy.errors import ConfigError
from dspark_deploy.patch import Patch, written_out
from dspark_deploy.strict import (
    Data,
    Flag,
    FlagValue,
    Given,
    KeyPath,
    Name,
    Strict,
    Text,
    Variable,
    data_of,
    dotted,
    nearest,
    validate,
)

Word = Annotated[
    str, Field(pattern=r"^[^\x00-\x20\x7f-][^\x00-\x1f\x7f]*$", description="text that does not begin with `-`")
]

# The checkpoints were published with 2**20 tokens; the bounds here and below are far beyond what any runtime takes.
MOST_TOKENS = 2**24
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


class Profile(Strict):
    """A complete profile, after `extends` and overrides. Holds nothing that a node can tell.

    Lengths and budgets are tokens. `None` renders no flag, nor does a switch that is false.
    """

    name: Name
    aliases: tuple[Name, ...] = ()
    title: Text
    family: Word  # a name, or a path to a file
    model: Word  # likewise
    image: Word | None = None  # another tag of the same family
    served_model_name: Word | None = None  # None: the model's own

    max_model_len: Tokens  # prompt and answer together
    max_num_seqs: Annotated[int, Field(ge=1, le=4096)]
    max_num_batched_tokens: Tokens
    long_prefill_token_threshold: Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]  # share of unified memory
    kv_cache_dtype: Word = "nvfp4_ds_mla"
    block_size: Annotated[int, Field(ge=1, le=65536)] = 256
    draft_tokens: Annotated[int, Field(ge=0, le=64)] = 5  # speculative tokens a step; 0: no drafting
    draft_sample_method: Literal["probabilistic", "greedy"] | None = "probabilistic"
    thinking: Literal["off", "low", "high", "max"] = "max"
    capture_size: Annotated[int, Field(ge=1, le=65536)] | Literal["auto", "none"] = (
        "auto"  # auto: seqs x (draft + 1), up to the grid
    )
    async_scheduling: bool = True
    chunked_prefill: bool = True
    prompt_tokens_details: bool = True
    generation_config: Word | None = "vllm"
    override_generation_config: dict[str, Any] = Field(default_factory=dict)
    # Beats the family's; VLLM_* names are checked against its registry.
    environment: dict[Variable, str] = Field(default_factory=dict)
    # Added to the command line; true is a bare flag.
    extra_flags: dict[Flag, FlagValue] = Field(default_factory=dict)
    patches: tuple[Patch, ...] = ()  # of the user's own; after the family's

    @property
    def verify_rows(self) -> int:
        """Rows of the widest decode step: every sequence's drafts and the token that follows them."""
        return self.max_num_seqs * (self.draft_tokens + 1)


IDENTITY = frozenset({"name", "aliases", "title"})
OVERRIDABLE = tuple(field for field in Profile.model_fields if field not in {*IDENTITY, "patches"})

_OF_THE_PAIR = "head worker host fabric interface address hca gid_index hf_home hub_cache api bind port key_file"
_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(IDENTITY, "names the profile"),
    **dict.fromkeys(("id", "revision", "directory"), "belongs to the model, which `model` chooses"),
    **dict.fromkeys((*_OF_THE_PAIR.split(), "master_port", "restart"), "belongs to the inventory"),
    **dict.fromkeys(("extends", "patches"), "stands in a profile's file only"),
    "master_addr": "is derived: the head's fabric address",
    "node_rank": "is derived: the head is rank 0",
    "headless": "is derived: the worker has no API",
    "verify_rows": "is derived: max_num_seqs x (draft_tokens + 1)",
    "tensor_parallel_size": "is derived: one GPU a node, two nodes",
}


@dataclass(frozen=True, slots=True)
class Written:
    """A profile as its files say it, before overrides."""

    data: Mapping[str, Data]
    places: Mapping[KeyPath, str]  # `profiles/agent-1m.yaml line 12`

    def where(self, key: KeyPath) -> str:
        """Where `key` stands, or the nearest thing around it."""
        while key not in self.places:
            key = key[:-1]
        return self.places[key]


@dataclass(frozen=True, slots=True)
class Applied:
    """An override that took effect."""

    key: str
    value: Data
    source: str
    replaced: Data  # what the files or the default would have made of it


@dataclass(frozen=True, slots=True)
class Resolved:
    """A complete profile, and where each of its values came from."""

    profile: Profile
    sources: Mapping[str, str]  # value -> place; entries of a mapping as `environment.NAME`
    applied: tuple[Applied, ...]


def load_profile(name: str, search: SearchPath, given: Sequence[Given] = ()) -> Resolved:
    """The profile of that name or alias, or in the file at that path, with `given` over it, the strongest first.

    Raises ConfigError: an unknown profile, a circle of `extends`, and every mistake in a file or override.
    """
    return override(read_profile(name, search), given)


def read_profile(name: str, search: SearchPath, *, below: tuple[str, ...] = ()) -> Written:
    """The profile's own file over the one that it extends. Mappings are merged; a null entry takes one out."""
    document = search.read("profile", _resolve_alias(name, search))
    own = {"name": document.path.stem, **written_out(document.data, document.path.parent)}
    own.pop("extends", None)
    places = {key: document.where(key) for key in document.lines}
    base = document.data.get("extends")
    if base is None:
        return Written(own, places)
    if not isinstance(base, str):
        raise document.error(("extends",), "is not a name", remedy="give the name of one profile")
    here = (*below, document.path.stem)
    with named_in(lambda: document.where(("extends",))):
        if _resolve_alias(base, search) in here:
            circle = " -> ".join((*here, base))
            raise document.error(("extends",), f"goes in a circle: {circle}", remedy="extend another profile")
        parent = read_profile(base, search, below=here)
    inherited = {key: value for key, value in parent.data.items() if key not in IDENTITY}
    data = {key: _merge(inherited.get(key), own[key]) if key in own else inherited[key] for key in inherited | own}
    data.setdefault("title", f"Like {base}, changed")
    return Written(data, {**parent.places, **places})


def override(written: Written, given: Sequence[Given]) -> Resolved:
    """Put the given values over what is written; of two for one key, the one named first holds."""
    data = dict(written.data)
    chosen: dict[KeyPath, str] = {}
    for each in reversed(given):
        _refuse_unsettable(each)
        key, value = data_of(Profile, each)
        data[str(key[0])] = _with(_get(data, key[:1]), key, value)
        chosen = {other: source for other, source in chosen.items() if other[: len(key)] != key}
        chosen[key] = each.source
    profile = validate(Profile, data, lambda key: _source(chosen, key) or written.where(key))
    result = profile.model_dump()
    applied = (
        Applied(dotted(key), _get(result, key), source, _get(written.data, key)) for key, source in chosen.items()
    )
    return Resolved(profile, _sources(result, written, chosen), tuple(applied))


def _resolve_alias(name: str, search: SearchPath) -> str:
    """The file name behind an alias. Files are opened only where no file has that name."""
    if "/" in name or name.endswith((".yaml", ".yml")) or search.look_up("profile", name):
        return name
    aliases: dict[str, str] = {}
    broken: list[str] = []
    for stem in search.files("profile"):
        try:
            own = search.read("profile", stem).data.get("aliases")
        except ConfigError as error:  # a file that nobody asked for; unless it is the one that was meant
            broken.append(f"not read: {error.message}")
            continue
        aliases |= {str(alias): stem for alias in own} if isinstance(own, list) else {}
    if name not in aliases:
        raise search.unknown("profile", name, also=tuple(aliases), why="\n".join(broken))
    return aliases[name]


def _merge(base: Data, own: Data) -> Data:
    if not (isinstance(base, dict) and isinstance(own, dict)):
        return own
    return {key: value for key, value in (base | own).items() if value is not None}


def _refuse_unsettable(given: Given) -> None:
    word = given.key.split(".")[0]
    if word in OVERRIDABLE:
        return
    if word in _ELSEWHERE:
        raise ConfigError(
            f"{given.source}: `{given.key}` can't be set here", why=f"it {_ELSEWHERE[word]}", remedy="leave it out"
        )
    guess = nearest(word, OVERRIDABLE)
    hint = f"did you mean `{guess}`?" if guess else f"known: {', '.join(OVERRIDABLE)}"
    raise ConfigError(f"{given.source}: `{given.key}` is not a value of a profile", remedy=hint)


def _with(old: Data, key: KeyPath, value: Data) -> Data:
    """A field's new value: all of it, or the old mapping with one entry changed."""
    if len(key) == 1:
        return value
    return (old if isinstance(old, dict) else {}) | {key[1]: value}


def _get(data: Mapping[str, Data], key: KeyPath) -> Data:
    """What stands under a field or an entry of it: the default, or None, where nothing does."""
    field, *entry = (str(part) for part in key)
    value = data[field] if field in data else Profile.model_fields[field].get_default(call_default_factory=True)
    if not entry:
        return value
    return value.get(entry[0]) if isinstance(value, dict) else None


def _source(sources: Mapping[KeyPath, str], key: KeyPath) -> str | None:
    return next((sources[key[:end]] for end in range(len(key), 0, -1) if key[:end] in sources), None)


def _sources(result: Mapping[str, Data], written: Written, chosen: Mapping[KeyPath, str]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for field in OVERRIDABLE:
        value = result[field]
        keys: list[KeyPath] = [(field, entry) for entry in value] if isinstance(value, dict) else [(field,)]
        for key in keys:
            sources[dotted(key)] = _source(chosen, key) or written.places.get(key, "default")
    named: list[KeyPath] = [("patches", number) for number in range(len(result["patches"]))]
    return sources | {dotted(key): written.where(key) for key in named}
