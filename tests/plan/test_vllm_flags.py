"""The list of flags in the data files is that of the table which the stand-in engine holds its arguments to."""

from __future__ import annotations

from dspark_deploy.plan.vllm_flags import known_flags
from tests.vllm_parser import TABLE


def test_the_list_is_the_table() -> None:
    rows = [f"{line}\t\t\t\t\t\t\t".split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()]
    table = {
        flag: () if row[6] in {"", "(suppress)"} else tuple(row[6].split(","))
        for row in rows
        for flag in row[1].split()
        if flag.startswith("--")
    }
    assert known_flags() == table
