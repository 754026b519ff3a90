"""What is in the image: the layout of its family, and the variables that its vLLM reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine, unknown
from dspark_deploy.facts.node import Image, Look, NodeFacts
from dspark_deploy.family import Family


def layout_of(family: Family) -> tuple[str, ...]:
    """What every image of the family has: its executable, its interpreter, its vLLM's own list of variables."""
    return (family.executable, family.python, variables_file(family))


def variables_file(family: Family) -> str:
    """Where the family's vLLM says which variables it reads."""
    return f"{family.packages}/vllm/envs.py"


def look_for(*families: Family, also: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """What to look for in an image that may be of one of `families`: its layout, and `also` these files."""
    return {
        "paths": tuple(dict.fromkeys((*(path for family in families for path in layout_of(family)), *also))),
        "names_in": tuple(variables_file(family) for family in families),
    }


def look_at(known: NodeFacts, image: Image, family: Family) -> Look | None:
    """What the node knows of the image's content, as far as it tells of this family."""
    for look in known.looks:
        if look.image_id == image.id and set(layout_of(family)) <= {*look.present, *look.absent}:
            return look
    return None


def _layout(case: Case) -> Iterator[Verdict]:
    for node, known, image, workload in case.served():
        family = workload.family
        look = look_at(known, image, family)
        if look is None:
            yield unknown(f"{node}: what is in {image.reference} is not known: {_why(known)}", node)
            continue
        lacking = [path for path in layout_of(family) if path in look.absent]
        if lacking:
            yield _other(case, node, image, look, lacking[0])
        else:
            yield fine(f"{node}: {image.reference} is laid out as {family.name}", node)


def _why(known: NodeFacts) -> str:
    return known.missing.get("look", "it was not looked into")


def _other(case: Case, node: str, image: Image, look: Look, lacking: str) -> Verdict:
    family = case.family()
    fits = next((each.name for each in case.catalogue.families() if set(layout_of(each)) <= set(look.present)), None)
    what = f"{node}: {image.reference} is not laid out as {family.name if family else 'meant'}: it has no {lacking}"
    if fits is None:
        return bad(what, f"load the image of that family under the tag on {node}", node)
    return bad(f"{what}; it is laid out as {fits}", f"say --family {fits}, or put the right image under the tag", node)


def _variables(case: Case) -> Iterator[Verdict]:
    """What is rendered and read nowhere has no effect, and vLLM warns of each at boot."""
    for node, known, image, workload in case.served():
        family = workload.family
        look = look_at(known, image, family)
        names = look.names.get(variables_file(family)) if look else None
        if not names:
            continue
        given = {**family.environment, **workload.profile.environment}
        unread = sorted(name for name in given if name.startswith("VLLM_") and name not in names)
        if unread:
            message = f"{node}: {image.reference} does not read {', '.join(unread)}"
            yield bad(
                f"{message}{_guess(unread[0], names)}", "leave them out of the profile, or of the family's file", node
            )
        else:
            yield fine(f"{node}: {image.reference} reads every VLLM_* variable that it is given", node)


def _guess(name: str, names: tuple[str, ...]) -> str:
    close = get_close_matches(name, names, n=1, cutoff=0.9)
    return f"; did you mean {close[0]}?" if close else ""


CHECKS = (
    Check("image-layout", "image", "fail", ("F03",), _layout),
    Check("image-variables", "image", "warn", ("F05",), _variables),
)
