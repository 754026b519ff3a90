"""What the background process is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.rehearsal.demand import spec_of
from dspark_deploy.rehearsal.scenarios import scenarios
from dspark_deploy.rehearsal.spec import Spec


@pytest.mark.parametrize("name", scenarios())
def test_a_spec_that_was_written_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    spec = spec_of(catalogue_of(Wish(directory=Path(), home=Path())), name, 60.0)
    assert (spec.head, spec.worker) == (scenarios()[name].head, scenarios()[name].worker)
    spec.write(tmp_path / "spec.json")
    assert Spec.read(tmp_path / "spec.json") == spec
