"""The text protocols: which parts make each of them.

XML and JSON also read each other's form, and those of other models, where the reading is unambiguous.
"""

from __future__ import annotations

import re
from functools import partial

from toolwire.protocols.attp.parse import read_attp
from toolwire.protocols.attp.prompt import attp_tools_text, describe_attp
from toolwire.protocols.attp.render import attp_right_form, format_attp, render_attp
from toolwire.protocols.attp.stream import AttpStream
from toolwire.protocols.foreign.text_parse import settle_reply
from toolwire.protocols.grammar.attp_grammar import attp_grammar
from toolwire.protocols.grammar.json_grammar import json_grammar
from toolwire.protocols.grammar.xml_grammar import xml_grammar
from toolwire.protocols.json_text.layout import is_plainly_in_this_format
from toolwire.protocols.json_text.parse import read_json_text
from toolwire.protocols.json_text.prompt import describe_json_text, json_tools_text
from toolwire.protocols.json_text.render import format_json_text, json_right_form, render_json_text
from toolwire.protocols.json_text.stream import JsonTextStream
from toolwire.protocols.outgoing import refusal_text
from toolwire.protocols.reading.incoming import is_json
from toolwire.protocols.text.text_protocol import TextProtocol
from toolwire.protocols.tool_names import KnownTools
from toolwire.protocols.xml.element import BLOCK_TAGS, CallTag
from toolwire.protocols.xml.parse import read_xml
from toolwire.protocols.xml.prompt import describe_xml, xml_tools_text
from toolwire.protocols.xml.render import format_xml, render_xml, xml_right_form
from toolwire.protocols.xml.stream import XmlStream
from toolwire.vocabulary.calls import Reply

_ATTP_HEADER = re.compile(r"^[ \t]*\[[ \t]*tool_call[ \t]*\][ \t]*$", re.MULTILINE)
_XML_CALL = re.compile(
    rf"<tool_call(?:\s[^<>]*+)?+>\s*+<[^\W\d]|<name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})\s*+/?>|\A\s*+<fail>"
)

ATTP = TextProtocol(
    name="attp",
    writes_programs=True,
    reminder=(
        "Reply with one TOML document in the form of the system prompt, and nothing around it: `thought`, then "
        "[tool_call] with `status`, `target` and `code`. If the task cannot be done, give `status` and `message` there "
        "instead. If no tool is needed any more, answer in plain text."
    ),
    describe=describe_attp,
    tools_text=attp_tools_text,
    is_in_format=lambda text: _ATTP_HEADER.search(text) is not None,
    read=read_attp,
    open_stream=AttpStream,
    render=render_attp,
    format=format_attp,
    right_form=attp_right_form,
    grammar=attp_grammar,
)


def _read_json(reply: str | bytes, known: KnownTools) -> Reply:
    return settle_reply(read_json_text(reply, known), reply, known, read_xml, render_json_text)


JSON_TEXT = TextProtocol(
    name="json",
    reminder=(
        "Write the calls as a list in strict JSON between tags, as in the system prompt: "
        '<tool_call>[{"name": ..., "arguments": {...}}]</tool_call>'
    ),
    describe=describe_json_text,
    tools_text=json_tools_text,
    is_in_format=is_plainly_in_this_format,
    read=_read_json,
    open_stream=JsonTextStream,
    render=render_json_text,
    format=format_json_text,
    right_form=json_right_form,
    grammar=json_grammar,
    refuse=refusal_text,
)


def _xml(tag: CallTag) -> TextProtocol:
    def read(reply: str | bytes, known: KnownTools) -> Reply:
        render = partial(render_xml, tools=known, tag=tag)
        return settle_reply(read_xml(reply, known, tag=tag), reply, known, read_json_text, render)

    return TextProtocol(
        name="xml",
        reminder=(
            "Write each call as in the examples of the system prompt, with each value in CDATA: "
            f"<{tag}><name>...</name><params>...</params></{tag}>\n"
            "If the task cannot be done, write the reason between <fail> and </fail>, and no call."
        ),
        describe=partial(describe_xml, tag=tag),
        tools_text=xml_tools_text,
        is_in_format=lambda text: _XML_CALL.search(text) is not None and not is_json(text),
        read=read,
        open_stream=partial(XmlStream, tag=tag),
        render=partial(render_xml, tag=tag),
        format=format_xml,
        right_form=partial(xml_right_form, tag=tag),
        grammar=partial(xml_grammar, tag=tag),
    )


XML: dict[CallTag, TextProtocol] = {"tool_call": _xml("tool_call"), "call": _xml("call")}
"""The protocol by the name of the element around a call in the texts that the model reads. Replies with either are
read.
"""
