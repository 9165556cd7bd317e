"""The GBNF grammar of JSON calls: a list of objects, alone or in a `<tool_call>` element, or an element for each call.

A bare object is not allowed: it would force the reply to end after one call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from toolwire.protocols.grammar.callees import Callee, callees
from toolwire.protocols.grammar.notation import Json
from toolwire.protocols.grammar.rules import CALLS_LIMIT, Grammar, literal
from toolwire.protocols.grammar.schema_rules import Values, sequence, space


def json_grammar(tools: Iterable[Any]) -> str:
    """Returns the grammar of replies that make one to eight calls.

    Required arguments come first; otherwise arguments follow the schema's order.

    Raises:
        ConfigurationError: None of the tools can be called.
    """
    grammar = Grammar()
    gap = space(grammar)
    found = callees(tools, lambda schema: Values(grammar, Json(), schema))
    calls = [grammar.rule(f"call-{callee.tool.name}", _call_rule(grammar, callee)) for callee in found]
    call = grammar.rule("call", " | ".join(calls))
    wrapped = grammar.rule("wrapped", f'"<tool_call>" {gap} {call} {gap} "</tool_call>"')
    more = CALLS_LIMIT - 1
    listed = grammar.rule("listed", f'"[" {gap} {call} ("," {gap} {call}){{0,{more}}} {gap} "]"')
    in_tags = f'"<tool_call>" {gap} {listed} {gap} "</tool_call>"'
    return grammar.text(f"{in_tags} | {listed} | {wrapped} ({gap} {wrapped}){{0,{more}}}")


def _call_rule(grammar: Grammar, callee: Callee) -> str:
    gap = space(grammar)
    parts = [
        (slot.is_required, f'{literal(json.dumps(slot.parameter.name, ensure_ascii=False))} ":" {gap} {slot.rule}')
        for slot in callee.slots
    ]
    needed = [part for is_required, part in parts if is_required]
    extra = [part for is_required, part in parts if not is_required]
    inner = sequence(grammar, needed, extra, f'"," {gap}')
    arguments = f'"{{" {gap} {inner} {gap} "}}"' if inner else '"{}"'
    quoted = literal(json.dumps(callee.tool.name, ensure_ascii=False))
    return f'"{{" {gap} "\\"name\\":" {gap} {quoted} "," {gap} "\\"arguments\\":" {gap} {arguments} {gap} "}}"'
