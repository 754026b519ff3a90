"""Which parts of a tree are no text that anyone would put into a prompt: decided by name and by .gitignore."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pathspec import GitIgnoreSpec
from pathspec.pattern import Pattern

_FOLDERS = """
.git .hg .svn .idea .vscode .gradle .terraform .next .nuxt .cache .tox .nox .venv venv node_modules bower_components
vendor __pycache__ .mypy_cache .pytest_cache .ruff_cache .ipynb_checkpoints site-packages build dist target
"""
_BINARY = """
7z a avi avif bin bmp bz2 class db dll dylib eot exe flac gif gz gguf heic ico jar jpeg jpg lib mkv mov mp3 mp4 npy npz
o obj ogg onnx otf parquet pdf pickle pkl png psd pt pth pyc pyd pyo rar safetensors so sqlite sqlite3 tar tgz tif tiff
ttf wasm wav webm webp whl woff woff2 xz zip zst doc docx xls xlsx ppt pptx
"""
_NAMES = """
package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml poetry.lock uv.lock Pipfile.lock Cargo.lock composer.lock
Gemfile.lock go.sum .DS_Store Thumbs.db
"""
SKIPPED_FOLDERS = frozenset(_FOLDERS.split())  # made by tools, or holding what other people wrote
BINARY_EXTENSIONS = frozenset(_BINARY.split())  # need not be opened; what else is binary tells itself by a zero byte
SKIPPED_NAMES = frozenset(_NAMES.split())  # text, but none the wiser is who reads it; so are bundles:
SKIPPED_ENDS = (".min.js", ".min.css", ".js.map", ".css.map")

_GLOB = frozenset("*?[\\")
_MORE_GLOB = _GLOB | {"/"}


class IgnoreFile:
    """One .gitignore. Its paths start in its own folder, with `/` at the end of a folder's.

    A line that is no pattern means nothing, as with git.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [pattern for line in lines for pattern in _patterns(line)]
        # A folder's pattern can't be meant by a file: files below an ignored folder are never met.
        of_files = [each for each in self._patterns if not each.text.endswith("/")]
        plain = {each.text for each in of_files if not _GLOB & set(each.text)}
        ends = {each.text for each in of_files if each.text.startswith("*") and not _MORE_GLOB & set(each.text[1:])}
        self._names = frozenset(text for text in plain if "/" not in text)
        self._paths = frozenset(text.removeprefix("/") for text in plain if "/" in text)
        self._ends = tuple(text[1:] for text in ends)
        self._others = [each for each in of_files if each.text not in plain | ends]

    def says_of_folder(self, path: str) -> bool | None:
        """Whether the folder is ignored; None where no pattern speaks of it."""
        return self._says(path)

    def says_of_file(self, path: str, name: str) -> bool | None:
        """The same of a file, `name` being its path's end. Most files are meant by no pattern, and that is quick."""
        if (
            name in self._names
            or name.endswith(self._ends)
            or path in self._paths
            or (self._others and any(each.matches(path) for each in self._others))
        ):
            return self._says(path)
        return None

    def _says(self, path: str) -> bool | None:
        """The last pattern that means it decides."""
        return next((each.ignores for each in reversed(self._patterns) if each.means(path)), None)


@dataclass(frozen=True, slots=True)
class _Pattern:
    text: str  # without the `!`
    ignores: bool  # False: it takes back what an earlier one ignores
    regex: Pattern

    def matches(self, path: str) -> bool:
        """Whether the library's pattern matches: the path, or a folder that it lies in."""
        return self.regex.match_file(path) is not None

    def means(self, path: str) -> bool:
        """Whether it is the path itself that is meant, not a folder that it lies in.

        An ignored folder is never entered: what is met in one that the pattern means was taken back by another.
        """
        folder, _, name = path.removesuffix("/").rpartition("/")
        if self.text.endswith("/**"):
            return self.matches(path.removesuffix("/"))  # all that lies in a folder, but not the folder
        if "/" not in self.text.removeprefix("**/").removesuffix("/"):
            return self.matches(f"{name}/" if path.endswith("/") else name)
        return self.matches(path) and not (folder and self.matches(f"{folder}/"))


def _patterns(line: str) -> Iterator[_Pattern]:
    """The pattern that a line is, if it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of `[[:alpha:]]`, which the library passes on to re
            compiled = GitIgnoreSpec.from_lines([line]).patterns
    except (ValueError, re.error):
        return
    for each in compiled:
        if each.include is not None:
            yield _Pattern(line.strip().removeprefix("!"), each.include, each)
