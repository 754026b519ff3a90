"""What changes in a node's files, as a person reads it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

CONTEXT_LINES = 1


def diff_files(before: Mapping[str, str] | None, after: Mapping[str, str]) -> str:
    """A unified diff of two sets of files, name by name; empty where nothing differs.

    `before` is None where nothing serves: then the files are only named, since all of each is new. The manifest is
    left out: it repeats the others' hashes.
    """
    if before is None:
        return "".join(f"new file {name}\n" for name in sorted(after) if name != "manifest.json")
    return "".join(_changes(before, after))


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *after} - {"manifest.json"}):
        if before.get(name) != after.get(name) and any(_is_binary(files.get(name, "")) for files in (before, after)):
            yield f"binary file {name} differs\n"
            continue
        old, new = (_lines(files.get(name, "")) for files in (before, after))
        yield from difflib.unified_diff(old, new, f"serving/{name}", f"planned/{name}", n=CONTEXT_LINES)


def _is_binary(text: str) -> bool:
    """Of the user's own patches: bytes that are no text stand in it as lone surrogates."""
    return "\0" in text or any("\ud800" <= each <= "\udfff" for each in text)


def _lines(text: str) -> list[str]:
    """Lines without what differs in every release: its own id and the tool that rendered it."""
    lines = text.splitlines(keepends=True)
    return [
        line for line in lines if "dspark.release:" not in line and not line.startswith(("# Rendered by", "# Rank "))
    ]
