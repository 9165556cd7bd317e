"""ATTP replies that can be read, as GBNF: one program that makes up to eight calls, each written out.

Free program text would leave room for more, and small models fill it with programs that do not run; what a loop is
needed for, such a model does in several replies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.definition.naming import program_name, program_parameter
from toolwire.protocols.grammar import CALLS_LIMIT, Grammar, literal
from toolwire.protocols.grammar_characters import ALL, CONTROLS, of, without, written
from toolwire.protocols.grammar_notation import Python
from toolwire.protocols.grammar_tools import Callee, Slot, callees, rule_of_tool
from toolwire.protocols.grammar_values import Values, sequence, space

_THOUGHT_LIMIT = 1_024
"""Characters of the thought; of the target too."""

_PAIRED_TOOLS = 8
"""With more tools, two calls whose results are named after their tools would need too many rules."""

_NAMES: tuple[tuple[str, ...], ...] = (
    tuple(f"result_{number}" for number in range(1, CALLS_LIMIT + 1)),
    tuple(f"result{number}" for number in range(1, CALLS_LIMIT + 1)),
    ("first", "second", "third", "fourth"),
    ("result",),
)
"""What programs call their results, in order: a name is read only after it was given."""


def attp_grammar(tools: Iterable[Any]) -> str:
    """The grammar of replies that succeed.

    A call gives its required arguments first and then any optional ones in order, by keyword; the first may go
    without. Spread parameters (`*rest`, `**more`) cannot be given.

    Raises:
        ConfigurationError: no tool that can be called.
    """
    grammar = Grammar()
    found = callees(tools, lambda schema: Values(grammar, Python(), schema))
    calls = [rule_of_tool(grammar, callee, _call(grammar, callee)) for callee in found]
    program = " | ".join(_programs(grammar, found, calls))
    line, block = _spoken(grammar)
    parts = [
        f'"thought = " ({line} | {block}) "\\n" "\\n"?',
        literal('[tool_call]\nstatus = "success"\ntarget = '),
        line,
        literal("\ncode = '''\n"),
        grammar.rule("program", program),
        literal("'''"),
        '"\\n"?',
    ]
    return grammar.text(" ".join(parts))


def _call(grammar: Grammar, callee: Callee) -> str:
    slots = [slot for slot in callee.slots if slot.parameter.kind in ("positional_only", "either", "keyword_only")]
    positional = [slot for slot in slots if slot.parameter.kind == "positional_only" and slot.is_required]
    named = [slot for slot in slots if slot.parameter.kind != "positional_only"]
    parts = [slot.rule for slot in positional]
    for place, slot in enumerate(slot for slot in named if slot.is_required):
        keyword = literal(f"{program_parameter(slot.parameter.name)}=")
        parts.append(f"{keyword}{'?' if not positional and place == 0 and _is_first(slot, callee) else ''} {slot.rule}")
    extra = [
        f"{literal(f'{program_parameter(slot.parameter.name)}=')} {slot.rule}" for slot in named if not slot.is_required
    ]
    gap = space(grammar)
    inner = sequence(grammar, parts, extra, f'"," {gap}')
    opening = literal(f"{program_name(callee.tool.name)}(")
    return f'{opening} {gap} {inner} {gap} ")"' if inner else literal(f"{program_name(callee.tool.name)}()")


def _is_first(slot: Slot, callee: Callee) -> bool:
    """Whether the parameter may be given by its position."""
    return slot.parameter.kind == "either" and callee.tool.visible_parameters[0].name == slot.parameter.name


def _programs(grammar: Grammar, found: Sequence[Callee], calls: Sequence[str]) -> list[str]:
    gap = space(grammar)
    call = grammar.rule("call", " | ".join(calls))
    key = grammar.rule("key", Python().key(grammar))
    pair = grammar.rule("result-pair", f'{key} ":" {gap} {call}')
    many = CALLS_LIMIT - 1
    listed = f'"[" {gap} {call} ("," {gap} {call}){{0,{many}}} {gap} "]"'
    paired = f'"{{" {gap} {pair} ("," {gap} {pair}){{0,{many}}} {gap} "}}"'
    programs = [f'"__result__ = " ({call} | {listed} | {paired}) "\\n"']
    programs += [_chain(grammar, names, call, key) for names in _NAMES]
    if len(found) <= _PAIRED_TOOLS:
        programs += [_pairs(grammar, place, found, calls, key) for place in range(len(found)) if len(found) > 1]
    return programs


def _chain(grammar: Grammar, names: Sequence[str], call: str, key: str) -> str:
    """Calls whose results bear these names one after another, as many as there are or fewer."""
    rest = ""
    for count in range(len(names), 0, -1):
        ending = _ending(grammar, names[:count], key)
        after = f"({rest} | {ending})" if rest else ending
        rest = grammar.rule(names[count - 1], f'{literal(f"{names[count - 1]} = ")} {call} "\\n" {after}')
    return rest


def _pairs(grammar: Grammar, place: int, found: Sequence[Callee], calls: Sequence[str], key: str) -> str:
    """Calls of two tools whose results are named after them, as the prompt's example has them; this tool's first."""
    names = [f"{program_name(callee.tool.name)}_result" for callee in found]
    seconds = [
        f'{literal(f"{names[other]} = ")} {calls[other]} "\\n" {_ending(grammar, (names[place], names[other]), key)}'
        for other in range(len(found))
        if other != place
    ]
    second = grammar.rule(f"after-{names[place]}", " | ".join(seconds))
    return f'{literal(f"{names[place]} = ")} {calls[place]} "\\n" {second}'


def _ending(grammar: Grammar, names: Sequence[str], key: str) -> str:
    """`__result__` as the names' list or dict; of one name, as its value."""
    listed = literal(f"[{', '.join(names)}]")
    pairs = [f"{key} {literal(': ' + name)}" for name in names]
    paired = " ".join(['"{"', ' ", " '.join(pairs), '"}"'])
    alone = f"{literal(names[0])} | " if len(names) == 1 else ""
    value = grammar.rule("ending", f"{alone}{listed} | {paired}")
    return f'"__result__ = " {value} "\\n"'


def _spoken(grammar: Grammar) -> tuple[str, str]:
    """The rules of a TOML string in one line, and of one in several."""
    escape = grammar.rule("toml-escape", _ESCAPE)
    character = grammar.rule("toml-character", f"{written(_PLAIN)} | {escape}")
    line = grammar.rule("toml-line", f'"\\"" {grammar.repeat(character, 0, _THOUGHT_LIMIT)} "\\""')
    unit = grammar.rule("toml-unit", f'"\\""{{0,2}} ({written(_PLAIN)} | "\\n" | {escape})')
    block = grammar.rule("toml-block", f'"\\"\\"\\"" {grammar.repeat(unit, 0, _THOUGHT_LIMIT)} "\\"\\"\\""')
    return line, block


_PLAIN = without(ALL, (*without(CONTROLS, of("\t")), *of('"\\')))
_ESCAPE = '"\\\\" [btnfr\\"\\\\] | "\\\\u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})'
