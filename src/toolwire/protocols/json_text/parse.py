"""The parser of JSON replies. It decides which JSON is a call and which is quoted."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.definition.naming import program_name
from toolwire.protocols.base import CALL_LIMIT, CODE_LIMIT_BYTES, OWN_RESULT, Refusal, too_many_calls
from toolwire.protocols.json_text.layout import FencePiece, JsonLayout, JsonPiece, find_layout, plainly_holds_a_call
from toolwire.protocols.reading.call_forms import (
    FoundCalls,
    call_of_tool,
    calls_of,
    find_made_up_result,
)
from toolwire.protocols.reading.incoming import line_of, read_incoming
from toolwire.protocols.tool_imports import with_tool_imports
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import CODE_EXECUTION, Problem, Reply, ToolCall

_JSON_LANGUAGES = frozenset({"", "json", "jsonc", "json5", "tool_call", "tool_calls", "tool_code", "text"})
PYTHON_LANGUAGES = frozenset({"python", "py", "python3"})
"""Languages of a fence around a program."""


def read_json_text(reply: str | bytes, known: KnownTools) -> Reply:
    """Reads a reply as calls, a plain text answer, or the reasons for a refusal."""
    try:
        return _read_reply(reply, known)
    except Refusal as refusal:
        return refusal.reply


def _read_reply(reply: str | bytes, known: KnownTools) -> Reply:
    incoming = read_incoming(reply)
    text = incoming.text
    layout = find_layout(text)
    program = _program(text, layout, known)
    if program is not None:
        found = Reply(calls=(program,), thought=layout.thought, problems=incoming.problems)
        return with_tool_imports(found, known)
    if not layout.pieces:
        raise Refusal(f"The reply is {'all thinking' if layout.thought else 'empty'}. Write a call, or the answer.")
    taken = _calls(text, layout, known) or _calls_in_fences(text, layout, known) or _CallCollector()
    _report_fences(text, layout, known, taken)
    if len(taken.calls) > CALL_LIMIT:
        raise too_many_calls()
    prose = [
        piece if isinstance(piece, str) else piece.raw
        for place, piece in enumerate(layout.pieces)
        if place not in taken.places
    ]
    return Reply(
        calls=tuple(taken.calls),
        thought=layout.thought,
        text="\n".join(prose),
        # Repairs in a reply without calls do not matter.
        problems=(*incoming.problems, *layout.problems, *taken.problems) if taken.calls else (),
    )


class _CallCollector:
    """The calls that a reply makes, and the positions of their pieces."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.problems: list[Problem] = []
        self.places: set[int] = set()

    def add(self, place: int, found: FoundCalls, problems: Sequence[Problem] = ()) -> None:
        self.calls.extend(found.calls)
        self.problems.extend([*problems, *found.problems])
        self.places.add(place)


def _calls(text: str, layout: JsonLayout, known: KnownTools) -> _CallCollector | None:
    """Returns the calls outside fences. If some are between tags, only those count, else those on their own lines.

    Calls after a result that the model wrote itself are left out: they depend on a value that it made up.
    """
    pieces = [(place, piece) for place, piece in enumerate(layout.pieces) if isinstance(piece, JsonPiece)]
    marked = [(place, piece) for place, piece in pieces if piece.is_marked]
    results = [*layout.results, *(piece.start for _, piece in pieces if find_made_up_result(piece.value, known))]
    taken, end = _CallCollector(), len(text)
    for place, piece in marked or pieces:
        if piece.start > end:
            taken.places.add(place)
            continue
        found = _calls_in_piece(text, piece, known)
        if found is not None:
            if not taken.calls:
                end = min((start for start in results if start > piece.start), default=end)
            taken.add(place, found, piece.problems)
    if any(piece.start > end for _, piece in marked or pieces):
        taken.problems.append(Problem(message=OWN_RESULT, repaired=True, place=line_of(text, end), is_loss=True))
    for place, piece in pieces if marked else ():
        if place not in taken.places and _calls_in_piece(text, piece, known):
            message = "A call outside of the tags was left out: those between tags were taken."
            taken.problems.append(
                Problem(message=message, repaired=True, place=line_of(text, piece.start), is_loss=True)
            )
    return taken if taken.calls else None


def _calls_in_piece(text: str, piece: JsonPiece, known: KnownTools) -> FoundCalls | None:
    try:
        if piece.function:
            return call_of_tool(piece.function, piece.value, piece.raw, known)
        return calls_of(piece.value, piece.raw, known, is_marked=piece.is_marked)
    except Refusal as refusal:
        raise Refusal(str(refusal), place=refusal.problem.place or line_of(text, piece.start)) from refusal


