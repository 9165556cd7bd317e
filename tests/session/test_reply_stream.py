"""`Session.stream`: a reply that arrives in pieces, read against every tool that the session may call."""

from __future__ import annotations

from toolwire import Session
from toolwire.protocols import CallEnded, CallStarted


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


REPLY = "<tool_call><name>add</name><params><a>1</a><b>2</b></params></tool_call>"


async def test_a_streamed_reply_runs_like_the_whole_one() -> None:
    session = Session([add], protocol="xml")
    stream = session.stream()
    events = [event for piece in REPLY for event in stream.feed(piece)]
    assert [type(event) for event in events if isinstance(event, CallStarted | CallEnded)] == [CallStarted, CallEnded]
    streamed, whole = await session.turn(stream.reply()), await session.turn(REPLY)
    assert [result.data for result in streamed.results] == [result.data for result in whole.results] == [3]


async def test_a_stream_knows_tools_that_the_search_has_not_shown() -> None:
    def double(text: str) -> str:
        """Writes a text twice."""
        return text * 2

    session = Session([add, double], protocol="xml", always=())
    reply = "<tool_call><name>double</name><params><text>12</text></params></tool_call>"
    told = {tool.name for tool in session.tools}
    assert "double" not in told
    stream, narrow = session.stream(), session.protocol.stream(session.tools)
    stream.feed(reply)
    narrow.feed(reply)
    assert stream.reply() == session.protocol.parse(reply, [add, double])
    # Without the tool's schema, the text would be read as a number.
    assert dict(stream.reply().calls[0].arguments) == {"text": "12"}
    assert dict(narrow.reply().calls[0].arguments) == {"text": 12}
    assert (await session.turn(stream.reply())).results[0].data == "1212"
