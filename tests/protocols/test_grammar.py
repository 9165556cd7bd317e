"""Grammars for constrained decoding: whatever they let a model write can be read and fits the tool's schema."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.protocols.grammar_matcher import Gbnf
from tests.protocols.grammar_tools import TOOLS, now, sampled, search
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.naming import program_name, program_parameter
from toolwire.definition.tool import Tool, Validated
from toolwire.facade.built_in.finish_tool import finish_entry
from toolwire.protocols import get
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError

PROTOCOLS = ["attp", "json", "xml"]
MUTATIONS = 200

Found = list[tuple[str, dict[str, Any]]]


@cache
def grammar(name: str) -> Gbnf:
    return Gbnf(get(name).grammar(TOOLS))


def calls_in(name: str, text: str, tools: list[Tool]) -> Found | None:
    """The calls that a reply makes; None when it cannot be read."""
    reply = get(name).parse(text, tools)
    if reply.is_refused or not reply.calls or any(not problem.repaired for problem in reply.problems):
        return None
    if name != "attp":
        return [(call.name, dict(call.arguments)) for call in reply.calls]
    programs = [call.arguments["code"] for call in reply.calls]
    assert [item.message for item in reply.problems] == _told(text, programs), text
    return [call for code in programs for call in program_calls(code, tools)]


def _told(text: str, programs: list[str]) -> list[str]:
    """What a reply of several programs is told: each runs, unless two of them are the same."""
    written = len(re.findall(r"^\[tool_call\]$", text, re.MULTILINE))
    several = f"[tool_call] stands {written} times: each program was run on its own."
    doubled = "The same program stands in several documents; it runs once."
    return [several] * (len(programs) > 1) + [doubled] * (len(programs) < written)


def program_calls(code: str, tools: list[Tool]) -> Iterator[tuple[str, dict[str, Any]]]:
    by_name = {program_name(tool.name): tool for tool in tools}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            tool = by_name[node.func.id]
            names = {program_parameter(parameter.name): parameter.name for parameter in tool.visible_parameters}
            given = zip(names.values(), (ast.literal_eval(value) for value in node.args), strict=False)
            named = {names.get(item.arg or "", item.arg or ""): ast.literal_eval(item.value) for item in node.keywords}
            yield tool.name, {**dict(given), **named}


def fits(found: Found | None, tools: list[Tool]) -> bool:
    by_name = {tool.name: tool for tool in tools}
    return bool(found) and all(
        name in by_name and isinstance(by_name[name].validate(arguments), Validated) for name, arguments in found or []
    )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_random_replies_are_read_as_calls_that_fit_the_schema(name: str, whole: bool) -> None:
    chance = random.Random(1)
    for _ in range(1_000 if whole else 200):
        text = _written(name, chance)
        assert fits(calls_in(name, text, TOOLS), TOOLS), text


def _written(name: str, chance: random.Random) -> str:
    """A random text, but none with a made-up key twice in one object: no grammar of this kind can forbid that."""
    while True:
        text = grammar(name).write(chance, extra=2)
        problems = get(name).parse(text, TOOLS).problems
        if not any(re.fullmatch(r"The key '.+' is given twice\. Write it once\.", item.message) for item in problems):
            return text


@pytest.mark.parametrize("name", PROTOCOLS)
def test_two_hundred_rendered_replies_are_accepted(name: str) -> None:
    chance = random.Random(1)
    for tools in chance.choices([[tool] for tool in TOOLS] + [TOOLS[:2], TOOLS[1:4]], k=200):
        calls = [ToolCall(tool.name, sampled(tool, chance)) for tool in tools if _is_writable(name, tool)]
        if calls:
            text = str(get(name).render(calls))
            assert grammar(name).accepts(text), text


@pytest.mark.parametrize("name", PROTOCOLS)
def test_two_hundred_mutated_replies_are_refused(name: str) -> None:
    chance = random.Random(2)
    for number in range(MUTATIONS):
        text = _mutated_text(name, chance) if number % 2 else _mutated_call(name, chance)
        assert not grammar(name).accepts(text), text


def _is_writable(name: str, tool: Tool) -> bool:
    # `render` is not told of the tools, so it cannot know which arguments go by position.
    return name != "attp" or tool.name != "place"


def _mutated_text(name: str, chance: random.Random) -> str:
    """A rendered reply that lost its end, or has something before or after it, or another tool's name."""
    tool = chance.choice([tool for tool in TOOLS if tool.name != "place"])
    text = str(get(name).render([ToolCall(tool.name, sampled(tool, chance))])).strip()
    return chance.choice(
        [
            text[: chance.randint(1, len(text) - 3)],
            f"Sure. {text}",
            f"```\n{text}\n```",
            f"{text} Done.",
            str(get(name).render([ToolCall(f"{tool.name}_2", sampled(tool, chance))])),
        ]
    )