def _calls_in_fences(text: str, layout: JsonLayout, known: KnownTools) -> _CallCollector | None:
    """Returns the calls of a fence that begins or ends the reply, or of fences that are the whole reply.

    Any other fence is a quotation.
    """
    fences = [
        (place, piece)
        for place, piece in enumerate(layout.pieces)
        if isinstance(piece, FencePiece) and _may_hold_calls(piece)
    ]
    is_all = len(fences) == len(layout.pieces)
    is_at_an_end = len(fences) == 1 and fences[0][0] in (0, len(layout.pieces) - 1)
    if not fences or not (is_all or is_at_an_end):
        return None
    if len(fences) > CALL_LIMIT:
        raise too_many_calls()
    whole = _CallCollector()
    for place, piece in fences:
        inner = _calls_of_pure_fence(text, piece, known)
        if inner is None:
            return None
        message = "The code fence around the call was left out."
        note = Problem(message=message, repaired=True, place=line_of(text, piece.start))
        whole.add(place, FoundCalls(calls=tuple(inner.calls), problems=tuple(inner.problems)), (note,))
    return whole


def _report_fences(text: str, layout: JsonLayout, known: KnownTools, taken: _CallCollector) -> None:
    """Reports a call in a fence that was not taken. It may be an example, but must not disappear silently.

    Raises:
        Refusal: The reply makes no other call.
    """
    for place, piece in enumerate(layout.pieces):
        if place in taken.places or not isinstance(piece, FencePiece) or not _may_hold_calls(piece):
            continue
        if not _holds_call_of_known_tool(text, piece, known):
            continue
        if taken.calls:
            message = "A call in a code fence was left out: those outside of fences were taken."
            taken.problems.append(
                Problem(message=message, repaired=True, place=line_of(text, piece.start), is_loss=True)
            )
            return
        raise Refusal(
            "The call stands in a code fence among other text, so it may not be meant. "
            "Write it by itself, between <tool_call> and </tool_call>.",
            place=line_of(text, piece.start),
        )


def _holds_call_of_known_tool(text: str, fence: FencePiece, known: KnownTools) -> bool:
    """True if the fence holds a call of a known tool, or an unreadable call. Without tools, any call counts."""
    try:
        found = _calls_of_pure_fence(text, fence, known)
    except Refusal:
        return True
    return found is not None and (not known.schemas or any(call.name in known.schemas for call in found.calls))


def _may_hold_calls(fence: FencePiece) -> bool:
    return fence.language in _JSON_LANGUAGES and plainly_holds_a_call(fence.content)


def _calls_of_pure_fence(text: str, fence: FencePiece, known: KnownTools) -> _CallCollector | None:
    """Returns the calls of a fence that holds only calls. None for any other fence."""
    # Empty lines before the content keep the line numbers of the reply.
    content = "\n" * (text.count("\n", 0, fence.start) + 1) + fence.content
    layout = find_layout(content, has_fences=False)
    taken = _calls(content, layout, known)
    if taken is None or len(taken.places) < len(layout.pieces):
        return None
    if not fence.is_closed:
        message = "The code fence around the call is not closed."
        taken.problems.append(Problem(message=message, repaired=True, place=line_of(text, fence.start)))
    return taken


def _program(text: str, layout: JsonLayout, known: KnownTools) -> ToolCall | None:
    """Returns the program of a reply that is one Python block and nothing else.

    If tools are known, the reply is an answer unless programs are offered or the block calls a known tool.
    """
    piece = layout.pieces[0] if len(layout.pieces) == 1 else None
    if not isinstance(piece, FencePiece) or piece.language not in PYTHON_LANGUAGES or not piece.content.strip():
        return None
    is_offered = not known.schemas or CODE_EXECUTION in known.schemas
    if not is_offered and not any(f"{program_name(name)}(" in piece.content for name in known.schemas):
        return None
    if not piece.is_closed:
        raise Refusal(
            "The program's code fence is never closed: it was cut off, so it was not run. Make it shorter.",
            place=line_of(text, piece.start),
        )
    size = len(piece.content.encode("utf-8"))
    if size > CODE_LIMIT_BYTES:
        raise Refusal(f"The code has {size} bytes; the limit is {CODE_LIMIT_BYTES}. Write a shorter program.")
    return ToolCall(CODE_EXECUTION, {"code": piece.content}, raw_text=piece.raw)
