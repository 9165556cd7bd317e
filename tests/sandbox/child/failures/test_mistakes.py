"""The named mistakes, each made by a program and answered with its sentence."""

from __future__ import annotations

import pytest

from tests.sandbox.programs import Runner
from toolwire.sandbox.child.failures.mistakes import MISTAKES, hint
from toolwire.sandbox.child.failures.scene import Scene
from toolwire.sandbox.child.world.nearest import nearest

AWAIT = "A call in async code is awaited: write `await` before it."
ALL_TOOLS = (
    "`add(a: int, b: int)`, `search(query: str, limit: int = 10)`, `echo(value)`, "
    "`fail(type_name, message, family=...)`, `many_kinds(first, /, class_, *rest, flag, mode=..., **more)`"
)
MANY = "`many_kinds(first, /, class_, *rest, flag, mode=..., **more)`"
OPEN_TEXT = "A text over several lines stands between two triple quotes, and the closing one is missing."

PROGRAMS: list[tuple[str, str, str]] = [
    ("json_constant", "ok = true", "Python writes `True` where JSON and others write `true`."),
    ("json_constant", "echo(null)", "Python writes `None` where JSON and others write `null`."),
    (
        "tools_holder",
        "tools.search('x')",
        f"Tools are called by their plain names, without `tools.`: {ALL_TOOLS}.",
    ),
    (
        "absent_module",
        "np.mean([1])",
        "`np` is not available in a program. Use `math` and `statistics`; numbers in a list need no array.",
    ),
    ("member_without_module", "timedelta(days=1)", "Write `datetime.timedelta`."),
    ("member_without_module", "sqrt(4)", "Write `math.sqrt`."),
    ("member_without_module", "Counter('aab')", "Write `collections.Counter`."),
    ("member_without_module", "ZoneInfo('UTC')", "Write `zoneinfo.ZoneInfo`."),
    (
        "misspelt_tool",
        "seach('x')",
        "There is no `seach`. Did you mean the tool `search(query: str, limit: int = 10)`?",
    ),
    ("misspelt_variable", "results = []\nprint(reslts)", "There is no `reslts`. Did you mean `results`?"),
    (
        "unknown_tool",
        "delete_everything('/')",
        f"There is no tool `delete_everything`. The tools are {ALL_TOOLS}.",
    ),
    (
        "group_of_tools",
        "many(1)",
        f"There is no tool `many`. Call one of its tools: {MANY}.",
    ),
    (
        "group_of_tools",
        "many.sorts(1)",
        f"There is no tool `many`. Call one of its tools: {MANY}.",
    ),
    (
        "local_before_assignment",
        "total = 0\ndef f():\n    total += 1\nf()",
        "The function assigns `total` itself, so it is a variable of its own. Write `global total` as its first line.",
    ),
    ("missing_argument", "search()", "The tool is `search(query: str, limit: int = 10)`."),
    ("unexpected_argument", "search('x', max=3)", "The tool is `search(query: str, limit: int = 10)`."),
    ("argument_twice", "search('x', query='y')", "The tool is `search(query: str, limit: int = 10)`."),
    ("too_many_arguments", "search('x', 3, 4)", "The tool is `search(query: str, limit: int = 10)`."),
    ("await_forgotten", "async def f():\n    return [1]\nf()[0]", AWAIT),
    ("await_forgotten", "async def f():\n    return {}\nf().get('a')", AWAIT),
    ("await_forgotten_for_task", "task = asyncio.create_task(echo([1]))\nawait asyncio.sleep(0)\ntask[0]", AWAIT),
    (
        "run_inside_async",
        "async def main():\n    pass\nawait asyncio.sleep(0)\nasyncio.run(main())",
        "The program is async already: write `await main()` instead of `asyncio.run(main())`.",
    ),
    (
        "await_in_plain_function",
        "def f():\n    return await echo(1)",
        "`await` stands at the top of the program or in an `async def`. Tools can be called without.",
    ),
    (
        "list_not_unpacked",
        "await asyncio.gather([echo(1), echo(2)])",
        "Unpack it: `await asyncio.gather(*tasks)`.",
    ),
    ("attribute_of_dict", "search('x')[0].title", "It is a dict: write `value['title']`."),
    ("attribute_of_list", "search('x').get('title')", "It is a list: loop over it, or take one item, as `value[0]`."),
    (
        "nothing_used",
        "echo(None)['a']",
        "The value is None: the function or lookup that gave it found nothing. Check for None first.",
    ),
    (
        "misspelt_key",
        "row = search('x')[0]\nrow['titel']",
        "`row` has no key 'titel'. Did you mean 'title'? Its keys: 'title', 'rank'.",
    ),
    ("index_out_of_range", "rows = search('x')\nrows[7]", "`rows` has 2 items; check its length first."),
    (
        "text_as_object",
        "echo('{}')['a']",
        "The value is text. If it is JSON, read it with `json.loads(value)` first.",
    ),
    (
        "list_by_key",
        "search('x')['title']",
        "The value is a list: loop over it, or take one item first, as `value[0]['key']`.",
    ),
    ("text_plus_number", "'n = ' + 1", "Put values into text with an f-string: `f'{name}: {value}'`."),
    (
        "naive_and_aware",
        "datetime.now() < datetime.parse('2024-01-01T00:00:00Z')",
        "One of both has a time zone. Use `datetime.now(datetime.UTC)`, or `.replace(tzinfo=datetime.UTC)`.",
    ),
    (
        "not_hashable",
        "{{'a': 1}}",
        "A dict cannot be a key or a set's member. Use a tuple, or text such as `json.dumps(value)`.",
    ),
    (
        "module_called",
        "random()",
        "`random` is a module: call one of its functions, such as `random.random()`.",
    ),
    (
        "module_called",
        "copy({})",
        "`copy` is a module: call one of its functions, such as `copy.deepcopy(value)`.",
    ),
    ("module_called", "numbers(1)", "`numbers` is a module: call one of its functions."),
    (
        "module_as_value",
        "for day in calendar: pass",
        "`calendar` is the module here: the program gives the name no value of its own.",
    ),
    (
        "module_as_value",
        "total = numbers + 1",
        "`numbers` is the module here: the program gives the name no value of its own.",
    ),
    ("misspelt_member", "math.sqr(4)", "Did you mean `math.sqrt`?"),
    ("value_read_as_json", "json.loads(search('x'))", "It is a list already: leave out `json.loads`."),
    (
        "not_json",
        "json.loads('hello')",
        "The text is not JSON. Tools give Python values; `json.loads` is for text that is known to be JSON.",
    ),
    (
        "no_json_form",
        "json.dumps(datetime.now())",
        "Assign the value to `__result__` as it is, or write `json.dumps(value, default=str)`.",
    ),
    (
        "date_format",
        "datetime.strptime('2024-01-31', '%d.%m.%Y')",
        "`datetime.parse(text)` reads every ISO 8601 form.",
    ),
    ("mean_of_nothing", "statistics.mean([])", "The list holds too few values; check its length first."),
    ("pattern_quoting", "re.search('(', 'x')", "Write patterns as raw text: r'\\d+'."),
    (
        "endless_recursion",
        "def f():\n    return f()\nf()",
        "A function calls itself without end, or a thousand levels deep. Write it as a loop.",
    ),
    (
        "asked_the_user",
        "input('name?')",
        "A program cannot ask the user. Write the value into the program, or end it and ask in your reply.",
    ),
    (
        "opened_a_file",
        "globals()['__builtins__']['open']('/etc/hostname')",
        "A program has no files and no network; use the tools.",
    ),
    (
        "result_no_data",
        "__result__ = print",
        "A result is made of None, bool, int, float, str, bytes, dates, list, tuple, set and dict.",
    ),
    ("fence", "```python\nx = 1\n```", "Leave out the ``` fence: the code is the program itself."),
    (
        "typographic_character",
        "print(“x”)",
        "Use the plain characters of the keyboard for quotes, commas and brackets in code.",
    ),
    (
        "typographic_character",
        "add(1，2)",
        "Use the plain characters of the keyboard for quotes, commas and brackets in code.",
    ),
    ("return_at_top", "return 1", "Assign the result instead: `__result__ = ...`."),
    (
        "unclosed_text",
        "x = 'one\ntwo'",
        "A text that goes over several lines needs triple quotes; in others a line break is written \\n.",
    ),
    ("unclosed_long_text", "x = '''one\ntwo", OPEN_TEXT),
    ("foreign_word", "const x = 1", "`const` is not Python; write `name = value`."),
    ("foreign_word", "x = 1\nif x:\n    pass\nelse if x:\n    pass", "`else if` is not Python; write `elif`."),
    ("foreign_operator", "if 1 && 2: pass", "Python writes `and` where other languages write `&&`."),
    ("foreign_operator", "x = 0\nx++", "Python writes `+= 1` where other languages write `++`."),
    ("indentation", "if 1:\nprint(1)", "Indent each block by four spaces, and the lines of one block alike."),
]


