"""Calls in XML and CDATA that can be read, as GBNF: each in `<tool_call>` or, as Qwen writes them, without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.protocols.grammar import CALLS_LIMIT, Grammar, literal
from toolwire.protocols.grammar_notation import Cdata, Json
from toolwire.protocols.grammar_tools import Callee, Slot, callees, rule_of_tool
from toolwire.protocols.grammar_values import Values, space

_TAG = re.compile(r"[^\W\d][\w.\-]*")
_OWN_TAGS = frozenset({"param", "parameter", "argument"})


def xml_grammar(tools: Iterable[Any]) -> str:
    """The grammar of replies that make one to eight calls; required parameters first, each in the schema's order.

    Raises:
        ConfigurationError: no tool that can be called.
    """
    grammar = Grammar()
    gap = space(grammar)
    found = callees(tools, lambda schema: _values(grammar, schema))
    calls = [rule_of_tool(grammar, callee, _call(grammar, callee)) for callee in found]
    call = grammar.rule("call", " | ".join(calls))
    wrapped = grammar.rule("wrapped", f'"<tool_call>" {gap} {call} {gap} "</tool_call>"')
    more = CALLS_LIMIT - 1
    return grammar.text(f"{wrapped} ({gap} {wrapped}){{0,{more}}} | {call} ({gap} {call}){{0,{more}}}")


def _values(grammar: Grammar, schema: Mapping[str, Any]) -> Values:
    return Values(grammar, Cdata(), schema, nested=Values(grammar, Json(in_cdata=True), schema))


def _call(grammar: Grammar, callee: Callee) -> str:
    gap = space(grammar)
    parts = [
        f"{gap} {_parameter(slot)}" if slot.is_required else f"({gap} {_parameter(slot)})?" for slot in callee.slots
    ]
    name = literal(f"<name>{callee.tool.name}</name>")
    return " ".join([name, gap, '"<params>"', *parts, gap, '"</params>"'])


def _parameter(slot: Slot) -> str:
    name = slot.parameter.name
    is_tag = _TAG.fullmatch(name) and name not in _OWN_TAGS
    opening = f"<{name}>" if is_tag else f"<param name={json.dumps(name, ensure_ascii=False)}>"
    closing = f"</{name}>" if is_tag else "</param>"
    return f"{literal(f'{opening}<![CDATA[')} {slot.rule} {literal(f']]>{closing}')}"
