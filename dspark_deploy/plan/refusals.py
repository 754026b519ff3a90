"""Combinations that can only fail. Each is refused before anything starts, with the reason.

Where one is doubtful rather than hopeless, doubts.py warns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from dspark_deploy.errors import ConfigError
from dspark_deploy.plan.argv import own_flags
from dspark_deploy.plan.capture import scheduled_token_budget
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.environment import pinned_names
from dspark_deploy.plan.patches import refusals as patch_refusals
from dspark_deploy.plan.vllm_flags import known_flags
from dspark_deploy.strict import nearest

_RETENTION = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"
_OF_THE_API = "; the inventory names the API's key as api.key_file"
_EMPTY = "some readers take a variable that is defined and empty for one that is set"


_SECRET = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|API_KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(_|$)")


def refuse_impossible(deployment: Deployment, catalogue: Catalogue) -> None:
    """Raises ConfigError for the first combination that can't work."""
    refusals = (
        _shape(deployment),
        _kv_cache(deployment),
        _image(deployment, catalogue),
        _flags(deployment),
        _variables(deployment, catalogue),
        _patches(deployment),
    )
    for refusal in chain.from_iterable(refusals):
        raise refusal


def repository(image: str) -> str:
    """An image's name without its tag and digest."""
    plain = image.partition("@")[0]
    folder, slash, name = plain.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"


def _shape(deployment: Deployment) -> Iterator[ConfigError]:
    profile, family, block = deployment.profile, deployment.family, deployment.model.draft_block_size
    seqs, drafts, most = profile.max_num_seqs, profile.draft_tokens, family.max_verify_rows
    if most is not None and profile.verify_rows > most:
        yield ConfigError(
            f"{deployment.sources['max_num_seqs']}: {seqs} sequences x ({drafts} draft tokens + 1) are "
            f"{profile.verify_rows} verify rows",
            why=f"family {family.name} survives {most}: more deadlock or kill the engine (F99)",
            remedy=f"set max_num_seqs to at most {most // (drafts + 1)}, or choose another --family",
        )
    if block is not None and 0 < drafts < block:
        yield ConfigError(
            f"{deployment.sources['draft_tokens']}: `draft_tokens` is {drafts}, and {deployment.model.name} drafts in "
            f"blocks of {block}",
            why="fewer cut each block short, or are refused by the runtime (F102)",
            remedy=f"set draft_tokens to {block} or more, or to 0 for no drafting",
        )
    budget = scheduled_token_budget(profile)
    if budget <= 0:
        yield ConfigError(
            f"{deployment.sources['max_num_batched_tokens']}: {profile.max_num_batched_tokens} batched tokens leave "
            f"{budget} to schedule, once {seqs} sequences have their draft slots",
            remedy=f"set max_num_batched_tokens above {profile.max_num_batched_tokens - budget}",
        )


def _kv_cache(deployment: Deployment) -> Iterator[ConfigError]:
    """A runtime of one's own may know further kinds; a family's image knows no more than vLLM itself came to know."""
    dtype, known = deployment.profile.kv_cache_dtype, known_flags()["--kv-cache-dtype"]
    if dtype in known or repository(deployment.image) not in deployment.family.repositories:
        return
    guess = nearest(dtype, known)
    yield ConfigError(
        f"{deployment.sources['kv_cache_dtype']}: `kv_cache_dtype` is {dtype}, which no vLLM knows",
        remedy=f"did you mean `{guess}`?" if guess else f"known: {', '.join(known)}",
    )


def _image(deployment: Deployment, catalogue: Catalogue) -> Iterator[ConfigError]:
    family, name = deployment.family, repository(deployment.image)
    if name in family.repositories:
        return
    source = deployment.sources["image"] if deployment.profile.image else f"family {family.name}"
    for other in catalogue.families():
        if other.name != family.name and name in other.repositories:
            yield ConfigError(
                f"{source}: `image` {deployment.image} is of family {other.name}, not of {family.name}",
                why=f"{family.name} starts {family.executable}, which that image doesn't have (F03)",
                remedy=f"say --family {other.name}, or leave the image out",
            )


def _flags(deployment: Deployment) -> Iterator[ConfigError]:
    extra, family = deployment.profile.extra_flags, deployment.family
    own = own_flags(deployment)
    for flag in extra:
        source = deployment.sources[f"extra_flags.{flag}"]
        if _SECRET.search(flag.upper().replace("-", "_")):
            yield ConfigError(
                f"{source}: {flag} carries a secret, and a secret never stands in a profile",
                why="it would lie in a rendered file, and everybody on the node could read the command line",
                remedy=f"leave {flag} out{_OF_THE_API if flag == '--api-key' else ''}",
            )
        if flag in family.forbidden_flags:
            reason = family.forbidden_flags[flag]
            yield ConfigError(f"{source}: {family.name} can't take {flag}", why=reason, remedy=f"leave {flag} out")
        if flag in own:
            yield ConfigError(
                f"{source}: {flag} is made from a value of the profile or the inventory",
                why="of a flag that is given twice the last one holds, whatever plan says",
                remedy=f"set `{flag.removeprefix('--').replace('-', '_')}` there, and leave the flag out",
            )


