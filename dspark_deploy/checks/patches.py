"""The user's own patches: on the image that they were made for, and over files that it has."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine, unknown
from dspark_deploy.inventory import Inventory
from dspark_deploy.patch import Patch
from dspark_deploy.plan.patches import applying, fits
from dspark_deploy.plan.resolve import Workload


def targets(inventory: Inventory, workload: Workload | None) -> tuple[str, ...]:
    """The files of the image that something is mounted over: a look into it has to tell whether they are there."""
    every = _patches(inventory, workload)
    return tuple(dict.fromkeys(target for patch in every for target in patch.files.values()))


def _patches(inventory: Inventory, workload: Workload | None) -> tuple[Patch, ...]:
    if workload is None:
        return ()
    return tuple(patch for *_, patch in applying(workload.family, workload.profile, inventory))


def _image(case: Case) -> Iterator[Verdict]:
    """What was made for one image breaks another, in silence or on the first request."""
    for patch in _patches(case.inventory, case.workload):
        for node, _, image, _ in case.served():
            what = f"{node}: {patch.folder} is bound to {patch.image}"
            match fits(patch, image):
                case True:
                    yield fine(f"{what}, which {image.reference} is there", node)
                case False:
                    message = f"{what}, and {image.reference} is {image.id[:19]} there"
                    remedy = "try it on that image and bind it to it, serve the image it is for, or take it out"
                    yield bad(message, remedy, node)
                case None:
                    message = f"{what}, and {image.reference} has no digest there to tell it by"
                    yield doubtful(message, "dspark pull, or bind it to the image's id", node)


def _targets(case: Case) -> Iterator[Verdict]:
    """Docker makes what is not there: the file would lie where nothing reads it."""
    wanted = targets(case.inventory, case.workload)
    for node, known, image, _ in case.served() if wanted else ():
        looks = [look for look in known.looks if look.image_id == image.id]
        for target in wanted:
            if any(target in look.present for look in looks):
                yield fine(f"{node}: {image.reference} has {target}, which is mounted over", node)
            elif any(target in look.absent for look in looks):
                message = f"{node}: {image.reference} has no {target}, which a file is to be mounted over"
                yield bad(message, "mount it over the file that it replaces, or take it out", node)
            else:
                yield unknown(f"{node}: whether {image.reference} has {target} is not known", node)


CHECKS = (
    Check("patch-image", "image", "fail", ("F07",), _image),
    Check("patch-target", "image", "fail", ("F07",), _targets),
)
