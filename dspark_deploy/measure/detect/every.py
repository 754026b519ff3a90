"""All detectors. A new one is a file and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dspark_deploy.measure.detect.ending import detect_empty, detect_truncated
from dspark_deploy.measure.detect.garbled import detect_garbled
from dspark_deploy.measure.detect.loop import detect_loop
from dspark_deploy.measure.detect.markup import detect_markup
from dspark_deploy.measure.detect.mixed import detect_mixed
from dspark_deploy.measure.detect.prompt import detect_prompt
from dspark_deploy.measure.detect.sample import Alarm, Kind, Sample
from dspark_deploy.measure.detect.script import detect_script

DETECTORS: Mapping[Kind, Callable[[Sample], Alarm | None]] = {
    "script": detect_script,
    "garbled": detect_garbled,
    "loop": detect_loop,
    "markup": detect_markup,
    "prompt": detect_prompt,
    "empty": detect_empty,
    "truncated": detect_truncated,
    "mixed": detect_mixed,
}


def detect(sample: Sample) -> tuple[Alarm, ...]:
    """Every alarm that an answer raises; none where it is sane."""
    return tuple(alarm for detector in DETECTORS.values() if (alarm := detector(sample)) is not None)
