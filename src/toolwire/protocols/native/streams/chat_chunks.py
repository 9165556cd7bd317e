"""A streamed chat completion, put together from its chunks.

Servers differ in how they number the pieces of a call: by index, by id, by both, or by neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.protocols.native.assembly import WENT_ON, Assembly, grow, join_pieces, merge
from toolwire.protocols.native.fields import field_in, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.unread_parts import unread_fields
from toolwire.protocols.native.written import CALL_ELSEWHERE, WrittenCall
from toolwire.protocols.streaming import StreamEvent, TextDelta
from toolwire.vocabulary.calls import Problem

OLDER_CALL = "function_call"
"""The field of OpenAI's older assistant message. It holds one call without an id, and serves as that call's id here."""

PLAIN_TEXT = frozenset({"type", "text"})
"""Fields of a content part of text alone."""

_OF_A_CHOICE = frozenset(
    {"index", "delta", "finish_reason", "native_finish_reason", "stop_reason", "logprobs", "token_ids", "text"}
    | {"content_filter_results", "content_filter_offsets", "content_filter_result"}
)
"""The fields of a choice in a chunk, also of servers that send news without a delta."""
_OF_AN_ITEM = frozenset({"id", "type", "index", "function", "extra_content"})
_OF_A_FUNCTION = frozenset({"name", "arguments", "parsed_arguments"})
"""The fields of a call, and of the function in it."""


@dataclass(slots=True, eq=False)
class _Brackets:
    """Follows the brackets of a JSON text that arrives in pieces."""

    open: int = 0
    has_begun: bool = False
    is_in_string: bool = False
    is_escaped: bool = False

    def add(self, text: str) -> None:
        for character in text:
            if self.is_escaped:
                self.is_escaped = False
            elif self.is_in_string:
                self.is_escaped = character == "\\"
                self.is_in_string = character != '"'
            elif character == '"':
                self.is_in_string = True
            elif character in "{[":
                self.open += 1
                self.has_begun = True
            elif character in "}]":
                self.open -= 1


@dataclass(slots=True, eq=False, kw_only=True)
class _Call:
    """A call that is still arriving."""

    index: int
    """The server's index; without one, that of the call before it."""
    id: str = ""
    before: _Call | None = None
    """The call of this index that began before."""
    names: list[str] = field(default_factory=list[str])
    """The pieces of the name."""
    pieces: list[str] = field(default_factory=list[str])
    """The pieces of the arguments."""
    value: Any = None
    """The arguments of a server that sends an object in place of JSON text."""
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields of other servers, such as a signature."""
    brackets: _Brackets = field(default_factory=_Brackets)
    counted: int = 0
    """Number of pieces whose brackets are counted."""
    shown: int = 0
    """Number of pieces that an event has passed on."""

    @property
    def has_arguments(self) -> bool:
        return bool(self.pieces) or self.value is not None

    @property
    def is_name_sent_again(self) -> bool:
        """True if the name came several times and always the same, whole or as a piece."""
        return len(self.names) > 1 and len(set(self.names)) == 1

    def is_whole(self) -> bool:
        """True if the arguments so far are a complete value. Each piece is looked at once."""
        for piece in self.pieces[self.counted :]:
            self.brackets.add(piece)
        self.counted = len(self.pieces)
        closed = self.brackets.has_begun and self.brackets.open == 0 and not self.brackets.is_in_string
        return self.value is not None or closed

    def arguments(self) -> Any:
        return "".join(self.pieces) if self.value is None else self.value


def call_items(message: Any) -> list[Any]:
    """Returns the calls of a message. A server that sends one call alone may send it without a list."""
    found = field_in(message, "tool_calls")
    return [found] if isinstance(found, Mapping) else items_in(message, "tool_calls")


def _is_of_a_chunk(choice: Any) -> bool:
    """True unless a choice has a message in place of a delta, as a whole completion, or a text, as an older one."""
    has_delta = field_in(choice, "delta") is not None
    return isinstance(choice, Mapping) and field_in(choice, "message") is None and (has_delta or "text" not in choice)


def call_in(item: Any) -> WrittenCall:
    """Returns a call of a message as the model wrote it."""
    function = inner(item, "function")
    arguments = field_in(function, "arguments")
    return WrittenCall(
        name=text_in(function, "name"),
        id=text_in(item, "id"),
        arguments="" if arguments is None else arguments,
        beside={
            **{key: value for key, value in item.items() if key not in _OF_AN_ITEM},
            **{key: value for key, value in function.items() if key not in _OF_A_FUNCTION},
        },
    )


def content_part(part: Any) -> Any:
    """Returns a part of a content as its API has it: servers also write a text alone."""
    return {"type": "text", "text": part} if isinstance(part, str) else part


class ChatAssembly(Assembly):
    """The completion so far, with its first choice alone."""

    def __init__(self, live: LiveCalls) -> None:
        super().__init__(live)
        self._message: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._calls: list[_Call] = []
        self._older: _Call | None = None
        self._newest: dict[int, _Call] = {}
        self._by_id: dict[tuple[int | None, str], _Call] = {}
        self._ids: dict[str, _Call] = {}
        self._reason = ""
        self._error: Any = None
        self._has_call_elsewhere = False

    def knows(self, piece: Mapping[str, Any]) -> bool:
        if isinstance(piece.get("error"), Mapping | str):
            return True
        # A choice of a whole completion has a message in place of a delta.
        choices = piece.get("choices")
        return isinstance(choices, list) and all(map(_is_of_a_chunk, items_in(piece, "choices")))

    def add(self, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        for choice in items_in(piece, "choices"):
            if self.index_in(choice, "index") in (None, 0):
                yield from self._add_choice(choice)
            else:
                self._has_call_elsewhere |= bool(call_items(inner(choice, "delta")))
        if isinstance(piece.get("error"), Mapping | str):
            self._error, self.is_ended = piece["error"], True

    def end(self) -> Iterator[StreamEvent]:
        for call in [*self._calls, *([self._older] if self._older else [])]:
            yield from self._show(call)
            yield from self.live.end(call, call_in(self._item(call)))

    def faults(self) -> list[Problem]:
        doubtful = [call for call in self._calls if call.is_name_sent_again and self._is_doubtful(call)]
        messages = [f"The stream sends the name {call.names[0]!r} more than once for one call." for call in doubtful]
        changed = [(call.before.id, call.id) for call in self._calls if call.before and not call.names]
        messages += [
            f"The id of a call changes from {before!r} to {after!r} inside of it." for before, after in changed
        ]
        elsewhere = [CALL_ELSEWHERE] if self._has_call_elsewhere and not (self._calls or self._older) else []
        return [*self.problems, *elsewhere, *(Problem(message=message, repaired=False) for message in messages)]

    def body(self) -> dict[str, Any]:
        message = {**join_pieces(self._message), "role": "assistant"}
        if self._parts:
            before = message.get("content")
            text = [{"type": "text", "text": before}] if isinstance(before, str) and before else []
            message["content"] = [*text, *self._parts]
        if self._calls:
            message["tool_calls"] = [self._item(call) for call in sorted(self._calls, key=lambda call: call.index)]
        if self._older is not None:
            message[OLDER_CALL] = self._item(self._older)["function"]
        choice = {"index": 0, "message": message, **({"finish_reason": self._reason} if self._reason else {})}
        return {"choices": [choice], **({} if self._error is None else {"error": self._error})}

    def _item(self, call: _Call) -> dict[str, Any]:
        """Returns a call as a whole message has it. A call of another kind has no function."""
        more = join_pieces(call.more)
        if "type" in more and not call.names and not call.has_arguments:
            return {"id": call.id, **more}
        function = {**more.pop("function", {}), "name": self._name(call), "arguments": call.arguments()}
        return {"id": call.id, **more, "type": "function", "function": function}

    def _name(self, call: _Call) -> str:
        """Returns the name of a call. Some servers send it in pieces, and some send it again with each piece."""
        joined = "".join(call.names)
        return call.names[0] if call.is_name_sent_again and not self.live.knows(joined) else joined

    def _is_doubtful(self, call: _Call) -> bool:
        """True if a name that came again may be a longer name, or the name of a second call without arguments."""
        is_also_longer = self.live.knows(call.names[0]) and self.live.knows("".join(call.names))
        return is_also_longer or not call.has_arguments

    def _add_choice(self, choice: Any) -> Iterator[StreamEvent]:
        delta = dict(inner(choice, "delta"))
        if not isinstance(field_in(choice, "delta"), Mapping | None):
            self.refuse_value("delta", choice["delta"])
        unread = list[str]()
        if not delta:
            unread_fields(choice, _OF_A_CHOICE, unread)
        if unread:
            self.refuse(f"A chunk of the stream has no `delta`, and {unread[0]}, which was not read.")
        content, written, older = (delta.pop(name, None) for name in ("content", "tool_calls", OLDER_CALL))
        if self.is_ended and (content or written or older or delta.get("refusal")):
            self.refuse(WENT_ON)
            return
        yield from self._add_content(content)
        for item in call_items({"tool_calls": written}):
            if field_in(item, *_OF_AN_ITEM) is not None:
                yield from self._add_call(cast("Mapping[str, Any]", item))
            else:
                self.refuse("A piece of `tool_calls` is not a call.")
        if not isinstance(written, list | Mapping | None):
            self.refuse("A piece of `tool_calls` is not a call.")
        if not isinstance(older, Mapping | None):
            self.refuse_value(OLDER_CALL, older)
        if isinstance(older, Mapping):
            self._older = self._older or _Call(index=0, id=OLDER_CALL)
            yield from self._add_function(self._older, cast("Mapping[str, Any]", older))
        merge(self._message, delta)
        reason = text_in(choice, "finish_reason")
        if reason not in ("", "null"):
            self._reason, self.is_ended = reason, True
            yield from self.end()

    def _add_content(self, content: Any) -> Iterator[StreamEvent]:
        if isinstance(content, list):
            parts = list(map(content_part, cast("list[Any]", content)))
            self._parts += parts
            text = "".join(text_in(part, "text") for part in parts)
        elif isinstance(content, str) and self._parts:
            text = content
            self._parts += [{"type": "text", "text": text}] if text else []
        else:
            if not isinstance(content, str | None):
                self.refuse_value("content", content)
            text = content if isinstance(content, str) else ""
            grow(self._message, "content", text)
        if text:
            yield TextDelta(text=text)

    def _add_call(self, item: Mapping[str, Any]) -> Iterator[StreamEvent]:
        function = inner(item, "function")
        if not isinstance(field_in(item, "function"), Mapping | None):
            self.refuse_value("function", field_in(item, "function"))
        index = field_in(item, "index")
        index = index if isinstance(index, int) else None
        identity, name = text_in(item, "id"), text_in(function, "name")
        call = self._find_call(index, identity, name)
        if call is None:
            call = self._begin_call(index)
        if identity and not call.id:
            call.id = identity
            self._by_id[index, identity] = call
            self._ids.setdefault(identity, call)
        others = {key: value for key, value in item.items() if key not in ("index", "id", "function", "type")}
        if isinstance(kind := item.get("type"), str) and kind and not function:
            others["type"] = kind
        merge(call.more, others)
        yield from self._add_function(call, function)

    def _find_call(self, index: int | None, identity: str, name: str) -> _Call | None:
        """Returns the call that a piece belongs to. None if the piece begins a call.

        Some servers give every call the same index, so another id begins a call, and so does a name after arguments
        that are complete.
        """
        if identity and not name and (known := self._ids.get(identity)):
            return known
        newest = self._newest.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if identity and (known := self._by_id.get((index, identity))):
            return known
        if newest is None or (identity and newest.id):
            return None
        return None if name and newest.is_whole() else newest

    def _begin_call(self, index: int | None) -> _Call:
        place = index if index is not None else (self._calls[-1].index if self._calls else 0)
        call = _Call(index=place, before=self._newest.get(place))
        self._calls.append(call)
        self._newest[place] = call
        return call

    def _add_function(self, call: _Call, function: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if not isinstance(field_in(function, "name"), str | None):
            self.refuse_value("name", field_in(function, "name"))
        if name := text_in(function, "name"):
            self._add_name(call, name)
        arguments = function.get("arguments")
        if arguments not in (None, ""):
            if call.value is not None or (call.pieces and not isinstance(arguments, str)):
                self.refuse(f"The stream gives the arguments of one call of {self._name(call)!r} twice.")
            elif isinstance(arguments, str):
                call.pieces.append(arguments)
            else:
                call.value = arguments
            yield from self._show(call)
        others = {key: value for key, value in function.items() if key not in ("name", "arguments")}
        if others:
            merge(call.more.setdefault("function", {}), others)

    def _add_name(self, call: _Call, name: str) -> None:
        if not call.has_arguments or not call.names:
            call.names.append(name)
        elif name not in (self._name(call), call.names[-1]):
            self.refuse(f"The stream names one call {self._name(call)!r}, and then {name!r}.")

    def _show(self, call: _Call) -> Iterator[StreamEvent]:
        """Yields the events of a call whose name is known. The name is complete when the arguments begin."""
        if call.names:
            yield from self.live.start(call, name=self._name(call), id=call.id)
            yield from self.live.add_arguments(call, "".join(call.pieces[call.shown :]))
            call.shown = len(call.pieces)
