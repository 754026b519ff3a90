"""`advise`: every profile held against a description of the work. Asks no host."""

from __future__ import annotations

from dataclasses import dataclass

from dspark_deploy.capacity.advice import Advice, Candidate, Wanted, advise
from dspark_deploy.capacity.measurements import Measurements, load_measurements
from dspark_deploy.flow.budget import make_lane
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.intention import read_settings
from dspark_deploy.flow.own import NOTHING, Own
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.resolve import Workload, resolve_workload


@dataclass(frozen=True, slots=True)
class AdviceReport:
    """The question and its answer."""

    wanted: Wanted
    advice: Advice
    warnings: tuple[str, ...]


def give_advice(wish: Wish, wanted: Wanted, own: Own = NOTHING) -> AdviceReport:
    """Rank all profiles, or judge the one that is wished for. `own`: of the pair itself. Raises ConfigError."""
    settings = read_settings(wish)
    catalogue = catalogue_of(wish)
    names = [wish.profile] if wish.profile else sorted(catalogue.search.files("profile"))
    data = load_measurements()
    candidates = [_candidate(resolve_workload(catalogue, name), data, own) for name in names]
    return AdviceReport(wanted, advise(wanted, candidates), settings.warnings)


def _candidate(workload: Workload, data: Measurements, own: Own) -> Candidate:
    return Candidate(make_lane(workload, data, own), workload.family.max_verify_rows)
