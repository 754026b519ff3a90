"""The model's own tokenizer, from its file. Needs the extra `tokenizers`; importing this without it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dspark_deploy.errors import ConfigError

try:
    from tokenizers import Tokenizer
except ImportError as missing:
    raise ConfigError(
        "counting with the model's tokenizer needs the package tokenizers",
        remedy="pip install 'dspark-deploy[tokenizers]', or say --tokenizer estimate",
    ) from missing

_AT_ONCE = 2**16  # characters: what is known of each token takes a hundred times its text


def read_tokenizer(text: str, where: str) -> Callable[[bytes], float]:
    """A counter from the text of a tokenizer.json. Raises ConfigError where it is none."""
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library has no narrower kind for a file that is none of its own
        raise ConfigError(f"{where}: not a tokenizer: {error}", remedy="name the model's tokenizer.json") from error

    def count(data: bytes) -> float:
        parts = list(_parts(data.decode("utf-8", "replace")))
        return sum(len(each.ids) for each in tokenizer.encode_batch(parts, add_special_tokens=False))

    return count


def _parts(text: str) -> Iterator[str]:
    """The text in parts of bounded length, cut at spaces or line ends where there are any."""
    at = 0
    while at < len(text):
        end = at + _AT_ONCE
        if end < len(text):
            gap = max(text.rfind("\n", at + 1, end), text.rfind(" ", at + 1, end))
            end = gap if gap > 0 else end
        yield text[at:end]
        at = end
