"""What a pair's own boots announced, as far as this controller has their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from dspark_deploy.capacity.measurements import Boot
from dspark_deploy.capacity.recorded import recorded_boot
from dspark_deploy.flow.runs import OUTCOME, PLAN, all_runs
from dspark_deploy.flow.wish import Wish
from dspark_deploy.model import Model

MOST = 20  # the last ones: images and drivers change, and each is two files to read


def own_boots(wish: Wish, pair: str, models: Iterable[Model]) -> tuple[Boot, ...]:
    """The newest first, of `models` alone: a record names what vLLM was told to serve."""
    names = {str(model.id or model.directory): model.name for model in models}
    return tuple(islice(_boots(wish, pair, names), MOST))


def _boots(wish: Wish, pair: str, names: Mapping[str, str]) -> Iterator[Boot]:
    for run in reversed(all_runs(wish)):
        if run.pair != pair:
            continue
        told, served = run.document(OUTCOME), run.document(PLAN).get("served") or {}
        model, figures = names.get(served.get("model", "")), told.get("figures")
        if told.get("outcome") != "serving" or model is None or not figures:
            continue
        boot = recorded_boot(run.id, family=served["family"], model=model, figures=figures)
        if boot is not None:
            yield boot
