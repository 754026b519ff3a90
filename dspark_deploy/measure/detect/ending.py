"""Nothing said, or not to the end."""

from __future__ import annotations

import re

from dspark_deploy.measure.detect.sample import Alarm, Sample

_ENDS = ".!?…。！？；;:：\"'”’」』》)）]】}`*_|>~"
_OPEN_ENDED = re.compile(
    r"(?:[,，、(（\[{=+/&<—–]|[A-Za-z]-|->|\b(?:and|or|the|a|an|of|to|in|with|for|is|are|was|that|which|by|as|from|its|because|but|if|than"
    r"|return|import|def|class|else|elif|not))$"
)
_LINE_OF_ITS_OWN = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|\||#|>|```|[A-Za-z ]{1,30}:(?: *\S+){0,6}$)")
_PROSE_LINE = {"english": 8, "chinese": 12}  # words (Chinese: characters) of a line that has to end in a full stop
_STRINGS = r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_COMMENT = {  # how a comment begins, by the languages of the block's first line
    **dict.fromkeys(("c", "cpp", "csharp", "go", "java", "javascript", "js", "kotlin", "rust", "swift", "ts"), "//"),
    **dict.fromkeys(("typescript",), "//"),
    **dict.fromkeys(("sql", "haskell", "lua"), "--"),
}
_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
_HEADER_ONLY = re.compile(r"(?:^|\n)\s*(?:def|class|if|for|while|with|try|else|elif)\b[^\n]*:\s*$")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def detect_empty(sample: Sample) -> Alarm | None:
    """An alarm where nothing is left but the reference code, blanks, fences and marks."""
    rest = sample.answer.replace(sample.code, " ") if sample.code else sample.answer
    rest = re.sub(r"(?i)```\w*|reference code|\b(?:null|none|undefined|nan|n/?a)\b|&nbsp;|<br ?/?>", " ", rest)
    if any(character.isalnum() for character in rest):
        return None
    return Alarm("empty", repr(sample.answer[:60]))


def detect_truncated(sample: Sample) -> Alarm | None:
    """An alarm where the answer ends before it has ended: by its limit, in a word, a sentence, a block or a bracket."""
    answer = sample.answer.rstrip()
    if sample.finish_reason not in {"stop", "tool_calls"}:
        return Alarm("truncated", f"finish reason {sample.finish_reason or 'missing'!r}: … {answer[-60:]}")
    if not answer:
        return None
    if answer.count("```") % 2:
        return Alarm("truncated", f"a block of code is open: … {answer[-60:]}")
    last = answer.splitlines()[-1]
    ended = last.endswith("```")
    if not ended and _OPEN_ENDED.search(last) and any(map(str.isalpha, last)):
        return Alarm("truncated", f"… {answer[-60:]}")
    if sample.form == "code":
        return _open_code(answer)
    return None if ended else _open_sentence(sample, last)


def _open_sentence(sample: Sample, last: str) -> Alarm | None:
    if last[-1] in _ENDS or _LINE_OF_ITS_OWN.match(last):
        return None
    if sample.code and last.strip().endswith(sample.code):
        return None
    counted = len(re.findall(r"[\u4e00-\u9fff]", last)) if sample.language == "chinese" else len(last.split())
    closing_mark = not last[-1].isalnum()  # an emoji, a degree sign
    if counted < _PROSE_LINE[sample.language] or closing_mark:
        return None
    return Alarm("truncated", f"… {last[-60:]}")


def _open_code(answer: str) -> Alarm | None:
    """Blocks whose brackets do not close, or that end in the head of one. Strings and comments count as one word."""
    for language, block in _BLOCK.findall(answer) or [("", answer)]:
        comment = re.escape(_COMMENT.get(language.lower(), "#"))
        code, depth = re.sub(rf"{_STRINGS}|{comment}.*", "s", block), 0
        for character in code:
            depth += (character in _PAIRS) - (character in _PAIRS.values())
        if depth > 0:
            return Alarm("truncated", f"{depth} brackets are open: … {block.rstrip()[-60:]}")
        if _HEADER_ONLY.search(code.rstrip()):
            return Alarm("truncated", f"a block without a body: … {block.rstrip()[-60:]}")
    return None
