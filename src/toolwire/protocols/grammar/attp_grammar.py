"""The GBNF grammar of ATTP replies: one program of one to eight explicit calls, or up to four programs of one call.

The grammar does not allow free program text, because small models write programs that do not run. Such a model needs
several replies for the work of a loop. Small models write a program for each of several calls. A grammar of one program
makes them stop after the first call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.definition.naming import program_name
from toolwire.protocols.grammar.callees import Callee, Slot, callees
from toolwire.protocols.grammar.characters import ALL, CONTROLS, character_class, character_set, without
from toolwire.protocols.grammar.notation import Python
from toolwire.protocols.grammar.rules import CALLS_LIMIT, Grammar, literal
from toolwire.protocols.grammar.schema_rules import Values, sequence, space

_THOUGHT_LIMIT = 1_024
"""Maximum length in characters of the thought and of the target."""

_PROGRAMS_LIMIT = 4
"""Maximum number of programs in a reply. A small model that may always go on calls every tool of its prompt.

Each of several programs is one call whose value is the result. With free forms a small model wrote its only call once
more in another form, and it ran twice. A program that is the same as another runs once.
"""

_CODE = "\ncode = '''\n"
_END = "'''"

_PAIRED_TOOLS = 8
"""Maximum number of tools for pairs of calls with results named after their tools. More would need too many rules."""

_NAMES: tuple[tuple[str, ...], ...] = (
    tuple(f"result_{number}" for number in range(1, CALLS_LIMIT + 1)),
    tuple(f"result{number}" for number in range(1, CALLS_LIMIT + 1)),
    ("first", "second", "third", "fourth"),
    ("result", *(f"result_{number}" for number in range(2, CALLS_LIMIT + 1))),
)
"""The names that a program may give its results, in order of assignment. A name is used only after its assignment."""


def attp_grammar(tools: Iterable[Any]) -> str:
    """Returns the grammar of replies that report success.

    A call gives its required arguments first, then optional ones, in order and by keyword. The first argument may be
    positional. Spread parameters (`*rest`, `**more`) cannot be given.

    Raises:
        ConfigurationError: None of the tools can be called.
    """
    grammar = Grammar()
    found = callees(tools, lambda schema: Values(grammar, Python(), schema))
    calls = [grammar.rule(f"call-{callee.tool.name}", _call_rule(grammar, callee)) for callee in found]
    finish = next((f'{rule} "\\n"' for callee, rule in zip(found, calls, strict=True) if callee.tool.ends_turn), "")
    program = " | ".join(_programs(grammar, found, calls, finish))
    line, block = _spoken(grammar)
    opening = literal('[tool_call]\nstatus = "success"\ntarget = ')
    table = grammar.rule("table", f"{opening} {line} {literal(_CODE)}")
    written = f"{table} {grammar.rule('program', program)} {literal(_END)}"
    # Where a program may end the turn, no other may follow it.
    if not finish:
        alone = grammar.rule("alone", f'{table} "__result__ = " ({" | ".join(calls)}) "\\n" {literal(_END)}')
        written = f'({written} | {alone} ("\\n" "\\n"? {alone}){{1,{_PROGRAMS_LIMIT - 1}}})'
    return grammar.text(f'"thought = " ({line} | {block}) "\\n" "\\n"? {written} "\\n"?')


def _call_rule(grammar: Grammar, callee: Callee) -> str:
    slots = [slot for slot in callee.slots if slot.parameter.kind in ("positional_only", "either", "keyword_only")]
    positional = [slot for slot in slots if slot.parameter.kind == "positional_only" and slot.is_required]
    named = [slot for slot in slots if slot.parameter.kind != "positional_only"]
    parts = [slot.rule for slot in positional]
    for place, slot in enumerate(slot for slot in named if slot.is_required):
        keyword = literal(f"{slot.parameter.program_name}=")
        parts.append(f"{keyword}{'?' if not positional and place == 0 and _is_first(slot, callee) else ''} {slot.rule}")
    extra = [f"{literal(f'{slot.parameter.program_name}=')} {slot.rule}" for slot in named if not slot.is_required]
    gap = space(grammar)
    inner = sequence(grammar, parts, extra, f'"," {gap}')
    opening = literal(f"{program_name(callee.tool.name)}(")
    return f'{opening} {gap} {inner} {gap} ")"' if inner else literal(f"{program_name(callee.tool.name)}()")


def _is_first(slot: Slot, callee: Callee) -> bool:
    """True if the parameter may be given by position."""
    return slot.parameter.kind == "either" and callee.tool.visible_parameters[0].name == slot.parameter.name


def _programs(grammar: Grammar, found: Sequence[Callee], calls: Sequence[str], finish: str) -> list[str]:
    """Returns the rules of all programs. `finish` is the line that ends the work; empty without such a tool."""
    gap = space(grammar)
    call = grammar.rule("call", " | ".join(calls))
    key = grammar.rule("key", Python().key(grammar))
    pair = grammar.rule("result-pair", f'{key} ":" {gap} {call}')
    many = CALLS_LIMIT - 1
    listed = f'"[" {gap} {call} ("," {gap} {call}){{0,{many}}} {gap} "]"'
    paired = f'"{{" {gap} {pair} ("," {gap} {pair}){{0,{many}}} {gap} "}}"'
    # A tuple: after one call, a reply that needs several can still go on.
    several = f'{call} (", " {call}){{0,{many}}}'
    programs = [f'"__result__ = " ({several} | {listed} | {paired}) "\\n"']
    programs += [finish] if finish else []
    programs += [_chain(grammar, names, call, key, finish) for names in _NAMES]
    if len(found) <= _PAIRED_TOOLS:
        programs += [_pairs(grammar, place, found, calls, key) for place in range(len(found)) if len(found) > 1]
    return programs


def _chain(grammar: Grammar, names: Sequence[str], call: str, key: str, finish: str) -> str:
    """Returns the rule for one or more calls whose results take these names in order."""
    rest = ""
    for count in range(len(names), 0, -1):
        ending = _ending(grammar, names[:count], key)
        if finish:
            ending = f"({ending} | {finish})"
        after = f"({rest} | {ending})" if rest else ending
        rest = grammar.rule(names[count - 1], f'{literal(f"{names[count - 1]} = ")} {call} "\\n" {after}')
    return rest


def _pairs(grammar: Grammar, place: int, found: Sequence[Callee], calls: Sequence[str], key: str) -> str:
    """Returns a rule for calls of two tools whose results are named after them. The tool at `place` comes first."""
    names = [f"{program_name(callee.tool.name)}_result" for callee in found]
    seconds = [
        f'{literal(f"{names[other]} = ")} {calls[other]} "\\n" {_ending(grammar, (names[place], names[other]), key)}'
        for other in range(len(found))
        if other != place
    ]
    second = grammar.rule(f"after-{names[place]}", " | ".join(seconds))
    return f'{literal(f"{names[place]} = ")} {calls[place]} "\\n" {second}'


def _ending(grammar: Grammar, names: Sequence[str], key: str) -> str:
    """Returns the assignment of `__result__`: a list or dict of the names, or the value of a single name."""
    listed = literal(f"[{', '.join(names)}]")
    pairs = [f"{key} {literal(': ' + name)}" for name in names]
    paired = " ".join(['"{"', ' ", " '.join(pairs), '"}"'])
    alone = f"{literal(names[0])} | " if len(names) == 1 else ""
    value = grammar.rule("ending", f"{alone}{listed} | {paired}")
    return f'"__result__ = " {value} "\\n"'


def _spoken(grammar: Grammar) -> tuple[str, str]:
    """Returns the rules of a one-line and of a multi-line TOML string."""
    escape = grammar.rule("toml-escape", _ESCAPE)
    character = grammar.rule("toml-character", f"{character_class(_PLAIN)} | {escape}")
    line = grammar.rule("toml-line", f'"\\"" {grammar.repeat(character, 0, _THOUGHT_LIMIT)} "\\""')
    unit = grammar.rule("toml-unit", f'"\\""{{0,2}} ({character_class(_PLAIN)} | "\\n" | {escape})')
    block = grammar.rule("toml-block", f'"\\"\\"\\"" {grammar.repeat(unit, 0, _THOUGHT_LIMIT)} "\\"\\"\\""')
    return line, block


_PLAIN = without(ALL, (*without(CONTROLS, character_set("\t")), *character_set('"\\')))
_ESCAPE = '"\\\\" [btnfr\\"\\\\] | "\\\\u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})'
