"""The rehearsal's half of the contract; tests/bed/test_contract.py plays the same cases on two real hosts."""

from __future__ import annotations

import pytest

from ..contract import CASES, Case
from .pair import RehearsedPair


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_rehearsal_does_what_the_contract_says(rehearsed: RehearsedPair, case: Case) -> None:
    case.play(rehearsed)
