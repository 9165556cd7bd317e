"""The known mistakes of models in programs, each with the sentence for the model.

A text is a template for the groups of its pattern, or a function of the match and the scene. The function returns an
empty text when the mistake does not apply. The order counts: the first mistake with a text wins.
"""

import dis
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from . import scene
from .scene import Scene, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake that models make.

    Attributes:
        name: Its name, here and in tests.
        error: Name of the exception that it causes, or several with spaces between.
        pattern: Pattern of the exception's message; searched, not matched.
        text: The hint; a function returns an empty text when the mistake does not apply.
    """

    name: str
    error: str
    pattern: str
    text: Text


_OPEN_TEXT = "A text over several lines stands between two triple quotes, and the closing one is missing."
_AWAIT = "A call in async code is awaited: write `await` before it."
_NAME = r"name '(\w+)' is not defined"

MISTAKES: tuple[Mistake, ...] = (
    # Names
    Mistake(name="json_constant", error="NameError", pattern=_NAME, text=scene.constant),
    Mistake(name="tools_holder", error="NameError", pattern=_NAME, text=scene.holder),
    Mistake(name="absent_module", error="NameError", pattern=_NAME, text=scene.elsewhere),
    Mistake(name="misspelt_tool", error="NameError", pattern=_NAME, text=scene.tool),
    Mistake(name="member_without_module", error="NameError", pattern=_NAME, text=scene.member),
    Mistake(name="group_of_tools", error="NameError", pattern=_NAME, text=scene.group),
    Mistake(name="misspelt_variable", error="NameError", pattern=_NAME, text=scene.variable),
    Mistake(name="unknown_tool", error="NameError", pattern=_NAME, text=scene.no_such_name),
    Mistake(
        name="local_before_assignment",
        error="UnboundLocalError",
        pattern=r"local variable '(\w+)'",
        text="The function assigns `{0}` itself, so it is a variable of its own. Write `global {0}` as its first line.",
    ),
    # Tools called the wrong way
    Mistake(
        name="missing_argument", error="TypeError", pattern=r"^(\w+)\(\) missing \d+ required", text=scene.signature
    ),
    Mistake(
        name="unexpected_argument", error="TypeError", pattern=r"^(\w+)\(\) got an unexpected", text=scene.signature
    ),
    Mistake(name="argument_twice", error="TypeError", pattern=r"^(\w+)\(\) got multiple values", text=scene.signature),
    Mistake(
        name="too_many_arguments", error="TypeError", pattern=r"^(\w+)\(\) takes .* positional", text=scene.signature
    ),
    # Async code
    Mistake(name="await_forgotten", error="TypeError AttributeError", pattern=r"'?coroutine'? object", text=_AWAIT),
    Mistake(
        name="await_forgotten_for_task",
        error="TypeError AttributeError",
        pattern=r"'(_asyncio\.)?_?(Task|Future|GatheringFuture)' object",
        text=_AWAIT,
    ),
    Mistake(
        name="run_inside_async",
        error="RuntimeError",
        pattern=r"asyncio\.run\(\) cannot be called",
        text="The program is async already: write `await main()` instead of `asyncio.run(main())`.",
    ),
    Mistake(
        name="await_in_plain_function",
        error="SyntaxError",
        pattern=r"'await' outside async function",
        text="`await` stands at the top of the program or in an `async def`. Tools can be called without.",
    ),
    Mistake(
        name="list_not_unpacked",
        error="TypeError",
        pattern=r"a (list|tuple) of awaitables cannot be awaited",
        text="Unpack it: `await asyncio.gather(*tasks)`.",
    ),
    # Values
    Mistake(
        name="attribute_of_dict",
        error="AttributeError",
        pattern=r"'dict' object has no attribute '(\w+)'",
        text="It is a dict: write `value['{0}']`.",
    ),
    Mistake(
        name="attribute_of_list",
        error="AttributeError",
        pattern=r"'list' object has no attribute '(\w+)'",
        text="It is a list: loop over it, or take one item, as `value[0]`.",
    ),
    Mistake(
        name="nothing_used",
        error="TypeError AttributeError",
        pattern=r"'NoneType' object",
        text="The value is None: the function or lookup that gave it found nothing. Check for None first.",
    ),
    Mistake(name="misspelt_key", error="KeyError", pattern=r"^'(.*)'$", text=scene.missing_key),
    Mistake(name="index_out_of_range", error="IndexError", pattern=r"index out of range", text=scene.length),
    Mistake(
        name="text_as_object",
        error="TypeError",
        pattern=r"string indices must be integers",
        text="The value is text. If it is JSON, read it with `json.loads(value)` first.",
    ),
    Mistake(
        name="list_by_key",
        error="TypeError",
        pattern=r"list indices must be integers or slices, not str",
        text="The value is a list: loop over it, or take one item first, as `value[0]['key']`.",
    ),
    Mistake(
        name="text_plus_number",
        error="TypeError",
        pattern=r"can only concatenate str|unsupported operand type\(s\) for \+: '\w+' and 'str'",
        text="Put values into text with an f-string: `f'{{name}}: {{value}}'`.",
    ),
    Mistake(
        name="naive_and_aware",
        error="TypeError",
        pattern=r"offset-naive and offset-aware",
        text="One of both has a time zone. Use `datetime.now(datetime.UTC)`, or `.replace(tzinfo=datetime.UTC)`.",
    ),
    Mistake(
        name="not_hashable",
        error="TypeError",
        pattern=r"unhashable type: '(\w+)'",
        text="A {0} cannot be a key or a set's member. Use a tuple, or text such as `json.dumps(value)`.",
    ),
    Mistake(
        name="module_called",
        error="TypeError",
        pattern=r"'module' object is not callable",
        text=scene.module_as_function,
    ),
    Mistake(
        name="module_as_value",
        error="TypeError",
        pattern=r"'module' object is not|\bof type 'module'|and 'module'|'module' and|not module\b",
        text=scene.module_as_value,
    ),
    Mistake(
        name="misspelt_member",
        error="AttributeError",
        pattern=r"module '(\w+)' has no attribute '(\w+)'",
        text=scene.attribute,
    ),
    # Standard library
    Mistake(
        name="value_read_as_json",
        error="TypeError",
        pattern=r"the JSON object must be str, bytes or bytearray, not (\w+)",
        text="It is a {0} already: leave out `json.loads`.",
    ),
    Mistake(
        name="not_json",
        error="JSONDecodeError",
        pattern=r"",
        text="The text is not JSON. Tools give Python values; `json.loads` is for text that is known to be JSON.",
    ),
    Mistake(
        name="no_json_form",
        error="TypeError",
        pattern=r"Object of type (\w+) is not JSON serializable",
        text="Assign the value to `__result__` as it is, or write `json.dumps(value, default=str)`.",
    ),
    Mistake(
        name="date_format",
        error="ValueError",
        pattern=r"time data .* does not match format|unconverted data remains",
        text="`datetime.parse(text)` reads every ISO 8601 form.",
    ),
    Mistake(
        name="mean_of_nothing",
        error="StatisticsError",
        pattern=r"at least (one|two) data point",
        text="The list holds too few values; check its length first.",
    ),
    Mistake(
        name="pattern_quoting",
        error="error PatternError",
        pattern=r"at position",
        text="Write patterns as raw text: r'\\d+'.",
    ),
    Mistake(
        name="endless_recursion",
        error="RecursionError",
        pattern=r"maximum recursion depth",
        text="A function calls itself without end, or a thousand levels deep. Write it as a loop.",
    ),
    # Things that a program does not have
    Mistake(
        name="asked_the_user",
        error="EOFError RuntimeError",
        pattern=r"input\(\) is not available",
        text="A program cannot ask the user. Write the value into the program, or end it and ask in your reply.",
    ),
    Mistake(
        name="opened_a_file",
        error="OSError",
        pattern=r"Too many open files|Operation not permitted|No such file or directory",
        text="A program has no files and no network; use the tools.",
    ),
    Mistake(
        name="result_no_data",
        error="TypeError",
        pattern=r"^__result__ holds (.*)",
        text="A result is made of None, bool, int, float, str, bytes, dates, list, tuple, set and dict.",
    ),
    # Text that is not a program
    Mistake(name="fence", error="SyntaxError", pattern=r"", text=scene.fence),
    Mistake(
        name="typographic_character",
        error="SyntaxError",
        pattern=r"invalid (?:(?:non-printable )?character .*U\+[0-9A-F]+|decimal literal)",
        text=scene.typographic,
    ),
    Mistake(
        name="return_at_top",
        error="SyntaxError",
        pattern=r"'return' outside function",
        text="Assign the result instead: `__result__ = ...`.",
    ),
    Mistake(
        name="unclosed_text",
        error="SyntaxError",
        pattern=r"unterminated string literal",
        text="A text that goes over several lines needs triple quotes; in others a line break is written \\n.",
    ),
    Mistake(name="unclosed_long_text", error="SyntaxError", pattern=r"unterminated triple-quoted", text=_OPEN_TEXT),
    Mistake(name="foreign_word", error="SyntaxError", pattern=r"", text=scene.foreign_word),
    Mistake(name="foreign_operator", error="SyntaxError", pattern=r"", text=scene.foreign_operator),
    Mistake(
        name="indentation",
        error="IndentationError",
        pattern=r"",
        text="Indent each block by four spaces, and the lines of one block alike.",
    ),
)


def hint(error: BaseException, scene: Scene) -> str:
    """Returns the probable intention and its remedy in a sentence or two; empty when no known mistake fits."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the program's own __str__ may do anything
        return ""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for mistake in MISTAKES:
        if kinds.isdisjoint(mistake.error.split()):
            continue
        found = re.search(mistake.pattern, message, re.DOTALL)
        text = "" if found is None else _mistake_text(mistake.text, found, scene)
        if text:
            return text
    return ""


def missing_result(names: Mapping[str, Any], code: CodeType) -> str:
    """Returns the notice for a program without output that assigned a name like `__result__`; else an empty text.

    `names` also holds tools, and what earlier programs left. `code` is the program's; it defines their functions too.
    """
    for name in ("result", "results", "_result", "__result", "_result_", "answer", "output"):
        if name in names and type(names[name]) is not FunctionType and _assigns(code, name):
            return (
                f"The program ended without output and without a result. It assigned `{name}`: "
                "write `__result__ = " + name + "`, or print it."
            )
    return ""


def _assigns(code: CodeType, name: str) -> bool:
    return any(
        one.opname in ("STORE_NAME", "STORE_GLOBAL") and one.argval == name for one in dis.get_instructions(code)
    )


def _mistake_text(text: Text, found: re.Match[str], scene: Scene) -> str:
    if callable(text):
        return text(found, scene)
    return text.format(*found.groups(), **found.groupdict())
