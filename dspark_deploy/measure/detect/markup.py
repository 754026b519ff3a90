"""What only the runtime should see: special tokens, tags of reasoning and tool calls, and turns of the template."""

from __future__ import annotations

import re

from dspark_deploy.measure.detect.sample import Alarm, Sample, excerpt

# No text of any kind holds these, so they count inside code, too.
_TOKENS = re.compile(
    r"<[|｜][^<>|｜\n ]{1,60}[|｜]>|<[|｜]?[\w/]*▁[\w▁]*[|｜]?>|｜DSML｜"
    r"|\[/?(?:TOOL_CALLS|AVAILABLE_TOOLS|INST|TOOL_RESULTS)\]"
    r"|<0x[0-9A-F]{2}>|<(?:unk|pad|bos|eos|mask)>|<(?:start|end)_of_turn>"
)
# A text about markup may quote these in code; as plain text they have leaked.
_TAGS = re.compile(
    r"</?(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|tool_call|tool_calls|tool_response"
    r"|function_call|function_calls|function_results|tool_result|tool_outputs|invoke|parameter|arg_key|arg_value"
    r"|function|answer|output|final)(?:[ =][^>\n]{0,120})?>",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"(?:^|\n)\s*(?:<?(?:user|assistant|human|system|tool)>?)\s*[:：]?\s*(?:\n|$)"
    r"|(?:^|\n)(?:Human|User|Assistant|System): \S"
    r"|[.!?。\n]\s*(?:assistant|assistantfinal|analysis|commentary)\s*$|^\s*(?:assistant|analysis|final)\s*\n",
)
_CALLS = re.compile(
    r"^\s*\{\s*\"(?:name|tool|function|tool_calls?|tool_name|recipient_name)\"\s*:\s*[\"\[{].*"
    r"\"?(?:arguments|parameters|function|input)\"?"
    r"|functions\.\w+:\d+|to=functions\.\w+|\"tool_calls\"\s*:\s*\[|^\s*(?:Action|Action Input|Observation|Thought): ",
    re.DOTALL | re.MULTILINE,
)
_END = re.compile(r"</s>\s*$")


def detect_markup(sample: Sample) -> Alarm | None:
    """An alarm where the runtime's own signs stand in the answer."""
    if found := _TOKENS.search(sample.answer):
        return Alarm("markup", excerpt(sample.answer, found.start()))
    for pattern in (_TAGS, _TURNS, _CALLS, _END):
        if found := pattern.search(sample.prose):
            return Alarm("markup", excerpt(sample.prose, found.start()))
    return None
