"""The format of a reply is recognised."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.protocols import get, names, recognise
from toolwire.vocabulary.calls import ToolCall

XML_CALL = "<tool_call><name>t</name><params><a><![CDATA[{}]]></a></params></tool_call>"
ATTP_CALL = "thought = 't'\n\n[tool_call]\nstatus = \"success\"\ntarget = \"g\"\ncode = '''\n{}\n'''\n"


@pytest.mark.parametrize("name", names())
def test_rendered_calls_are_recognised_as_the_same_protocol(name: str) -> None:
    assert recognise(get(name).render([ToolCall("search", {"query": "x"}, id="call_1")])) == name


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        (XML_CALL.format(1), "xml"),
        (XML_CALL.format(1).encode(), "xml"),
        (f"Sure:\n```xml\n{XML_CALL.format(1)}\n```", "xml"),
        ("<name>t</name>\n<params><a>1</a></params>", "xml"),
        ("<fail>no tool</fail>", "xml"),
        (ATTP_CALL.format("__result__ = 1"), "attp"),
        (ATTP_CALL.format(f'write("{XML_CALL.format(1)}")'), "attp"),
        (XML_CALL.format(ATTP_CALL.format("__result__ = 1")), "xml"),
        ({"role": "assistant", "content": XML_CALL.format(1)}, "openai"),
        (json.dumps({"role": "assistant", "content": XML_CALL.format(1)}), "openai"),
        ("Just an answer.", None),
        ("", None),
        (b"\xff\xfe", None),
        (42, None),
        (None, None),
    ],
)
def test_a_reply_is_in_the_format_that_is_around_all_others(reply: Any, name: str | None) -> None:
    assert recognise(reply) == name
