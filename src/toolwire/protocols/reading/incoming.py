"""Decoding of a model's reply: size limit, UTF-8, byte order mark and line endings."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from toolwire.protocols.base import REPLY_LIMIT_BYTES, Refusal
from toolwire.vocabulary.calls import Problem
from toolwire.vocabulary.errors import ConfigurationError

_BOM = "\ufeff"
THINKING = "think|thinking|thought|reasoning|reflection|seed:think|scratchpad"
"""The names of the tags around thinking."""

_TOKENS = {
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|channel>thought": "<channel|>",
}
"""The tokens of models' own templates around thinking, which a reply may begin with."""
_TURN = re.compile(r"(?:<\|start\|>assistant)?+")
"""Stands before each channel of one reply."""
_BEGINS_THINKING = re.compile(rf"(?P<blanks>\s*+){_TURN.pattern}(?P<token>{'|'.join(map(re.escape, _TOKENS))})")
_THOUGHT = rf"<(?P<tag>{THINKING})>(?:(?!</?(?P=tag)>).)*+"
_THOUGHTS = re.compile(rf"\s*+(?:{_THOUGHT}</(?P=tag)>\s*+)*+", re.DOTALL)
_OPEN_THOUGHT = re.compile(rf"{_THOUGHT}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A reply that is ready to be parsed."""

    text: str
    """The text without a byte order mark. Lines end in LF, so line numbers are those of the reply."""
    problems: tuple[Problem, ...]
    """The changes that were made to the text."""


def text_of_reply(value: Any, protocol: str) -> str | bytes:
    """Returns the text of a reply or of a piece of it, as the host passed it. None becomes an empty text.

    Raises:
        ConfigurationError: The host passed something else, such as an SDK object.
    """
    if value is None:
        return ""
    if isinstance(value, str | bytes):
        return value
    raise ConfigurationError(
        f"the protocol {protocol!r} reads the text that the model wrote, and was given a {type(value).__name__}: "
        "give its text, such as response.choices[0].message.content, or take the protocol of its provider"
    )


def tag_thinking(text: str) -> str:
    """Returns a reply with the thinking that it begins with between tags, where its model wrote tokens of its own.

    Thinking that never ends has an opening tag alone. Lines and all other text stay as they are.
    """
    pieces, position = list[str](), 0
    while found := _BEGINS_THINKING.match(text, position):
        closing = _TOKENS[found["token"]]
        end = text.find(closing, found.end())
        inner = text[found.end() : end if end >= 0 else len(text)]
        name = next((name for name in THINKING.split("|") if f"</{name}>" not in inner), "think")
        pieces += [found["blanks"], f"<{name}>", inner]
        if end < 0:
            return "".join(pieces)
        pieces.append(f"</{name}>")
        position = match_end(_TURN, text, end + len(closing))
    return "".join([*pieces, text[position:]])


def behind_thinking(text: str) -> str:
    """Returns what stands behind the thinking that a text begins with. Empty if the thinking never ends."""
    text = tag_thinking(text)
    rest = text[match_end(_THOUGHTS, text) :]
    return "" if _OPEN_THOUGHT.match(rest) else rest


def read_incoming(reply: str | bytes) -> Incoming:
    """Returns the decoded text of a reply.

    Raises:
        Refusal: The reply is too long or is not UTF-8 text.
    """
    text = _decode_reply(reply)
    problems: list[Problem] = []
    if text.startswith(_BOM):
        text = text.removeprefix(_BOM)
        problems.append(Problem(message="A byte order mark was left out.", repaired=True, place="line 1"))
    if "\r\n" in text:
        place = line_of(text, text.index("\r\n"))
        text = text.replace("\r\n", "\n")
        problems.append(Problem(message="Lines end in CR LF; they were read as LF.", repaired=True, place=place))
    return Incoming(text=text, problems=tuple(problems))


def line_of(text: str, position: int) -> str:
    """Returns the line of a character as text, such as `line 3`."""
    return f"line {text.count(chr(10), 0, position) + 1}"


def match_end(pattern: re.Pattern[str], text: str, position: int = 0) -> int:
    """Returns the end of the pattern's match at this position, or the position without a match."""
    found = pattern.match(text, position)
    return found.end() if found else position


def _decode_reply(reply: str | bytes) -> str:
    if len(reply) > REPLY_LIMIT_BYTES:
        raise _too_long(len(reply))
    if isinstance(reply, bytes):
        try:
            return reply.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refusal(
                f"The reply is not UTF-8: byte {error.start} is {reply[error.start]:#04x}. Write it in UTF-8.",
                place=f"line {reply.count(10, 0, error.start) + 1}",
            ) from error
    try:
        size = len(reply.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise Refusal(
            f"The reply holds a lone surrogate, U+{ord(reply[error.start]):04X}. Write the whole character.",
            place=line_of(reply, error.start),
        ) from error
    if size > REPLY_LIMIT_BYTES:
        raise _too_long(size)
    return reply


def _too_long(size: int) -> Refusal:
    return Refusal(f"The reply has {size} bytes; the limit is {REPLY_LIMIT_BYTES}. Write a shorter one.")


def is_json(text: str) -> bool:
    """True if the text is one JSON object, array or string."""
    text = text.strip()
    if not text or text[0] + text[-1] not in {"{}", "[]", '""'}:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
