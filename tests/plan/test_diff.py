from __future__ import annotations

from dspark_deploy.plan.diff import diff_files

COMPOSE = "# Rank 0, release {id}.\nservices:\n  vllm:\n    command: [{seqs}]\n      dspark.release: {id}\n"


def test_only_what_differs_is_shown() -> None:
    before = {"compose.yaml": COMPOSE.format(id="aaa", seqs=6), ".env": "A=1\n", "manifest.json": "{1}"}
    after = {"compose.yaml": COMPOSE.format(id="bbb", seqs=4), ".env": "A=1\n", "manifest.json": "{2}"}
    assert diff_files(before, after).splitlines() == [
        "--- serving/compose.yaml",
        "+++ planned/compose.yaml",
        "@@ -2,2 +2,2 @@",
        "   vllm:",
        "-    command: [6]",
        "+    command: [4]",
    ]


def test_equal_files_show_nothing() -> None:
    files = {"compose.yaml": COMPOSE.format(id="aaa", seqs=6)}
    assert diff_files(files, {"compose.yaml": COMPOSE.format(id="bbb", seqs=6)}) == ""


def test_where_nothing_serves_the_files_are_named() -> None:
    assert diff_files(None, {"b": "1\n", "a": "2\n", "manifest.json": "{}"}) == "new file a\nnew file b\n"


def test_a_file_that_goes_and_one_that_comes_are_shown_whole() -> None:
    shown = diff_files({"old": "x\n"}, {"new": "y\n"})
    assert "-x\n" in shown
    assert "+y\n" in shown


def test_a_binary_file_is_named_only() -> None:
    before, after = {"patches/a.so": "\udcff"}, {"patches/a.so": "\udcfe"}
    assert diff_files(before, after) == "binary file patches/a.so differs\n"
    assert diff_files(before, before) == ""
