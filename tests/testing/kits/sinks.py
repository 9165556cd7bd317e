"""`ListSink`, and a conformance kit for sinks: a slow reader pauses the tool, and a reader that left stops it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import TypeVar

from toolwire.invocation.ports.ports import Part, Sink
from toolwire.testing.checks import holds, run_checks
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.response import ToolResponse

T = TypeVar("T")
_PATIENCE_S = 5.0
"""Seconds allowed for an operation that takes microseconds in a correct sink."""
_THREADS = 8
_PARTS = 25


class ListSink:
    """Keeps all parts and never makes the tool wait. With `wants`, its reader leaves after that many parts."""

    def __init__(self, *, wants: int | None = None) -> None:
        self._wants = wants
        self.parts: list[Part] = []
        """The accepted parts in order."""
        self.last: ToolResponse | None = None
        """The last response of the tool."""

    def offer(self, part: Part, /) -> Future[bool] | None:
        """Keeps a part."""
        if self._wants is None or len(self.parts) < self._wants:
            self.parts.append(part)
            return None
        nobody: Future[bool] = Future()
        nobody.set_result(False)
        return nobody

    def end_with(self, response: ToolResponse, /) -> None:
        """Keeps the last response."""
        self.last = response


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSink:
    """A sink under test, with its reader.

    Attributes:
        sink: The end for the tool.
        take: Returns the next part, which also lets the tool make another one. Blocks until a part comes.
        leave: Makes the reader leave.
    """

    sink: Sink
    take: Callable[[], Part | None]
    leave: Callable[[], object]


MakeSink = Callable[[], OpenSink]
"""Creates a sink that makes the tool wait."""


def check_sink(make_sink: MakeSink) -> None:
    """Runs every check of `SINK_CHECKS`. Do not call it inside a running event loop: it starts its own.

    Raises:
        PortFails: At least one check failed.
    """
    run_checks(SINK_CHECKS, make_sink)


def _parts_come_in_order(make: MakeSink) -> None:
    opened, parts = make(), _parts("a", 5)
    made = _beside(lambda: [_offered(opened, part).result(_PATIENCE_S) for part in parts[:-1]])
    came = [_taken(opened) for _ in parts[:-1]]
    last = _offered(opened, parts[-1])
    came.append(_taken(opened))
    holds(all(one is part for one, part in zip(came, parts, strict=True)), f"{_texts(parts)} came as {_texts(came)}")
    turns = _value(made, "the tool")
    holds(turns == [True] * 4, f"the reader came for the next part each time, and the tool was told {turns}")
    holds(not _is_ready(last), "the tool was let go on although nobody came for more than what there is")


def _the_tool_does_not_get_ahead(make: MakeSink) -> None:
    opened, (first, second) = make(), _parts("a", 2)
    turn = _offered(opened, first)
    holds(not _is_ready(turn), "the tool was let go on before anybody took what it had made")
    _taken(opened)
    holds(not _is_ready(turn), "the tool was let go on before the reader came for the next part")
    following = _beside(opened.take)
    holds(_value(turn, "leave to go on, for a reader who came for more,") is True, "a reader came, and it said False")
    _offered(opened, second)
    holds(_value(following, "the reader") is second, "a reader who waited got another part than the one made next")


def _a_reader_who_left_stops_the_tool(make: MakeSink) -> None:
    for taken in (0, 1):
        opened, (first, second) = make(), _parts("a", 2)
        turn = _offered(opened, first)
        for _ in range(taken):
            _taken(opened)
        opened.leave()
        where = "with a part in hand" if taken else "before it took anything"
        holds(_value(turn, f"the tool of a reader who left {where}") is False, f"a reader left {where}: it said True")
        later = opened.sink.offer(second)
        holds(later is not None and _value(later, "a later offer") is False, "after its reader left, it took more")


def _tools_of_several_threads_keep_apart(make: MakeSink) -> None:
    opened = make()
    given = {str(thread): _parts(str(thread), _PARTS) for thread in range(_THREADS)}

    def tool(parts: Sequence[Part]) -> None:
        for part in parts:
            _offered(opened, part).result(_PATIENCE_S)

    for parts in given.values():
        _beside(lambda parts=parts: tool(parts))
    came = [_taken(opened) for _ in range(_THREADS * _PARTS)]
    for name, parts in given.items():
        found = [text for text in _texts(came) if text.startswith(f"{name} ")]
        holds(found == _texts(parts), f"of the parts {_texts(parts)} of one thread, {found} came")


def _it_is_awaited_on_any_loop(make: MakeSink) -> None:
    opened = make()
    for name in ("first", "second"):
        parts = _parts(name, 3)
        reader = _beside(lambda: [_taken(opened) for _ in range(3)])
        turns = asyncio.run(_awaited(opened, parts))
        came = _value(reader, "the reader")
        holds(_texts(came) == _texts(parts), f"of a tool on a loop {_texts(parts)} came as {_texts(came)}")
        holds(turns == [True, True], f"a tool on a loop was told {turns}")


async def _awaited(opened: OpenSink, parts: Sequence[Part]) -> list[bool]:
    turns: list[bool] = []
    for part in parts[:-1]:
        turn = asyncio.wrap_future(_offered(opened, part))
        turns.append(await asyncio.wait_for(turn, _PATIENCE_S))
    _offered(opened, parts[-1])
    return turns


def _the_last_response_holds_nobody_up(make: MakeSink) -> None:
    opened, response = make(), ToolResponse([TextBlock(type="text", text="all")])
    _offered(opened, *_parts("a", 1))
    _value(_beside(lambda: opened.sink.end_with(response)), "`end_with`")
    holds(_texts([_taken(opened)]) == ["a 0"], "with the last response, what came before it was lost")
    holds(response.content == [TextBlock(type="text", text="all")], "it changed the last response")


SINK_CHECKS: Mapping[str, Callable[[MakeSink], None]] = {
    "parts come in order": _parts_come_in_order,
    "the tool does not get ahead": _the_tool_does_not_get_ahead,
    "a reader who left stops the tool": _a_reader_who_left_stops_the_tool,
    "tools of several threads keep apart": _tools_of_several_threads_keep_apart,
    "it is awaited on any loop": _it_is_awaited_on_any_loop,
    "the last response holds nobody up": _the_last_response_holds_nobody_up,
}
"""The checks by name, to run one by one; each raises `PortFails`."""


def _parts(name: str, count: int) -> list[Part]:
    return [Part(pieces=(f"{name} {place}",)) for place in range(count)]


def _texts(parts: Sequence[Part | None]) -> list[str]:
    return ["nothing" if part is None else "".join(map(str, part.pieces)) for part in parts]


def _offered(opened: OpenSink, part: Part) -> Future[bool]:
    """Offers a part and returns the future of the tool's turn. The offer itself must not block."""
    turn = _value(_beside(lambda: opened.sink.offer(part)), "`offer` itself")
    if turn is None:
        holds(False, "`offer` gave None: a slow reader does not hold the tool up")
    assert turn is not None
    return turn


def _taken(opened: OpenSink) -> Part | None:
    return _value(_beside(opened.take), "`take`")


def _is_ready(turn: Future[bool]) -> bool:
    return turn.done()


def _beside(function: Callable[[], T]) -> Future[T]:
    """Runs a function in a daemon thread and returns a future of its result."""
    found: Future[T] = Future()

    def work() -> None:
        try:
            found.set_result(function())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return found


def _value(future: Future[T], what: str) -> T:
    try:
        return future.result(_PATIENCE_S)
    except FutureTimeoutError:
        holds(False, f"{what} was not done after {_PATIENCE_S:g} s")
        raise
