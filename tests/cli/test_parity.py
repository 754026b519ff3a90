"""What `parity` prints of its verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from dspark_deploy.checks.parity import Compared
from dspark_deploy.cli.parity import parity
from dspark_deploy.flow import parity as flow
from dspark_deploy.flow.parity import ParityReport

ALIKE = Compared("release", "ok", "both ranks run release 0123456789ab", what="release")
OTHER = Compared("argv", "fail", "--port: head 1, worker 2", remedy="start anew", what="--port", head="1", worker="2")
REPORT = ParityReport("spark-pair", True, "2026-09-01T10:00:00Z", "0123456789ab", "anemll", (ALIKE,))


@pytest.fixture(name="says")
def _says(monkeypatch: pytest.MonkeyPatch) -> Any:
    def says(report: ParityReport, *words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(flow, "compare_ranks", lambda *_: report)
        ran = CliRunner().invoke(parity, words, standalone_mode=False)
        assert ran.exception is None, ran.exception
        return int(ran.return_value), ran.stdout, ran.stderr

    return says


def test_ranks_that_agree_are_exit_0(says: Any) -> None:
    code, out, err = says(REPORT)
    assert (code, out, err) == (0, "spark-pair: the ranks agree\n[OK]   both ranks run release 0123456789ab\n", "")


def test_ranks_that_differ_are_exit_7_with_each_item_and_what_to_type(says: Any) -> None:
    code, out, err = says(replace(REPORT, agree=False, findings=(ALIKE, OTHER), warnings=("not kept",)))
    assert code == 7
    assert out.splitlines()[2:] == ["[FAIL] --port: head 1, worker 2", "       -> start anew"]
    assert err == "[WARN] not kept\n"
