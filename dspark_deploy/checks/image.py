"""The image: there on both nodes, the same, and made for these machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dspark_deploy.checks.finding import Finding
from dspark_deploy.facts.node import Image, NodeFacts
from dspark_deploy.plan.deployment import Deployment

# `uname -m` -> what an image's own architecture field calls it
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}


def check_image(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Present on each node, of its architecture, and with the same content on both."""
    found: dict[str, Image] = {}
    for node, known in facts.items():
        if known.docker.access != "ok":
            continue  # docker-access has said it
        image = next((each for each in known.images if each.reference == deployment.image), None)
        if image is None:
            yield _missing(node, deployment)
            continue
        found[node] = image
        yield _architecture(node, known, image)
    if len(found) == len(facts) and facts:
        yield _same(deployment, found)


def _missing(node: str, deployment: Deployment) -> Finding:
    remedy = (
        f"on {node}: docker pull {deployment.image}, or copy it: docker save {deployment.image} | ssh … docker load"
    )
    message = f"{node}: image {deployment.image} is not there, and `up` never pulls"
    return Finding("image-present", "fail", message, node, remedy, ("F02",))


def _architecture(node: str, known: NodeFacts, image: Image) -> Finding:
    wanted = ARCHITECTURES.get(known.architecture, known.architecture)
    if image.architecture != wanted:
        message = f"{node}: image {image.reference} is {image.architecture}, the node is {wanted}"
        return Finding("image-architecture", "fail", message, node, f"load the {wanted} variant of the image there")
    return Finding("image-architecture", "ok", f"{node}: image {image.reference} is {wanted}", node)


def _same(deployment: Deployment, found: Mapping[str, Image]) -> Finding:
    """Layers and configuration decide: ids differ between image stores, and a tag proves nothing."""
    contents = {(image.layers, image.config) for image in found.values()}
    if len(contents) == 1:
        return Finding("image-same", "ok", f"both nodes hold the same {deployment.image}")
    ids = ", ".join(f"{node} {image.id[:19]}" for node, image in found.items())
    message = f"the nodes hold different images under {deployment.image} ({ids})"
    return Finding("image-same", "fail", message, None, "copy one node's image to the other, or pull on both", ("F01",))
