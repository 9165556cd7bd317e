"""Reading a reply in XML takes time in proportion to its length, whatever it holds. Measured in processor time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.processor import LINEAR, growth, milliseconds
from toolwire.protocols import get

XML = get("xml")
SIZE = 65_536
LIMIT_MS = 100
HEAD = "<tool_call><name>t</name><params>"
TAIL = "</params></tool_call>"

PUMPS: dict[str, Callable[[int], str]] = {
    "prose": lambda size: "it's one < word. " * (size // 17),
    "spaces": lambda size: " " * size + "<",
    "calls' openings": lambda size: "<tool_call> x" * (size // 13),
    "names": lambda size: ("<name>" + " " * 200) * (size // 206),
    "names and spaces": lambda size: ("<name>a</name>" + " " * 100) * (size // 114),
    "parameters": lambda size: HEAD + "".join(f"<a{n}>1</a{n}>" for n in range(size // 16)) + TAIL,
    "parameters in CDATA": lambda size: HEAD + "".join(f"<a{n}><![CDATA[1]]></a{n}>" for n in range(size // 28)) + TAIL,
    "misspelt closings": lambda size: HEAD + "".join(f"<a{n}>1</b>" for n in range(size // 13)) + TAIL,
    "loose ends": lambda size: HEAD + "".join(f"<a{n}><![CDATA[1]]>x" for n in range(size // 22)),
    "nested CDATA": lambda size: (
        HEAD + "".join(f"<a{n}><![CDATA[<![CDATA[]]></a{n}>" for n in range(size // 36)) + TAIL
    ),
    "ends of CDATA": lambda size: HEAD + "<a><![CDATA[" + "]]>" * (size // 3),
    "sections": lambda size: HEAD + "<a>" + "<![CDATA[x]]>" * (size // 13) + "</a>" + TAIL,
    "closings": lambda size: HEAD + "<a>" + "</a>x" * (size // 5),
    "attributes": lambda size: HEAD + "<a" + ' x="' * (size // 4) + ">",
    "comments": lambda size: "<!--" * (size // 4) + HEAD,
    "thinking": lambda size: "<think></think>" * (size // 15) + HEAD,
    "ends of thinking": lambda size: "</think>" * (size // 8) + HEAD,
    "results": lambda size: "<tool_result><![CDATA[]]></tool_result>" * (size // 39),
    "quoting elements": lambda size: "<code><pre><example>" * (size // 20),
    "fences": lambda size: "```\n<tool_call>\n" * (size // 16),
    "closed fences": lambda size: f"```\n{HEAD}{TAIL}\n```\n" * (size // 70),
    "backquotes": lambda size: "` `` " * (size // 5),
    "quoted calls": lambda size: f'"{HEAD}{TAIL}"' * (size // 56),
    "block quotes": lambda size: f"> {HEAD}{TAIL}\n" * (size // 57),
    "fails": lambda size: "<fail>" * (size // 6),
    "document types": lambda size: "<!DOCTYPE x [<!ENTITY a 'b'>]>" * (size // 30) + HEAD + TAIL,
    "entities": lambda size: HEAD + "<a>" + "&a;" * (size // 3) + "</a>" + TAIL,
    "deep JSON": lambda size: HEAD + '<a type="json">' + "[" * size + "</a>" + TAIL,
    "digits": lambda size: HEAD + "<a>" + "9" * size + "</a>" + TAIL,
}


def streamed(text: str) -> None:
    stream = XML.stream()
    for character in text:
        stream.feed(character)


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_four_times_the_text_takes_about_four_times_the_time(pump: Callable[[int], str]) -> None:
    assert growth(XML.parse, pump(SIZE // 4), pump(SIZE)) <= LINEAR


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_the_worst_text_is_read_in_time(pump: Callable[[int], str]) -> None:
    text = pump(SIZE)
    assert milliseconds(lambda: XML.parse(text), enough=LIMIT_MS) <= LIMIT_MS


@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_a_stream_of_single_characters_takes_time_in_proportion_too(pump: Callable[[int], str]) -> None:
    assert growth(streamed, pump(SIZE // 16), pump(SIZE // 4)) <= LINEAR
