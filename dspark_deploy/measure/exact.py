"""Prompts of an exact number of tokens, as the server itself counts them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from itertools import cycle, islice

from dspark_deploy.measure.side import Side
from dspark_deploy.remote.served import HTTP_OK

TRIES = 12
COUNT_S = 120.0
_STORY = """the old harbour was quiet before dawn and a few boats moved slowly past the stone pier while lamps went out
one by one along the quay where nets hung over rails to dry and gulls walked about as if they owned every plank of it"""
_WORDS = _STORY.split()
_PIECE = " a"  # about one token
STORY = "Go on with this story at length."
LETTERS_A_TOKEN, LETTERS_A_WORD = 4, 5.2


@dataclass(frozen=True, slots=True)
class Counted:
    """A prompt and its tokens, the chat template's included; `exact` where the server counted them."""

    text: str
    tokens: int
    exact: bool


@dataclass(slots=True)
class Writer:
    """Writes prompts for one side, and remembers how many words made so many tokens."""

    side: Side
    words: dict[int, int] = field(default_factory=dict)  # tokens -> words of filler that brought them
    _counts: bool = True  # until the server says that it can't

    async def write(self, tokens: int, *, opening: str = "", ending: str = STORY) -> Counted:
        """A prompt of `tokens`, or of the nearest count that was met. Its first words are its own: no cache has them.

        Where the server does not count (404), four characters are taken for a token and the usage has to tell. Raises
        NoAnswer.
        """
        head = f"[{secrets.token_hex(8)}] {opening}"
        words, pieces = self.words.get(tokens, max(1, int(tokens / 1.2) - 20)), 0
        text, count = "", 0
        for _ in range(TRIES):
            text = _text(head, words, pieces, ending)
            found = await self._count(text)
            if found is None:
                letters = tokens * LETTERS_A_TOKEN - len(head) - len(ending)
                return Counted(_text(head, max(1, int(letters / LETTERS_A_WORD)), 0, ending), tokens, exact=False)
            count = found
            missing = tokens - count
            if missing == 0:
                self.words[tokens] = words
                break
            if 0 < missing <= 8 and words:  # noqa: PLR2004  too little for a word more or less
                pieces += missing
            else:
                step = round(missing * words / max(1, count - 12))
                words, pieces = max(0, words + (step or (1 if missing > 0 else -1))), 0
        return Counted(text, count, exact=True)

    async def _count(self, text: str) -> int | None:
        if not self._counts:
            return None
        body = {key: value for key, value in self.side.chat(text, tokens=1).items() if key != "max_tokens"}
        answer = await self.side.client.post("/tokenize", body, timeout_s=COUNT_S)
        match answer.document():
            case {"count": int(count)} if answer.status == HTTP_OK:
                return count
            case _:
                self._counts = False
                return None


def _text(head: str, words: int, pieces: int, ending: str) -> str:
    filler = " ".join(islice(cycle(_WORDS), words))
    return f"{head}{filler}{_PIECE * pieces}. {ending}"
