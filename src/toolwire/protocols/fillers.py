"""The marks around calls that mean nothing by themselves: tokens, wrapping tags, fences and the label `Action:`.

`\\0` stands for a call that was cut out of the text.
"""

from __future__ import annotations

import re

_WRAPPERS = r"tool_calls?|function_calls?|tool_use|tool_code|toolcall|call|action|function|tool|invoke_tool"
_FULL = r"tool[▁_]calls?[▁_]"
OPENS = rf"""
    <(?:\w{{1,16}}:)?(?:{_WRAPPERS})>
  | <\|(?:tool_calls?|tool_calls?_(?:section_)?(?:begin|start)|python_tag|plugin|action_start|start_action|start
       |function_call|tool)\|>
  | <｜{_FULL}begin｜> | <｜tool[▁_]sep｜>(?=\s*+[<\0]) | \[TOOL_CALLS\] | functools(?=\s*+[\[\0])
  | multi_tool_use\.parallel(?=\s*+[({{\0])
"""
CLOSES = rf"""
    </(?:\w{{1,16}}:)?(?:{_WRAPPERS})>
  | <\|/?(?:tool_calls?|tool_calls?_(?:section_)?end|action_end|end_action|call|end|eo[mt]_id|im_end|end_of_text)\|>
  | <｜(?:{_FULL}end|end▁of▁sentence)｜> | \[/TOOL_CALLS\] | </s>
"""
FENCE_MARK = r"```(?:json|tool_code|tool_calls?|xml|python|py)?(?=[\s\[{<\0]|\Z)"
LABEL = r"(?:\*\*)?\bAction(?:\*\*)?[ \t]*+:(?=[ \t]*+(?:[\n\0`]|\Z))"
FILLER = re.compile(rf"(?:\s++|[,;]|{OPENS}|{CLOSES}|{FENCE_MARK})*+", re.VERBOSE | re.IGNORECASE)
"""Matches the marks that may stand before, between and behind calls."""
FILLERS = re.compile(
    rf"(?:\s++|[,;]|{OPENS}|{CLOSES}|{FENCE_MARK}|{LABEL}|<function=[^<>\s]{{1,128}}+>(?=\s*+\0))++",
    re.VERBOSE | re.IGNORECASE,
)
"""Matches the marks beside a call that was cut out of the text."""


def is_filler(text: str) -> bool:
    """True if the text has nothing but such marks."""
    return not text or FILLERS.fullmatch(text) is not None
