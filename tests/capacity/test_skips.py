"""One .gitignore: the quick way says what the library says."""

from __future__ import annotations

import pytest

from dspark_deploy.capacity.skips import BINARY_EXTENSIONS, SKIPPED_FOLDERS, IgnoreFile

RULES = ["*.log", "!keep.log", "/top.txt", "docs/*.md", "**/deep.txt", "build/", "name", "odd\\ name", "*.[oa]", "# no"]


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("a/b.log", True),
        ("a/keep.log", False),
        ("top.txt", True),
        ("a/top.txt", None),
        ("docs/x.md", True),
        ("a/docs/x.md", None),
        ("a/b/deep.txt", True),
        ("a/name", True),
        ("odd name", True),
        ("x.o", True),
        ("x.c", None),
        ("build", None),  # a file of that name: the pattern means folders
        ("# no", None),
    ],
)
def test_a_file_is_ignored_as_git_does(path: str, ignored: bool | None) -> None:
    assert IgnoreFile(RULES).says_of_file(path, path.rpartition("/")[2]) is ignored


@pytest.mark.parametrize(("path", "ignored"), [("build/", True), ("a/build/", True), ("name/", True), ("src/", None)])
def test_a_folder_is_ignored_as_git_does(path: str, ignored: bool | None) -> None:
    assert IgnoreFile(RULES).says_of_folder(path) is ignored


@pytest.mark.parametrize(
    ("rules", "path", "ignored"),
    [
        (["/env/**", "!/env/keep"], "env/keep", False),
        (["/env/**"], "env/x", True),
        ([".env*", "!.env/"], ".env/x", None),  # the folder was taken back: what lies in it is not meant
        (["*b/*", "!ab"], "ab/ab", False),
    ],
)
def test_a_pattern_means_a_path_and_not_what_lies_in_it(rules: list[str], path: str, ignored: bool | None) -> None:
    assert IgnoreFile(rules).says_of_file(path, path.rpartition("/")[2]) is ignored


def test_all_that_lies_in_a_folder_is_not_the_folder() -> None:
    assert IgnoreFile(["/env/**"]).says_of_folder("env/") is None
    assert IgnoreFile(["/env/**"]).says_of_folder("env/sub/") is True


@pytest.mark.parametrize("line", ["!", "\\", "foo\\", "[z-a]", "[", "", "   ", "/"])
def test_a_line_that_is_no_pattern_means_nothing_and_the_others_still_hold(line: str) -> None:
    ignore = IgnoreFile([line, "*.log"])
    assert ignore.says_of_file("a.log", "a.log") is True
    assert ignore.says_of_file("a.txt", "a.txt") is None


def test_the_lists_are_what_names_are_compared_with() -> None:
    assert {".git", "node_modules", "__pycache__", ".venv"} <= SKIPPED_FOLDERS
    assert {"png", "so", "pdf"} <= BINARY_EXTENSIONS
    assert all(word == word.lower() for word in BINARY_EXTENSIONS)
