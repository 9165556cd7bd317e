"""The two tags around a call in XML: the one that the texts for the model show, and both in what is read."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.protocols.grammar_matcher import Gbnf
from toolwire import ConfigurationError, Session, ToolCall
from toolwire.definition.from_function import from_function
from toolwire.protocols import get
from toolwire.protocols.base import CallingProtocol, Language
from toolwire.protocols.streaming import CallEnded
from toolwire.testing import MemoryStore, check_protocol

XML, CALL = get("xml"), get("xml", tag="call")
BOTH = pytest.mark.parametrize("protocol", [XML, CALL], ids=["tool_call", "call"])


def search(query: str, call: str = "", days: list[int] | None = None) -> str:
    """Searches."""
    return f"{query} {call} {days}"


def written(tag: str, value: str = "otters") -> str:
    return f"<{tag}>\n<name>search</name>\n<params>\n<query><![CDATA[{value}]]></query>\n</params>\n</{tag}>"


def streamed(protocol: CallingProtocol, text: str, size: int) -> tuple[Any, list[Any]]:
    stream = protocol.stream([search])
    events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
    return stream.reply(), [event.call for event in events if isinstance(event, CallEnded)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_text_for_the_model_has_the_tag(language: Language) -> None:
    texts = [
        CALL.describe([search], language=language),
        CALL.reminder,
        CALL.grammar([search]),
        CALL.render([ToolCall("search", {"query": "otters"})]),
        CALL.parse('<search query="otters"/>', [search]).problems[0].message,
    ]
    assert [("<call>" in text, "tool_call" in text) for text in texts] == [(True, False)] * 5
    shown = XML.describe([search], language=language)
    assert str(shown).replace("<tool_call>", "<call>").replace("</tool_call>", "</call>") == texts[0]


@BOTH
@pytest.mark.parametrize("tag", ["tool_call", "call"])
@pytest.mark.parametrize("form", ["{}", "I look.\n{}\nDone.", "```xml\n{}\n```", "{0}\n{0}", "> no\n\n{}"])
def test_both_tags_are_read_whole_and_in_pieces(protocol: CallingProtocol, tag: str, form: str) -> None:
    text = form.format(written(tag))
    reply = protocol.parse(text, [search])
    assert {(call.name, call.arguments["query"]) for call in reply.calls} == {("search", "otters")}
    assert [problem.message for problem in reply.problems if "fence" not in problem.message] == []
    for size in (1, 5, 1_000):
        assert streamed(protocol, text, size) == (reply, list(reply.calls))


@BOTH
@pytest.mark.parametrize(
    "around", ["<think>{}</think>No.", "`{}`", "> {}", "“{}”", "<!-- {} -->No.", "As:\n```\n{}\n```"]
)
def test_no_call_comes_out_of_what_is_quoted(protocol: CallingProtocol, around: str) -> None:
    text = around.format(written("call").replace("\n", ""))
    reply = protocol.parse(text, [search])
    assert (reply.calls, streamed(protocol, text, 3)) == ((), (reply, []))


@BOTH
@pytest.mark.parametrize("tag", ["tool_call", "call"])
@pytest.mark.parametrize(
    ("form", "call"),
    [
        ("<{0}><name>search</name></{0}>", ("search", {})),
        ("<{0}><name>search</name><query>a</query></{0}>", ("search", {"query": "a"})),
        ("<{0} name='search'><query>a</query></{0}>", ("search", {"query": "a"})),
        ("<{0} name='find'><params><query>a</query></params></{0}>", ("find", {"query": "a"})),
        ("```xml\n<{0}><name>find</name></{0}>\n```", ("find", {})),
    ],
)
def test_damaged_calls_are_read_alike_with_both_tags(
    protocol: CallingProtocol, tag: str, form: str, call: tuple[str, dict[str, str]]
) -> None:
    text = form.format(tag)
    reply = protocol.parse(text, [search])
    assert [(found.name, dict(found.arguments)) for found in reply.calls] == [call]
    for size in (1, 1_000):
        assert streamed(protocol, text, size)[0] == reply


@pytest.mark.parametrize(
    "text",
    [
        "<call>",
        "<call>hello</call>",
        "<call><city>Oslo</city></call>",
        written("call")[:-20],
        "<call>{}</call>",
        "<call><name>search</name>",
    ],
)
def test_an_unread_call_in_the_tag_of_the_prompt_is_never_an_answer(text: str) -> None:
    assert CALL.parse(text, [search]).is_refused


@pytest.mark.parametrize(
    "text",
    [
        "<calls><call><from>Ada</from></call></calls>",
        "Use <call> here.",
        "<call>Ada</call>",
        "<call name='Ada'>5</call>",
    ],
)
def test_the_control_xml_of_another_kind_is_an_answer(text: str) -> None:
    assert XML.parse(text, [search]).text == text
    assert streamed(XML, text, 2) == (XML.parse(text, [search]), [])


@BOTH
def test_a_parameter_may_be_called_as_the_tag(protocol: CallingProtocol) -> None:
    made = ToolCall("search", {"query": "a", "call": "<call>b</call>"})
    reply = protocol.parse(protocol.render([made]), [search])
    assert (reply.calls, reply.problems) == ((made,), ())


def test_the_conformance_kit_holds_with_the_tag() -> None:
    check_protocol(CALL)


@pytest.mark.parametrize("tag", ["", "name", "a b", "tool_calls", "</call>", 3])
def test_another_tag_is_refused(tag: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is unknown: write one of '\w+', '\w+'"):
        get("xml", tag=tag)


@pytest.mark.parametrize("name", ["json", "openai"])
def test_another_protocol_has_no_tag(name: str) -> None:
    with pytest.raises(ConfigurationError, match="only the protocol 'xml' has a tag"):
        get(name, tag="call")


async def test_a_run_of_one_tag_is_resumed_by_a_session_of_the_other() -> None:
    store, asks = MemoryStore(), {"search": "confirm"}
    turn = await Session([search], protocol=CALL, store=store, permissions=asks).turn(written("call"))  # type: ignore[arg-type]
    assert turn.suspended is not None
    decisions = [{"request_id": request.id, "verdict": "approve"} for request in turn.suspended.pending]
    text = turn.suspended.to_json()
    done = await Session([search], protocol="xml", store=store, permissions=asks).resume(text, decisions)  # type: ignore[arg-type]
    assert done.results[0].data == "otters  None"


def test_replies_of_its_grammar_are_read() -> None:
    tool, chance = from_function(search), random.Random(5)
    held = Gbnf(CALL.grammar([tool]))
    texts = [held.write(chance, extra=2) for _ in range(20)]
    assert any("<call>" in text for text in texts)
    for text in texts:
        reply = CALL.parse(text, [tool])
        assert reply.calls, text
        assert {problem.message for problem in reply.problems} <= {"<call> is missing around the call."}
