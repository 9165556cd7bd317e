"""The GBNF grammar of XML calls with CDATA: each call in its element, or without it as Qwen writes calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolwire.definition.derived import input_schema_of
from toolwire.protocols.grammar.callees import Callee, Slot, callees
from toolwire.protocols.grammar.notation import Cdata, Json
from toolwire.protocols.grammar.rules import CALLS_LIMIT, Grammar, literal
from toolwire.protocols.grammar.schema_rules import Values, space
from toolwire.protocols.xml.element import CallTag
from toolwire.protocols.xml.render import parameter_tag

_JSON_MARK = ' type="json"><![CDATA['


def xml_grammar(tools: Iterable[Any], *, tag: CallTag = "tool_call") -> str:
    """Returns the grammar of replies that make one to eight calls.

    Required parameters come first; otherwise parameters follow the schema's order.

    Raises:
        ConfigurationError: None of the tools can be called.
    """
    grammar = Grammar()
    gap = space(grammar)
    found = callees(tools, lambda schema: _values(grammar, schema))
    calls = [grammar.rule(f"call-{callee.tool.name}", _call_rule(grammar, callee)) for callee in found]
    call = grammar.rule("call", " | ".join(calls))
    wrapped = grammar.rule("wrapped", f'"<{tag}>" {gap} {call} {gap} "</{tag}>"')
    more = CALLS_LIMIT - 1
    return grammar.text(f"{wrapped} ({gap} {wrapped}){{0,{more}}} | {call} ({gap} {call}){{0,{more}}}")


def _values(grammar: Grammar, schema: Mapping[str, Any]) -> Values:
    return Values(grammar, Cdata(), schema, nested=_cdata_values(grammar, schema))


def _cdata_values(grammar: Grammar, schema: Mapping[str, Any]) -> Values:
    return Values(grammar, Json(in_cdata=True), schema)


def _call_rule(grammar: Grammar, callee: Callee) -> str:
    gap = space(grammar)
    marked = _cdata_values(grammar, input_schema_of(callee.tool))
    parts: list[str] = []
    for slot in callee.slots:
        written = grammar.rule(f"give-{slot.parameter.name}", _parameter(slot, marked))
        parts.append(f"{gap} {written}" if slot.is_required else f"({gap} {written})?")
    name = literal(f"<name>{callee.tool.name}</name>")
    return " ".join([name, gap, '"<params>"', *parts, gap, '"</params>"'])


def _parameter(slot: Slot, marked: Values) -> str:
    """Returns a rule for the value as text or, with a mark, as JSON."""
    tag = parameter_tag(slot.parameter.name)
    opening, closing = literal(f"<{tag}"), literal(f"]]></{tag.partition(' ')[0]}>")
    options = [f"{literal('><![CDATA[')} {slot.rule}"]
    as_json = marked.value(slot.parameter.schema)
    if as_json is not None:
        options.append(f"{literal(_JSON_MARK)} {as_json}")
    return f"{opening} ({' | '.join(options)}) {closing}"