def _mutated_call(name: str, chance: random.Random) -> str:
    """A reply whose arguments do not fit: one is missing, unknown, or of a wrong kind."""
    while True:
        tool = chance.choice([tool for tool in TOOLS if tool.name not in ("place", "shapes")])
        arguments = sampled(tool, chance)
        key = chance.choice([*arguments, "unknown"])
        match chance.randint(0, 2):
            case 0:
                arguments.pop(key, None)
            case 1:
                arguments["unknown"] = 1
            case _:
                arguments[key] = chance.choice([None, "zz", -99_999.5, [[]], {"q": 1}, 10**20])
        text = str(get(name).render([ToolCall(tool.name, arguments)]))
        if not fits(calls_in(name, text, TOOLS), TOOLS):
            return text


@pytest.mark.parametrize("name", PROTOCOLS)
def test_several_calls_fit_in_one_reply(name: str) -> None:
    calls = [ToolCall("search", {"query": f"q{number}", "limit": number}) for number in range(8)]
    assert grammar(name).accepts(str(get(name).render(calls)))
    assert not grammar(name).accepts(str(get(name).render([*calls, calls[0]])))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tools_that_cannot_be_called_have_no_grammar(name: str) -> None:
    never = from_schema("never", "", {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]})
    with pytest.raises(ConfigurationError) as caught:
        get(name).grammar([never])
    assert str(caught.value) == "a grammar needs a tool that can be called: 1 were given, and none of them can"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_grammar_names_every_rule_that_it_uses_and_stays_in_bounds(name: str) -> None:
    text = get(name).grammar(TOOLS)
    assert text == get(name).grammar(TOOLS)
    assert Gbnf(text).rules.keys() >= {"root", "call-search", "call-shapes"}
    assert "*" not in "".join(part for part in text.split('"')[::2])


PROGRAMS = [
    "__result__ = search('Oslo')\n",
    "__result__ = search('Oslo'), now()\n",
    'result = search("a")\nresult_2 = search("b")\n__result__ = [result, result_2]\n',
    '__result__ = search(query="it\'s", limit=3)\n',
    '__result__ = search("""two\nlines, it\'s "so"\n""")\n',
    '__result__ = search(r"\\d+", exact=True)\n',
    "__result__ = [\n    search('a'),\n    now(),\n]\n".replace(",\n]", "\n]"),
    "__result__ = {'a': search('a'), \"b\": now()}\n",
    'result = search("a")\n__result__ = result\n',
    'first = search("a")\nsecond = search("b")\n__result__ = [first, second]\n',
    'result_1 = search("a")\nresult_2 = now()\n__result__ = {"a": result_1, "b": result_2}\n',
    'search_result = search("a")\nnow_result = now()\n__result__ = {"search": search_result, "now": now_result}\n',
]
REFUSED = [
    "__result__ = search('')\n",
    "__result__ = search('a''b')\n",
    "__result__ = search(\"a''b\")\n",
    "__result__ = search('it\\'')\n",
    "__result__ = search('''a''')\n",
    "__result__ = search('a', 3, limit=3)\n",
    "__result__ = search(exact=True, limit=3)\n",
    "__result__ = search(limit=3, query='a')\n",
    "__result__ = search('a', limit=03)\n",
    "__result__ = search('a', limit='3')\n",
    "__result__ = find('a')\n",
    "import os\n__result__ = search('a')\n",
    "__result__ = second\n",
    "first = search('a')\n__result__ = [first, second]\n",
    "__result__ = search('a'",
]


def program(code: str) -> str:
    return f"thought = \"x\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"y\"\ncode = '''\n{code}'''\n"


@pytest.mark.parametrize("code", PROGRAMS)
def test_a_program_may_quote_and_name_as_models_do(code: str) -> None:
    assert Gbnf(get("attp").grammar([search, now])).accepts(program(code))


ONE_CALL = '__result__ = search(query="q")\n'
OTHER_FORMS = ['__result__ = [search(query="q")]\n', 'result = search(query="q")\n__result__ = result\n']


def several(*codes: str) -> str:
    thought = program("").partition("\n\n")[0]
    return "\n\n".join([thought, *(program(code).partition("\n\n")[2].strip() for code in codes)])


def test_a_reply_may_have_four_programs_of_one_call_and_a_fifth_is_refused() -> None:
    accepts = Gbnf(get("attp").grammar([search, now])).accepts
    accepted = [accepts(several(*[ONE_CALL] * count)) for count in range(6)]
    assert accepted == [False, True, True, True, True, False]


@pytest.mark.parametrize("code", OTHER_FORMS)
def test_a_call_cannot_be_written_once_more_in_another_form(code: str) -> None:
    accepts = Gbnf(get("attp").grammar([search, now])).accepts
    assert [accepts(several(code)), accepts(several(ONE_CALL, code)), accepts(several(code, ONE_CALL))] == [
        True,
        False,
        False,
    ]


def test_no_program_follows_one_that_may_end_the_turn() -> None:
    accepts = Gbnf(get("attp").grammar([search, FINISH])).accepts
    assert [accepts(several(*[ONE_CALL] * count)) for count in (1, 2)] == [True, False]


@pytest.mark.parametrize("code", REFUSED)
def test_a_program_that_would_end_early_or_not_run_is_refused(code: str) -> None:
    assert not Gbnf(get("attp").grammar([search, now])).accepts(program(code))


