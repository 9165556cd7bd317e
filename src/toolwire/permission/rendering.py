"""Renders a request as text for a person.

The text shows the whole call, and nothing in it can hide or pose as something else.
"""

from __future__ import annotations

import datetime
import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolwire.permission.approval import ApprovalRequest
from toolwire.permission.visible import looks_like_another, visible
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import digest, plain_value

WIDTH = 100
"""Columns of a rendering. Longer lines are broken with a mark, so that the terminal does not break them without one."""
WIDTH_MIN = 40

_LABEL = 11
_MORE = "> "
"""Starts the continuation of the line above."""
_LINE = "| "
"""Starts each line of a multi-line text."""


def render(request: ApprovalRequest, *, width: int = WIDTH, now: float | None = None, ascii_only: bool = False) -> str:
    """Renders the lines of `lines_of` as text of at most `width` columns. Different requests never give the same text.

    A line after `> ` continues the line above.

    Raises:
        Unrepresentable: As `lines_of`.
    """
    shown = lines_of(request, now=now, ascii_only=ascii_only)
    return "\n".join(piece for line in shown for piece in _break_line(line, max(width, WIDTH_MIN)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLine:
    """One line of a request, as `render` writes it.

    Attributes:
        label: The name of the fact: `tool`, `for`, `agent`, `tenant`, `why`, `does`, `has read`, `attempt`, `expires`,
            `request`, `call`, `arguments`, `changed`, and for a question `label`. Empty for a line below one of these,
            or of the question itself.
        text: The text, with everything escaped that hides, moves or poses as something else. After `= ` it is the
            spelling in ASCII of the text before it, which may be taken for another one.
        indent: Columns before the text of a line without a label.
    """

    label: str = ""
    text: str
    indent: int = 0


def lines_of(request: ApprovalRequest, *, now: float | None = None, ascii_only: bool = False) -> list[RequestLine]:
    """Returns the whole request, line by line, for a page of your own. Different requests never give the same lines.

    Strings are in quotes, with invisible characters escaped. The lines of a multi-line text are below its name, each
    after `| `. A string that can be mistaken for another one is repeated in ASCII. `now` (seconds since the epoch) adds
    the time left. A line may be long: break it with a mark.

    Raises:
        Unrepresentable: The arguments have no written form, or do not match the request's digest, or the record of the
            request is damaged. Such a call cannot be approved.
    """
    if request.damaged:
        raise Unrepresentable(f"a damaged request ({request.damaged})", path="")
    writer = _Writer(ascii_only=ascii_only)
    if request.kind == "question":
        _question(writer, request, now, ascii_only=ascii_only)
        return writer.lines
    arguments = _arguments(request)
    writer.field("tool", visible(request.tool, ascii_only=ascii_only), said=request.tool)
    caller = request.caller
    for label, text in (("for", caller.principal), ("agent", caller.agent), ("tenant", caller.tenant)):
        if text:
            writer.field(label, visible(text, ascii_only=ascii_only), said=text)
    for reason in request.reasons:
        writer.field("why", visible(reason, ascii_only=ascii_only), said=reason)
    writer.field("does", ", ".join(request.effects) or "not stated by the tool")
    if request.taints:
        writer.field("has read", ", ".join(request.taints))
    if request.attempt > 1:
        writer.field("attempt", f"{request.attempt}: it may have run already")
    writer.field("expires", _expiry(request.expires_at, now))
    writer.field("request", visible(request.id, ascii_only=ascii_only))
    writer.field("call", visible(_call_place(request), ascii_only=ascii_only))
    writer.field("arguments", "none" if not arguments else "")
    writer.members(arguments, 2)
    writer.changes(cast("Mapping[str, Any]", plain_value(dict(request.given))), arguments)
    return writer.lines


def _question(writer: _Writer, request: ApprovalRequest, now: float | None, *, ascii_only: bool) -> None:
    """Writes a question: its text is data of a tool or a model, so it stands in quotes."""
    shown = {"question": request.question, "schema": plain_value(dict(request.answer_schema))}
    if request.arguments_digest and digest(shown) != request.arguments_digest:
        raise Unrepresentable("a request whose question does not match its digest", path="")
    writer.field("tool", visible(request.tool, ascii_only=ascii_only), said=request.tool)
    for label, text in (("for", request.caller.principal), ("agent", request.caller.agent)):
        if text:
            writer.field(label, visible(text, ascii_only=ascii_only), said=text)
    for reason in request.reasons:
        writer.field("label", visible(reason, ascii_only=ascii_only), said=reason)
    if request.taints:
        writer.field("has read", ", ".join(request.taints))
    writer.field("expires", _expiry(request.expires_at, now))
    writer.field("request", visible(request.id, ascii_only=ascii_only))
    writer.field("call", visible(request.call_id, ascii_only=ascii_only))
    writer.members({"asks": request.question}, 0)
    writer.members({"answer": shown["schema"]}, 0)


def _arguments(request: ApprovalRequest) -> Mapping[str, Any]:
    arguments = cast("dict[str, Any]", plain_value(dict(request.arguments)))
    if request.arguments_digest and digest(arguments) != request.arguments_digest:
        raise Unrepresentable("a request whose arguments do not match its digest", path="")
    return arguments


def _call_place(request: ApprovalRequest) -> str:
    inside = f", made by the call {request.parent}" if request.parent else ""
    run = f" of run {request.run_id}" if request.run_id not in ("", request.call_id) else ""
    return f"{request.call_id}{run}{inside}"


def _expiry(expires_at: float, now: float | None) -> str:
    if not expires_at:
        return "never"
    moment = datetime.datetime.fromtimestamp(expires_at, datetime.UTC)
    text = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    if now is None:
        return text
    return f"{text} ({span(expires_at - now)})" if now <= expires_at else f"{text}: expired"


def span(seconds: float) -> str:
    """Formats a duration in its two largest units, as `6 d 23 h`."""
    left = max(0, int(seconds))
    parts = [(left // 86400, "d"), (left // 3600 % 24, "h"), (left // 60 % 60, "min"), (left % 60, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count or unit == parts[0][1])


class _Writer:
    """Collects lines, each with a label or an indent."""

    def __init__(self, *, ascii_only: bool) -> None:
        self.lines: list[RequestLine] = []
        self._ascii_only = ascii_only

    def field(self, label: str, text: str, *, said: str = "") -> None:
        self.lines.append(RequestLine(label=label, text=text))
        self._spell_out(said, _LABEL)

    def members(self, arguments: Mapping[str, Any], indent: int) -> None:
        for name, value in arguments.items():
            self._value(f"{self._quote_text(name)}: ", value, indent)
            self._spell_out(name, indent)

    def changes(self, given: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """Writes the model's own arguments that differ from those that will run."""
        if not given:
            return
        self.field("changed", "the model wrote it otherwise:")
        for name in {**given, **arguments}:
            if name not in arguments:
                self._value(f"- {self._quote_text(name)}: ", given[name], 2)
            elif name not in given:
                self._line(f"+ {self._quote_text(name)}: filled in", indent=2)
            elif digest(given[name]) != digest(arguments[name]):
                self._value(f"~ {self._quote_text(name)}: ", given[name], 2)

    def _value(self, head: str, value: Any, indent: int) -> None:
        match value:
            case str() if "\n" in value:
                self._line(f"{head.rstrip()} text of {value.count(chr(10)) + 1} lines", indent=indent)
                for line in value.split("\n"):
                    shown = visible(line, ascii_only=self._ascii_only)
                    # A space at the end of a line would be invisible.
                    kept = shown.rstrip(" ")
                    spaces = "\\x20" * (len(shown) - len(kept))
                    self._line(f"{_LINE}{kept}{spaces}", indent=indent + 2)
                self._spell_out(value, indent + 2)
            case str():
                self._line(f"{head}{self._quote_text(value)}", indent=indent)
                self._spell_out(value, indent)
            case dict() if value:
                self._line(f"{head.rstrip()} {{", indent=indent)
                self.members(cast("dict[str, Any]", value), indent + 2)
                self._line("}", indent=indent)
            case list() if value:
                self._line(f"{head.rstrip()} [", indent=indent)
                for item in cast("list[Any]", value):
                    self._value("- ", item, indent + 2)
                self._line("]", indent=indent)
            case _:
                self._line(f"{head}{json.dumps(value)}", indent=indent)

    def _quote_text(self, text: str) -> str:
        return '"' + visible(text, ascii_only=self._ascii_only).replace('"', '\\"') + '"'

    def _spell_out(self, text: str, indent: int) -> None:
        if not self._ascii_only and looks_like_another(text):
            self._line(f"= {visible(text, ascii_only=True)}", indent=indent)

    def _line(self, text: str, *, indent: int) -> None:
        self.lines.append(RequestLine(text=text, indent=indent))


def _break_line(line: RequestLine, width: int) -> Iterator[str]:
    """Yields a line in pieces that fit, each but the first one after a mark."""
    indent = min(line.indent, width // 2)
    text = f"{line.label:<{_LABEL}}{line.text}".rstrip() if line.label else line.text
    pad = " " * indent
    mark = ""
    for piece in _pieces(text, width - indent - len(_MORE)):
        yield f"{pad}{mark}{piece}"
        mark = _MORE


def _pieces(text: str, columns: int) -> Iterator[str]:
    """Splits the text into pieces that fit. Every character counts its width on the terminal."""
    start = used = 0
    for place, character in enumerate(text):
        taken = 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used + taken > columns:
            yield text[start:place]
            start, used = place, 0
        used += taken
    yield text[start:]
