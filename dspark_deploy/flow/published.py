"""What was published about the image and model that serve."""

from __future__ import annotations

from dspark_deploy.capacity.measurements import Sweep, load_measurements
from dspark_deploy.capacity.sweep import Estimate, choose_sweep, interpolate
from dspark_deploy.measure.store import Origin


def published_for(origin: Origin) -> Sweep | None:
    """The published sweep that speaks for this pair's image and model."""
    known = load_measurements().sweeps
    names = {each.model for each in known if origin.model.lower().endswith(each.model.lower())}
    model = next(iter(sorted(names)), "")
    return choose_sweep((), known, family=origin.family, model=model)


def minutes(seconds: float) -> str:
    """`about 38 minutes`."""
    if seconds < 90:  # noqa: PLR2004  until then seconds say more
        return f"about {max(1, round(seconds))} seconds"
    return f"about {round(seconds / 60)} minutes"


def ttft_for(origin: Origin, prompt: int) -> float | None:
    """Seconds to the first token of one prompt of that length; None where nothing published tells."""
    sweep = published_for(origin)
    found = interpolate(sweep, prompt, 1) if sweep is not None else None
    return found.ttft_s if isinstance(found, Estimate) else None
