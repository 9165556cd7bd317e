"""The texts for a model that calls in XML: its prompt, results, and reasons why nothing ran."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from toolwire import tool
from toolwire.definition.from_schema import from_schema
from toolwire.protocols import get
from toolwire.protocols.base import Language
from toolwire.protocols.text_formats import XML as BY_TAG
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.results import ToolResult

XML = BY_TAG["tool_call"]


@tool(effects=["read"])
def search(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
    """Searches the archive.

    Args:
        query: What to look for.
        limit: How many at most.
    """
    return query


def look() -> str:
    """Looks around."""
    return "here"


EXAMPLE = "<tool_call>\n  <name>search</name>\n  <params>\n    <query><![CDATA[{}]]></query>\n  </params>\n</tool_call>"


def test_the_prompt_lists_the_tools_and_calls_them_in_its_example() -> None:
    prompt = XML.describe([search, look])
    assert prompt.partition("## Tools\n")[2] == (
        "### search\nSearches the archive.\n- query (string): What to look for.\n"
        "- limit (integer, default 10): How many at most.\n- tags (array of string or null, optional)\n\n"
        "### look\nLooks around.\n\n"
        "## Examples\nRequest: Searches the archive.\nReply:\n"
        f"{EXAMPLE.format('quarterly report')}\n\n"
        "Request: Use search twice.\nReply:\n"
        f"{EXAMPLE.format('quarterly report')}\n{EXAMPLE.format('open questions')}\n"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("thought", ["short", "full"])
def test_the_examples_are_replies_that_the_protocol_reads(language: str, thought: str) -> None:
    prompt = XML.describe([search, look], language=language, thought=thought)  # type: ignore[arg-type]
    reply, _ = (
        part.split("\n\n")[0]
        for part in prompt.replace("：", ":").split("\n回复:\n" if language == "zh" else "\nReply:\n")[1:]
    )
    assert [(call.name, call.arguments) for call in XML.parse(reply, [search]).calls] == [
        ("search", {"query": "quarterly report"})
    ]
    assert ("<think>" in prompt) == (thought == "full")


def test_no_example_refuses_where_tools_are_listed() -> None:
    assert "Book a table" not in XML.describe([search, look])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_tools_the_prompt_says_so_and_shows_a_refusal(language: Language) -> None:
    prompt = XML.describe([], language=language)
    assert "## Tools\nThere are none.\n\n" in prompt or language == "zh"
    refusal = prompt.replace("：", ":").partition("\n回复:\n" if language == "zh" else "\nReply:\n")[2]
    assert XML.parse(refusal).failure is not None


def test_a_parameter_that_no_tag_can_be_called_after_is_shown_as_it_is_written() -> None:
    spaced = from_schema(
        "t",
        "T.",
        {"type": "object", "properties": {"two words": {"type": "string"}}, "required": ["two words"]},
        effects=["read"],
    )
    prompt = XML.describe([spaced])
    assert '- <param name="two words"> (string)\n' in prompt
    assert '<param name="two words"><![CDATA[first]]></param>' in prompt


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": "fr"}, "language='fr' is unknown: write one of 'en', 'zh'"),
        ({"thought": "none"}, "thought='none' is unknown: write one of 'short', 'full'"),
    ],
)
def test_an_unknown_language_or_thought_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        XML.describe([], **options)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_each_result_is_a_block() -> None:
    results = [
        ToolResult(True, [1], call=ToolCall("search")),
        ToolResult.failed("denied", "no", call=ToolCall("pay")),
    ]
    assert XML.format(results) == (
        "<tool_result>\n  <name>search</name>\n  <success>true</success>\n  <data><![CDATA[[1]]]></data>\n"
        "</tool_result>\n<tool_result>\n  <name>pay</name>\n  <success>false</success>\n"
        "  <error><![CDATA[no\nDo not call it again; find another way or tell the user.]]></error>\n</tool_result>"
    )
    assert XML.format([]) == ""


def test_a_result_with_characters_that_xml_lacks_is_still_xml() -> None:
    block = XML.format([ToolResult(True, "a\x00\x1b[1m\ud800", call=ToolCall("t"))])
    assert ElementTree.fromstring(block).findtext("data") == "a\ufffd\ufffd[1m\ufffd"


def test_a_refused_reply_is_told_where_and_how_to_write_it() -> None:
    assert XML.refuse(XML.parse("<tool_call>")) == (
        "Your reply was not run.\n"
        "- line 1: The call is not complete: the reply ends in the middle of it. Make it shorter."
    )


def test_the_reminder_is_neither_a_call_nor_a_failure() -> None:
    copied = XML.parse(XML.reminder)
    assert (copied.calls, copied.failure, copied.is_refused) == ((), None, True)


def test_a_reply_that_gave_up_is_answered_with_its_message_and_one_that_calls_or_answers_with_nothing() -> None:
    assert XML.refuse(XML.parse("<fail>no such tool</fail>")) == (
        "Nothing was run: you replied that the task cannot be done.\nno such tool"
    )
    assert XML.refuse(XML.parse(XML.render([ToolCall("t")]))) == ""
    assert XML.refuse(XML.parse("An answer.")) == ""


def test_a_call_is_rendered_in_the_plain_form_where_its_text_brings_it_back() -> None:
    call = ToolCall("search", {"query": "10", "limit": 3, "tags": ["a"]})
    head, foot = "<tool_call>\n  <name>search</name>\n  <params>\n", "  </params>\n</tool_call>"
    assert XML.render([call], tools=[search]) == (
        f"{head}    <query><![CDATA[10]]></query>\n    <limit><![CDATA[3]]></limit>\n"
        f'    <tags><![CDATA[["a"]]]></tags>\n{foot}'
    )
    assert XML.render([call]) == (
        f'{head}    <query type="json"><![CDATA["10"]]></query>\n    <limit><![CDATA[3]]></limit>\n'
        f'    <tags type="json"><![CDATA[["a"]]]></tags>\n{foot}'
    )


def test_an_unwritable_value_is_refused_with_its_path() -> None:
    with pytest.raises(Unrepresentable) as caught:
        XML.render([ToolCall("t", {"x": object()})])
    assert caught.value.path.startswith("x")


def test_the_protocol_is_found_by_its_name() -> None:
    assert (get("xml").name, XML.is_native, XML.writes_programs) == ("xml", False, False)
