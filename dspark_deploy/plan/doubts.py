"""Combinations that may work and should be thought about: each is a warning, one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from ipaddress import ip_address
from itertools import chain

from dspark_deploy.plan.argv import omitted_flags
from dspark_deploy.plan.capture import round_down
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.environment import pinned_names
from dspark_deploy.plan.refusals import repository
from dspark_deploy.plan.vllm_flags import known_flags
from dspark_deploy.profile import Profile
from dspark_deploy.strict import nearest

_HIGHEST_UTILIZATION = 0.87  # the highest that was ever published
_GRAPHS, _TIMEOUT = "VLLM_USE_BREAKABLE_CUDAGRAPH", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"
_LEAST_TIMEOUT_S = 1800  # upstream's own; vLLM's 300 is too short
_SAME_WORD = 0.9  # likeness at which a name of the user's own is taken for a slip
_OPEN_TO_ALL = frozenset({"0.0.0.0", "::"})  # noqa: S104  compared, not bound
# vLLM asks for its key below /v1, /v2 and /inference only. These two generate, and need none: docs/ENVS.md of
# MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark at 489af95 (2026-08-22).
_KEYLESS = "/invocations, /generative_scoring, /tokenize, /detokenize, /health, /metrics, /version and /ping"


def doubts(deployment: Deployment, catalogue: Catalogue) -> tuple[str, ...]:
    """What to warn of."""
    warnings = (
        _pairing(deployment, catalogue),
        _image(deployment, catalogue),
        _flags(deployment),
        _digest(deployment),
        _numbers(deployment.profile),
        _slow(deployment),
        _variables(deployment),
        _surroundings(deployment),
    )
    return tuple(chain.from_iterable(warnings))


def _pairing(deployment: Deployment, catalogue: Catalogue) -> Iterator[str]:
    model, family = deployment.model, deployment.family
    if family.name in model.families:
        return
    counterpart = _counterpart(deployment, catalogue)
    published = f"; published there is profile {counterpart}" if counterpart else ""
    yield f"{model.name} was never published on {family.name}, only on {', '.join(model.families)}{published}"


def _counterpart(deployment: Deployment, catalogue: Catalogue) -> str | None:
    """The published profile of the chosen family whose shape is nearest."""
    wanted = deployment.profile

    def distance(profile: Profile) -> tuple[float, ...]:
        return (
            abs(profile.max_model_len - wanted.max_model_len),
            abs(profile.max_num_seqs - wanted.max_num_seqs),
            abs(profile.max_num_batched_tokens - wanted.max_num_batched_tokens),
            abs(profile.gpu_memory_utilization - wanted.gpu_memory_utilization),
        )

    family = deployment.family.name
    published = [
        each
        for each in catalogue.profiles()
        if each.family == family and family in catalogue.model(each.model).families
    ]
    return min(published, key=distance).name if published else None


def _image(deployment: Deployment, catalogue: Catalogue) -> Iterator[str]:
    name = repository(deployment.image)
    if name in deployment.family.repositories:
        return
    if not any(name in family.repositories for family in catalogue.families()):
        yield f"image {deployment.image} is of no known family; its layout is taken to be {deployment.family.name}'s"


def _digest(deployment: Deployment) -> Iterator[str]:
    """A tag in a registry moves; an image that is in none is what its node built."""
    host, slash, _ = deployment.image.partition("/")
    if deployment.digest is None and slash and ("." in host or ":" in host):
        yield f"image {deployment.image} has no digest: nobody notices when its tag moves (F11); add @sha256:…"


def _flags(deployment: Deployment) -> Iterator[str]:
    for flag in omitted_flags(deployment):
        yield f"{flag} is left out on {deployment.family.name}: {deployment.family.omit_flags[flag]}"
    known = {*known_flags(), *deployment.family.add_flags}
    for flag in deployment.profile.extra_flags:
        if flag not in known:
            guess = nearest(flag, known)
            hint = f"; did you mean {guess}?" if guess else ""
            yield f"{deployment.sources[f'extra_flags.{flag}']}: vLLM 0.32.0 has no {flag}{hint}"


def _numbers(profile: Profile) -> Iterator[str]:
    if profile.gpu_memory_utilization > _HIGHEST_UTILIZATION:
        yield (
            f"gpu_memory_utilization {profile.gpu_memory_utilization} is above {_HIGHEST_UTILIZATION}, the highest "
            "ever published: unified memory holds the system, the page cache and compilers too"
        )
    size = profile.capture_size
    if not isinstance(size, int):
        return
    kept = round_down(size)
    if kept != size:
        yield f"capture_size {size} is off the runtime's grid: it is cut to {kept}"
    if kept < profile.verify_rows:
        yield f"capture_size {kept} is below {profile.verify_rows} verify rows: a full batch decodes outside of a graph"


def _slow(deployment: Deployment) -> Iterator[str]:
    """What starts and answers, and then slowly or not for long."""
    profile, family = deployment.profile, deployment.family
    given = {**family.environment, **profile.environment}
    if given.get(_GRAPHS, "1") != "0" and _GRAPHS in family.environment:
        yield f"{_GRAPHS} is not 0: breakable graphs decode a quarter slower (F89)"
    timeout = given.get(_TIMEOUT, "")
    if timeout.isdigit() and int(timeout) < _LEAST_TIMEOUT_S:
        yield f"{_TIMEOUT} is {timeout}: kernels that are compiled in mid-serve take longer: the engine ends (F98)"
    takes_share = "--long-prefill-token-threshold" not in family.omit_flags
    if takes_share and not profile.long_prefill_token_threshold and profile.max_num_seqs > 1:
        yield "long_prefill_token_threshold is not set: one long prompt starves every stream that decodes (F93)"


def _variables(deployment: Deployment) -> Iterator[str]:
    family = deployment.family
    known = {*family.registered, *family.baked_in, *family.environment, *pinned_names(family)}
    for name in deployment.profile.environment:
        if name in known:
            continue
        source = deployment.sources[f"environment.{name}"]
        if name.startswith("VLLM_"):
            guess = nearest(name, known)
            hint = f"; did you mean {guess}?" if guess else ""
            yield f"{source}: {family.name} is not known to read {name}{hint}"
        elif close := get_close_matches(name, known, n=1, cutoff=_SAME_WORD):
            yield f"{source}: {name} is passed on as it is; did you mean {close[0]}?"


def _open_doors(deployment: Deployment) -> Iterator[str]:
    """What is answered without a key to whoever reaches the head."""
    bind = deployment.api.bind
    listens = f"{bind}:{deployment.api.port}"
    if not deployment.keyed and bind in _OPEN_TO_ALL:
        yield f"the API listens on every address of the head ({listens}) without a key"
    elif deployment.keyed and not _is_loopback(bind):
        yield (
            f"the API on {listens} asks for its key below /v1, /v2 and /inference alone: {_KEYLESS} stay open"
            " to whoever reaches them, and the first two generate (F75)"
        )


def _is_loopback(bind: str) -> bool:
    """A name other than localhost is taken for an address that others reach."""
    try:
        return ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"


def _surroundings(deployment: Deployment) -> Iterator[str]:
    yield from _open_doors(deployment)
    for rank in deployment.ranks:
        if rank.address.is_link_local:
            yield f"{rank.node}: the fabric address {rank.address} is link-local, and may be another after a restart"
    if deployment.restart != "no":
        yield (
            f"restart: {deployment.restart} lets docker revive one rank alone, which leaves a split pair: the other "
            "holds a stale rank (F61)"
        )