def _patches(deployment: Deployment) -> Iterator[ConfigError]:
    family, extra = deployment.family, deployment.profile.extra_flags
    places = {family.hf_home_in_container: "in the cache", "/opt/dspark": "dspark's own place in the container"}
    yield from patch_refusals(deployment.patches, places)
    own = own_flags(deployment)
    for each in deployment.patches:
        for flag in each.patch.plugin.flags if each.patch.plugin else ():
            key = f"{each.where}: `plugin.flags.{flag}`"
            if flag in family.forbidden_flags:
                reason = family.forbidden_flags[flag]
                yield ConfigError(f"{key}: {family.name} can't take it", why=reason, remedy="leave it out")
            if flag in own or flag in extra:
                what = "the profile's extra_flags set it too" if flag in extra else "is made from the profile"
                yield ConfigError(f"{key}: {what}", remedy="set it in one place")


def _variables(deployment: Deployment, catalogue: Catalogue) -> Iterator[ConfigError]:
    family, own = deployment.family, deployment.profile.environment
    pinned = pinned_names(family)
    served = {"PATH", "LD_LIBRARY_PATH", *family.exports}
    for name, value in own.items():
        source = deployment.sources[f"environment.{name}"]
        if name in pinned:
            yield ConfigError(
                f"{source}: {name} is derived for each rank", remedy=f"leave {name} out; the inventory says how it is"
            )
        if name in served:
            yield ConfigError(
                f"{source}: {name} is one of the family's paths",
                remedy=f"leave {name} out, or change the family's file",
            )
        if _SECRET.search(name):
            yield ConfigError(
                f"{source}: {name} is a secret, and a secret never stands in a profile",
                why="it would lie in a rendered file, and `docker inspect` would show it",
                remedy=f"leave {name} out{_OF_THE_API if name == 'VLLM_API_KEY' else ''}",
            )
        if not value:
            reason = next(
                (each.reason for each in family.forbidden_values if each.name == name and each.value == ""), _EMPTY
            )
            yield ConfigError(f"{source}: {name} is empty", why=reason, remedy=f"give a value, or leave {name} out")
    yield from _forbidden_values(deployment)
    yield from _retention(deployment)
    yield from _switches_of_another(deployment, catalogue)


def _forbidden_values(deployment: Deployment) -> Iterator[ConfigError]:
    family = deployment.family
    values = {**family.environment, **deployment.profile.environment}
    for each in family.forbidden_values:
        if each.name in values and each.value in {None, values[each.name]}:
            source = deployment.sources.get(f"environment.{each.name}", f"family {family.name}")
            yield ConfigError(
                f"{source}: {family.name} can't run with {each.name}={values[each.name]}",
                why=each.reason,
                remedy=f"leave {each.name} out",
            )


def _retention(deployment: Deployment) -> Iterator[ConfigError]:
    """One checkpoint of the sliding window per so many tokens, and the cache is paged in blocks."""
    block = deployment.profile.block_size
    interval = deployment.profile.environment.get(_RETENTION, deployment.family.environment.get(_RETENTION))
    if interval is None or (interval.isascii() and interval.isdigit() and int(interval) and int(interval) % block == 0):
        return
    source = deployment.sources.get(f"environment.{_RETENTION}", deployment.sources["block_size"])
    yield ConfigError(
        f"{source}: {_RETENTION} is {interval}, with a block size of {block}",
        why="vLLM reads it as a number, and it has to be a multiple of the block size",
        remedy=f"give a multiple of {block}, {16 * block} for example",
    )


def _switches_of_another(deployment: Deployment, catalogue: Catalogue) -> Iterator[ConfigError]:
    family = deployment.family
    strange = [name for name in deployment.profile.environment if name not in {*family.registered, *family.environment}]
    if not strange:
        return
    others = [each for each in catalogue.families() if each.name != family.name]
    for name in strange:
        for other in others:
            if name in other.registered:
                yield ConfigError(
                    f"{deployment.sources[f'environment.{name}']}: {name} is a switch of family {other.name}",
                    why=f"{family.name} reads it nowhere: a warning in the log, and no effect (F05)",
                    remedy=f"leave {name} out, or say --family {other.name}",
                )
