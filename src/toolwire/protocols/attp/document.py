"""Conversion of a parsed ATTP document to a reply.

A strict document is converted directly. Otherwise keys may differ in case, be on the wrong side of `[tool_call]`, or be
missing, if only one meaning remains. Each deviation is reported as a repaired problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.protocols.base import CODE_LIMIT_BYTES, Refusal
from toolwire.protocols.reading.incoming import line_of
from toolwire.protocols.reading.whole_program import CompileBudget
from toolwire.vocabulary.calls import CODE_EXECUTION, Problem, Reply, ToolCall

_TABLE = "tool_call"
_KEYS = ("thought", "status", "target", "code", "message")
_EXACT = frozenset({_TABLE, *_KEYS})

# An unknown status is accepted only if it is one of these words and the rest of the reply agrees with it: a success
# has code and no message. Any other word ("pending", "partial") may mean "do not run".
_SUCCESS_WORDS = frozenset({"success", "succeeded", "successful", "ok", "成功"})
_FAIL_WORDS = frozenset({"fail", "failed", "failure", "error", "失败"})

_ANY_KEY = re.compile(r"^[ \t]*+[\"']?([A-Za-z_.-]+)[\"']?[ \t]*+=", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The text that a document was read from, and the repairs made to it."""

    raw: str
    """The reply as received. It becomes the call's `raw_text`."""
    text: str
    """The text that line numbers in problems refer to."""
    problems: Sequence[Problem] = ()
    """Repairs that were made before the document was parsed."""
    prose: str = ""
    """The text around the document."""


def reply_of(document: Mapping[str, Any], source: Source) -> Reply:
    """Returns the reply that the document describes.

    Raises:
        Refusal: The document asks for nothing, or for two things at once.
    """
    fields = _Fields(source=source, problems=list(source.problems))
    fields.collect(document)
    failed = _is_failure(fields)
    thought, target = fields.spoken("thought"), fields.spoken("target", is_missed=not failed)
    if failed:
        return Reply(
            thought=thought,
            target=target,
            failure=_failure(fields),
            text=source.prose,
            problems=tuple(fields.problems),
        )
    call = ToolCall(CODE_EXECUTION, {"code": _code(fields)}, raw_text=source.raw)
    return Reply(calls=(call,), thought=thought, target=target, text=source.prose, problems=tuple(fields.problems))