@pytest.mark.parametrize(
    ("name", "source", "text"), PROGRAMS, ids=[f"{name}-{n}" for n, (name, _, _) in enumerate(PROGRAMS)]
)
def test_a_named_mistake_is_answered_with_its_sentence(run: Runner, name: str, source: str, text: str) -> None:
    error = run(source).error
    assert error is not None
    assert error.hint == text


@pytest.mark.parametrize(("line", "is_answered"), [("add(1，2)", True), ("x = 1abc", False), ("x = 1é", False)])
def test_a_typographic_character_that_is_taken_for_a_part_of_a_number(line: str, is_answered: bool) -> None:
    """As early releases of Python 3.11 say it."""
    scene = Scene(signatures={}, names={}, modules={}, line=line)
    assert hint(SyntaxError("invalid decimal literal"), scene).startswith("Use the plain") == is_answered


def test_every_named_mistake_is_made_above() -> None:
    assert {mistake.name for mistake in MISTAKES} == {name for name, _, _ in PROGRAMS}
    assert len(MISTAKES) >= 20


NO_HINT = [
    "1 / 0",
    "raise ValueError('my own')",
    "x = {}\nx['nothing at all']",
    "fail('RateLimited', 'slow down')",
    "nowhere.items()",
]


@pytest.mark.parametrize("source", NO_HINT[:2] + NO_HINT[3:])
def test_an_unclear_mistake_gets_no_hint(run: Runner, source: str) -> None:
    error = run(source).error
    assert error is not None
    assert error.hint == ""


def test_an_error_whose_text_cannot_be_had_has_no_hint() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert hint(Odd(), Scene(signatures={}, names={}, modules={})) == ""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("serach", "search"),
        ("Search", "search"),
        ("searchh", "search"),
        ("read_fle", "read_file"),
        ("zzz", ""),
        ("x", ""),
    ],
)
def test_the_nearest_name_is_close_or_none(name: str, found: str) -> None:
    assert nearest(name, ["search", "read_file", "list_files", "ab"]) == found


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("nope(1)", f"There is no tool `nope`. The tools are {ALL_TOOLS}."),
        ("nope.append(1)", ""),
        ("item = 3\nitm.append(1)", ""),
        ("items = []\nitms.append(1)", "There is no `itms`. Did you mean `items`?"),
        ("lent = 3\nlne([])", "There is no `lne`. Did you mean `len`?"),
        ("print(nope)", "There is no `nope`. Did you mean `None`?"),
    ],
)
def test_a_name_is_likened_only_to_what_can_be_used_in_its_place(run: Runner, source: str, text: str) -> None:
    error = run(source).error
    assert error is not None
    assert error.hint == text