def test_a_spread_parameter_cannot_be_given_in_a_program() -> None:
    def gather(first: str, *rest: str, **more: str) -> None:
        """Gather."""

    accepts = Gbnf(get("attp").grammar([from_function(gather)])).accepts
    assert accepts(program('__result__ = gather("a")\n'))
    assert not accepts(program('__result__ = gather("a", "b")\n'))
    assert not accepts(program('__result__ = gather("a", b="b")\n'))


DOCUMENTS = [
    ('thought = """\n1. one\n2. "two"\n"""\n', True),
    ('thought = "a \\u4e2d \\\\ b"\n', True),
    ("", False),
    ('thought = "a\\qb"\n', False),
    ('thought = "a "b" c"\n', False),
]


@pytest.mark.parametrize(("thought", "is_accepted"), DOCUMENTS)
def test_a_thought_is_one_line_or_a_block(thought: str, is_accepted: bool) -> None:
    text = program(PROGRAMS[0]).replace('thought = "x"\n', thought)
    assert Gbnf(get("attp").grammar([search])).accepts(text) is is_accepted


def test_the_prompts_own_example_is_accepted() -> None:
    prompt = str(get("attp").describe([from_function(search, effects=["read"]), now]))
    example = prompt.rpartition("## Example that succeeds")[2].rpartition("Reply:\n")[2]
    assert "[tool_call]" in example
    assert Gbnf(get("attp").grammar([search, now])).accepts(example)


XML = "<tool_call>\n  <name>search</name>\n  <params>\n    <query><![CDATA[{}]]></query>\n  </params>\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "is_accepted"),
    [
        (XML.format("a < b && c"), True),
        (XML.format("a[0]"), True),
        (XML.format("a]]"), False),
        (XML.format("a]]>b"), False),
        (XML.format("a").removeprefix("<tool_call>\n  ").removesuffix("\n</tool_call>"), True),
        (XML.format("a").replace("</params>", "<limit><![CDATA[3]]></limit></params>"), True),
        (XML.format("a").replace("</params>", "<limit><![CDATA[three]]></limit></params>"), False),
        (XML.format("a").replace("<params>", "<params><limit><![CDATA[3]]></limit>"), False),
    ],
)
def test_a_call_in_xml_never_ends_its_cdata_early(text: str, is_accepted: bool) -> None:
    assert Gbnf(get("xml").grammar([search])).accepts(text) is is_accepted


JSON = '{"name": "search", "arguments": {"query": "a"}}'


@pytest.mark.parametrize(
    ("text", "is_accepted"),
    [
        (f"<tool_call>\n{JSON}\n</tool_call>", True),
        (JSON, False),
        (f"[{JSON}]", True),
        (f"[{JSON}, {JSON}]", True),
        (f"[{JSON}]".replace('"a"', '"\\u4e2d\\ud83d\\ude00 \\n"'), True),
        (f"[{JSON}]".replace('"a"', '"\\ud83d"'), False),
        (f"[{JSON}]".replace('"a"', "'a'"), False),
        (f"[{JSON}]".replace('"a"', '"a",'), False),
        (f"[{JSON}]".replace('"a"', '"a", "limit": 1.5'), False),
        (f"<tool_call>{JSON}", False),
    ],
)
def test_a_call_in_json_is_json(text: str, is_accepted: bool) -> None:
    assert Gbnf(get("json").grammar([search])).accepts(text) is is_accepted


FINISH = finish_entry("answer").tool


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_model_that_is_held_by_a_grammar_can_end(name: str) -> None:
    held = Gbnf(get(name).grammar([search, FINISH]))
    for calls in (
        [ToolCall("answer", {"answer": "x"})],
        [ToolCall("search", {"query": "q"}), ToolCall("answer", {"answer": "x"})],
    ):
        assert held.accepts(str(get(name).render(calls)))
    assert not Gbnf(get(name).grammar([search])).accepts(str(get(name).render([ToolCall("answer", {"answer": "x"})])))


ENDED = [
    'answer(answer="x")\n',
    'answer("x")\n',
    "answer(answer=[1, None])\n",
    'first = search(query="q")\nanswer(answer="x")\n',
]
NOT_ENDED = [
    "answer()\n",
    "answer(answer=x)\n",
    'answer(answer="x")\n__result__ = search(query="q")\n',
    'search(query="q")\n',
]


def test_a_program_of_a_grammar_may_end_with_the_call_as_its_last_line() -> None:
    held = Gbnf(get("attp").grammar([search, FINISH]))
    document = "thought = \"t\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"t\"\ncode = '''\n{}'''\n"
    assert [code for code in ENDED if not held.accepts(document.format(code))] == []
    assert [code for code in NOT_ENDED if held.accepts(document.format(code))] == []


def test_random_replies_of_a_grammar_with_an_end_are_read() -> None:
    for name in PROTOCOLS:
        held, chance = Gbnf(get(name).grammar([search, FINISH])), random.Random(3)
        for _ in range(50):
            text = held.write(chance, extra=2)
            assert fits(calls_in(name, text, [from_function(search), FINISH]), [from_function(search), FINISH]), text
