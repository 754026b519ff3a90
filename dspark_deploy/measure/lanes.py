"""Published decode rates as data, and a result set beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from dspark_deploy.bundled import data_folder
from dspark_deploy.errors import ConfigError
from dspark_deploy.measure.decode import Lane
from dspark_deploy.strict import Name, Strict, Text, nearest, read_document, validate

BAND = 0.10  # published trials of one lane lie up to 6 % from their median; another pair's image and cable add to that

Range = tuple[PositiveFloat, PositiveFloat]


class Figure(Strict):
    """What was published for so many requests at once. Where one number was, both ends are that number."""

    concurrency: PositiveInt
    aggregate_tps: Range
    stream_tps: PositiveFloat | None = None
    acceptance: Range | None = None


class PublishedLane(Strict):
    """One published measurement of decoding."""

    name: Name
    profiles: tuple[Name, ...]
    model: Name
    arrivals: Literal["static", "staggered"] = "static"
    source: Text
    figures: Annotated[tuple[Figure, ...], Field(min_length=1)]


class _File(Strict):
    lanes: tuple[PublishedLane, ...]


@dataclass(frozen=True, slots=True)
class Drift:
    """One concurrency beside its published figure. `drift` is None where nothing was published or measured for it."""

    concurrency: int
    measured_tps: float | None
    published_tps: tuple[float, float] | None
    drift: float | None  # from the nearer end of the published range: -0.12 is 12 % slower
    within: bool | None


def load_lanes() -> tuple[PublishedLane, ...]:
    """The bundled file."""
    document = read_document(data_folder("profiles") / "lanes.yaml", absent="reinstall dspark-deploy")
    return validate(_File, document.data, document.where).lanes


def find_lane(lanes: Sequence[PublishedLane], name: str, arrivals: str) -> PublishedLane:
    """The lane of a profile or of that name. Raises ConfigError with the nearest."""
    speaks = [each for each in lanes if each.arrivals == arrivals and name in {each.name, *each.profiles}]
    if speaks:
        return speaks[0]
    known = sorted({each.name for each in lanes} | {profile for each in lanes for profile in each.profiles})
    guess = nearest(name, known)
    hint = f"did you mean `{guess}`? " if guess and guess != name else ""
    raise ConfigError(
        f"--expect {name}: no decode rate was published for it with {arrivals} arrivals",
        remedy=f"{hint}published: {', '.join(known)}",
    )


def set_beside(measured: Sequence[Lane], published: PublishedLane, band: float = BAND) -> tuple[Drift, ...]:
    """Each measured concurrency beside its figure."""
    figures = {figure.concurrency: figure for figure in published.figures}
    return tuple(_drift(lane, figures.get(lane.concurrency), band) for lane in measured)


def _drift(lane: Lane, figure: Figure | None, band: float) -> Drift:
    rate = lane.median.aggregate_tps if lane.median else None
    if figure is None or rate is None:
        return Drift(lane.concurrency, rate, figure.aggregate_tps if figure else None, None, None)
    low, high = figure.aggregate_tps
    drift = rate / low - 1 if rate < low else max(0.0, rate / high - 1)
    return Drift(lane.concurrency, rate, figure.aggregate_tps, drift, abs(drift) <= band)
