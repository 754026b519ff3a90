"""The image: there on both nodes, the same, of the digest that was meant, and made for these machines."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine
from dspark_deploy.facts.architecture import of_images
from dspark_deploy.facts.node import Image
from dspark_deploy.plan.refusals import repository
from dspark_deploy.plan.resolve import Workload


def _present(case: Case) -> Iterator[Verdict]:
    if case.workload is None:
        return
    image = case.workload.image
    held = {node: found for node, _, found, _ in case.served()}
    for node, _ in case.usable():
        if node in held:
            yield fine(f"{node}: {named(held[node])}", node)
        else:
            message = f"{node}: image {image} is not there, and `up` never pulls"
            yield bad(message, f"dspark pull, or on {node}: {_other_way(case, node, image)}", node)


def _other_way(case: Case, node: str, image: str) -> str:
    has = next((other for other, _, _, _ in case.served() if other != node), None)
    return f"ssh {has.upper()} docker save {image} | docker load" if has else f"docker load of an archive of {image}"


def named(image: Image) -> str:
    """Tag, digest and id: what people compare images by."""
    digests = " ".join(digest.partition("@")[2][:19] for digest in image.digests) or "no digest"
    return f"{image.reference}, {digests}, id {image.id[:19]}"


def _architecture(case: Case) -> Iterator[Verdict]:
    for node, known, image, _ in case.served():
        wanted = of_images(known.architecture)
        if image.architecture == wanted:
            yield fine(f"{node}: image {image.reference} is {wanted}, as the node is", node)
        else:
            message = f"{node}: image {image.reference} is {image.architecture}, the node is {wanted}"
            yield bad(message, f"load the {wanted} variant of the image there", node)


def _same(case: Case) -> Iterator[Verdict]:
    """Layers and configuration decide: ids differ between image stores, and a tag proves nothing."""
    held = {node: image for node, _, image, _ in case.served()}
    if len(held) < 2:  # noqa: PLR2004  a pair
        return
    if len({(image.layers, image.config) for image in held.values()}) == 1:
        yield fine(f"both nodes hold the same {next(iter(held.values())).reference}")
    else:
        listed = "; ".join(f"{node}: {named(image)}" for node, image in held.items())
        remedy = "dspark pull, or copy one node's image to the other: docker save … | ssh … docker load"
        yield bad(f"the nodes hold different images under one tag ({listed})", remedy)


def _digest(case: Case) -> Iterator[Verdict]:
    """A tag moves. What the user pinned has to be there; the family's own digest is what was published, and no more."""
    for node, _, image, workload in case.served():
        wanted = workload.digest
        if wanted is None:
            continue
        known = {digest.partition("@")[2] for digest in image.digests if _is_of(digest, workload)}
        if not known:
            yield fine(f"{node}: {image.reference} was loaded, not pulled, so that it knows no digest", node)
        elif wanted in known:
            yield fine(f"{node}: {image.reference} has the digest that is meant", node)
        else:
            yield _moved(node, image, workload, ", ".join(sorted(known)))


def _is_of(digest: str, workload: Workload) -> bool:
    return digest.partition("@")[0] == repository(workload.image)


def _moved(node: str, image: Image, workload: Workload, known: str) -> Verdict:
    message = f"{node}: {image.reference} is {known}, and {workload.digest} is meant"
    if "@" in (workload.profile.image or ""):
        return bad(message, "dspark pull", node)
    published = f"{message}, which is what {workload.family.name} was published with"
    return doubtful(published, "dspark pull brings that back; or pin the new one: --set image=NAME:TAG@sha256:…", node)


CHECKS = (
    Check("image-present", "image", "fail", ("F02",), _present),
    Check("image-architecture", "image", "fail", ("F123",), _architecture),
    Check("image-same", "image", "fail", ("F01", "F10"), _same),
    Check("image-digest", "image", "fail", ("F11",), _digest),
)