@dataclass(slots=True, kw_only=True)
class _Fields:
    """The known keys of a document while it is read."""

    source: Source
    problems: list[Problem]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    unknown: dict[str, Any] = field(default_factory=dict[str, Any])

    def collect(self, document: Mapping[str, Any]) -> None:
        has_table = any(_fold_key(key) == _TABLE for key in document)
        for key, value in document.items():
            if _fold_key(key) != _TABLE:
                self._put(key, value, is_misplaced=has_table and _fold_key(key) != "thought")
                continue
            self._note_spelling(key, _TABLE)
            for inner, item in self._table(value).items():
                self._put(inner, item, is_misplaced=_fold_key(inner) == "thought")
        if not has_table and not self.values.keys() & {"status", "code", "message"}:
            raise Refusal(
                "There is no [tool_call] in the reply. Write `thought`, then [tool_call] with status and code."
            )
        if not has_table:
            self.note("The line [tool_call] is missing; its keys were read without it.")
        for key in self.unknown:
            self.note(f"`{key}` is not a key of ATTP; it was left out.", key)

    def note(self, message: str, key: str = "") -> None:
        self.problems.append(Problem(message=message, repaired=True, place=self.place(key)))

    def place(self, key: str) -> str:
        """Returns the line of this key, or the key itself if several lines look like it."""
        text = self.source.text
        found = [match for match in _ANY_KEY.finditer(text) if match[1].rpartition(".")[2] == key] if key else []
        return line_of(text, found[0].start(1)) if len(found) == 1 else key

    def spoken(self, key: str, *, is_missed: bool = True) -> str:
        """Returns the text of a key that only explains. A missing key or a wrong type is tolerated."""
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.note(f"`{key}` is not a string; it was left out.", key)
        elif is_missed:
            self.note(f"`{key}` is missing.", key)
        return ""

    def decisive(self, key: str) -> str | None:
        """Returns the text of a key that decides what happens. None if it is missing or blank."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise Refusal(f"`{key}` is not a string. Write {_FORM[key]}.", place=self.place(key))
        return value if value.strip() else None

    def _table(self, value: Any) -> dict[str, Any]:
        rows = cast("list[Any]", value) if isinstance(value, list) else []
        if len(rows) == 1:
            value = rows[0]
            self.note("[[tool_call]] was read as [tool_call].")
        if not isinstance(value, dict):
            raise Refusal("`tool_call` is not one table. Write the line [tool_call] once, and its keys below it.")
        return cast("dict[str, Any]", value)

    def _put(self, key: str, value: Any, *, is_misplaced: bool) -> None:
        name = _fold_key(key)
        if name not in _KEYS:
            self.unknown[key] = value
            return
        self._note_spelling(key, name)
        if is_misplaced:
            self.note(f"`{name}` belongs {'above' if name == 'thought' else 'below'} the line [tool_call].", key)
        if self.values.setdefault(name, value) == value:
            return
        if name not in ("thought", "target"):
            raise Refusal(f"`{name}` is given twice, with two values. Write it once.", place=self.place(key))
        self.note(f"`{name}` is given twice; the first was read.", key)

    def _note_spelling(self, key: str, name: str) -> None:
        if key != name:
            self.note(f"`{key}` was read as `{name}`.", key)


_FORM = {
    "status": 'status = "success" or status = "fail"',
    "code": "the program between code = ''' and '''",
    "message": 'message = "why, and what could be done instead"',
}


_WHICH = (
    'You wrote fail and a program: which? Write status = "success" to run the program, or status = "fail" with '
    "message and no code."
)


def _fold_key(key: str) -> str:
    if key in _EXACT:
        return key
    name = key.strip().lower().replace("-", "_").replace(" ", "_")
    return _TABLE if name in ("toolcall", "tool_calls", "toolcalls") else name


def _is_failure(fields: _Fields) -> bool:
    status, code, message = (fields.decisive(key) for key in ("status", "code", "message"))
    if status == "success" or status == "fail":
        return status == "fail"
    word = "" if status is None else status.strip().lower()
    is_failure = word in _FAIL_WORDS or (not word and message is not None)
    is_success = word in _SUCCESS_WORDS or (not word and code is not None)
    if is_failure is is_success or (is_success and (code is None or message is not None)):
        what = f"The status is {status!r}" if word else "The status is missing"
        raise Refusal(
            f'{what}. Write status = "success" with code, or status = "fail" with message.',
            place=fields.place("status"),
        )
    meaning = "fail" if is_failure else "success"
    what = f"The status {status!r}" if word else "The missing status"
    fields.note(
        f'{what} was read as "{meaning}": the reply has {"message" if message else "code" if code else "neither"}.',
        "status",
    )
    return is_failure


def _failure(fields: _Fields) -> str:
    if fields.decisive("code") is not None:
        raise Refusal(_WHICH, place=fields.place("status"))
    message = fields.decisive("message")
    if message is None:
        raise Refusal(
            f"The status is fail, but there is no message. Write {_FORM['message']}.", place=fields.place("status")
        )
    return message


def _code(fields: _Fields) -> str:
    code = fields.decisive("code")
    if code is None:
        raise Refusal(
            "The status is success, but there is no code. Write the program between code = ''' and '''.",
            place=fields.place("status"),
        )
    size = len(code.encode("utf-8"))
    if size > CODE_LIMIT_BYTES:
        raise Refusal(
            f"The code has {size} bytes; the limit is {CODE_LIMIT_BYTES}. Write a shorter program.",
            place=fields.place("code"),
        )
    has_message = fields.values.get("message") is not None
    if fields.unknown or has_message:
        _check_end(code, fields)
    if has_message:
        fields.note("The status is success: the message was left out.", "message")
    return code


def _check_end(code: str, fields: _Fields) -> None:
    """Refuses unknown keys below the code if they may be part of a program that its own ''' ended early."""
    text = fields.source.text
    ends_once = text.count("'''") <= 2 and text.count('"""') <= 2
    if not ends_once or "__result__" in fields.unknown or not CompileBudget().compiles(code):
        stray = next(iter(fields.unknown), "message")
        raise Refusal(
            f"`{stray}` stands below the code: it may be part of a program that ''' ended early. "
            'Inside the code write triple quotes as """, and no other key below [tool_call].',
            place=fields.place(stray),
        )
