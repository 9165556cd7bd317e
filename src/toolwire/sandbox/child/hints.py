"""What a program probably meant: the named mistakes and the sentence that each is answered with.

The first mistake whose exception and message fit, and whose text has something to say, gives the hint.
A text is a template for the groups of its pattern, or a function of the match and the scene.
"""

import builtins
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any, cast

from .imports import MODULES
from .nearest import nearest

_SHOWN_KEYS = 12
_SHOWN_TOOLS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where an exception happened."""

    signatures: Mapping[str, str]
    """Each tool's signature, by the name a program writes."""
    names: Mapping[str, Any]
    """The program's global names."""
    frame: FrameType | None = None
    """The innermost frame of the program; None when it never ran."""
    line: str = ""
    """The line of the program."""


Text = str | Callable[[re.Match[str], Scene], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing that models get wrong."""

    name: str
    """What it is called, here and in tests."""
    error: str
    """Name of the exception it shows as, or several with spaces between."""
    pattern: str
    """What the exception's message looks like; searched, not matched."""
    text: Text
    """The hint; empty when it turns out to be something else."""


def hint(error: BaseException, scene: Scene) -> str:
    """What was probably meant, in a sentence or two; empty when we cannot tell."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the program's own __str__ may do anything
        return ""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for mistake in MISTAKES:
        if kinds.isdisjoint(mistake.error.split()):
            continue
        found = re.search(mistake.pattern, message, re.DOTALL)
        text = "" if found is None else _text(mistake.text, found, scene)
        if text:
            return text
    return ""


def missing_result(names: Mapping[str, Any]) -> str:
    """The notice for a program that ended with nothing to show although it assigned something that looks like it."""
    for name in ("result", "results", "_result", "__result", "_result_", "answer", "output"):
        if name in names:
            return (
                f"The program ended without output and without a result. It assigned `{name}`: "
                "write `__result__ = " + name + "`, or print it."
            )
    return ""


def _text(text: Text, found: re.Match[str], scene: Scene) -> str:
    if callable(text):
        return text(found, scene)
    return text.format(*found.groups(), **found.groupdict())


_CONSTANTS = {
    "true": "True",
    "false": "False",
    "null": "None",
    "nil": "None",
    "undefined": "None",
    "NaN": "math.nan",
    "nan": "math.nan",
    "inf": "math.inf",
    "Infinity": "math.inf",
}
_ELSEWHERE = {
    "np": "Use `math` and `statistics`; numbers in a list need no array.",
    "numpy": "Use `math` and `statistics`; numbers in a list need no array.",
    "pd": "Use lists of dicts, and `statistics` for figures.",
    "pandas": "Use lists of dicts, and `statistics` for figures.",
    "time": "Use `datetime.now()` for the time and `await asyncio.sleep(seconds)` to wait.",
    "collections": "Use a dict: `counts[key] = counts.get(key, 0) + 1`.",
    "defaultdict": "Use a dict: `groups.setdefault(key, []).append(value)`.",
    "Counter": "Use a dict: `counts[key] = counts.get(key, 0) + 1`.",
    "itertools": "Write the loop out.",
    "functools": "Write the loop out.",
    "os": "A program has no files and no system; use the tools.",
    "sys": "A program has no files and no system; use the tools.",
    "pathlib": "A program has no files and no system; use the tools.",
    "Path": "A program has no files and no system; use the tools.",
    "requests": "A program has no network; use the tools.",
    "urllib": "A program has no network; use the tools.",
}
_HOLDERS = frozenset({"tools", "tool", "functions", "self", "api", "client", "toolkit"})


def _constant(found: re.Match[str], _: Scene) -> str:
    meant = _CONSTANTS.get(found[1])
    return f"Python writes `{meant}` where JSON and others write `{found[1]}`." if meant else ""


def _elsewhere(found: re.Match[str], _: Scene) -> str:
    meant = _ELSEWHERE.get(found[1])
    return f"`{found[1]}` is not available in a program. {meant}" if meant else ""


def _holder(found: re.Match[str], scene: Scene) -> str:
    if found[1] not in _HOLDERS or not scene.signatures:
        return ""
    return f"Tools are called by their plain names, without `{found[1]}.`: {_tools(scene)}."


def _tool(found: re.Match[str], scene: Scene) -> str:
    close = nearest(found[1], scene.signatures)
    return f"There is no `{found[1]}`. Did you mean the tool `{scene.signatures[close]}`?" if close else ""


def _member(found: re.Match[str], scene: Scene) -> str:
    for module in MODULES:
        if hasattr(scene.names.get(module), found[1]):
            return f"Write `{module}.{found[1]}`."
    return ""


def _variable(found: re.Match[str], scene: Scene) -> str:
    local: Any = scene.frame.f_locals if scene.frame is not None else {}
    known = [name for name in (*local, *scene.names, *dir(builtins)) if not name.startswith("_") and name.isidentifier()]
    close = nearest(found[1], known)
    return f"There is no `{found[1]}`. Did you mean `{close}`?" if close else ""


def _no_such_name(found: re.Match[str], scene: Scene) -> str:
    if re.search(rf"(?<![\w.]){re.escape(found[1])}\s*\(", scene.line) and scene.signatures:
        return f"There is no tool `{found[1]}`. The tools are {_tools(scene)}."
    return ""


def _signature(found: re.Match[str], scene: Scene) -> str:
    signature = scene.signatures.get(found[1])
    return f"The tool is `{signature}`." if signature else ""


def _subscript(scene: Scene) -> tuple[str, Any]:
    """The name before the line's only subscript or attribute that leads to a container, and what it holds."""
    if scene.frame is None:
        return "", None
    values: Any = {**scene.names, **scene.frame.f_locals}
    for name in re.findall(r"\b([A-Za-z_]\w*)\s*\[", scene.line):
        if name in values and isinstance(values[name], dict | list | tuple | str):
            return name, values[name]
    return "", None


def _key(found: re.Match[str], scene: Scene) -> str:
    name, value = _subscript(scene)
    if not isinstance(value, dict):
        return ""
    value = cast("dict[Any, Any]", value)
    key = found[1]
    keys = [str(item) for item in value]
    if key in keys:
        return ""
    close = nearest(key, keys)
    shown = ", ".join(map(repr, list(value)[:_SHOWN_KEYS])) or "none"
    return f"`{name}` has no key {key!r}.{f' Did you mean {close!r}?' if close else ''} Its keys: {shown}."


def _length(_: re.Match[str], scene: Scene) -> str:
    name, value = _subscript(scene)
    if not isinstance(value, list | tuple | str):
        return ""
    size = len(cast("list[Any]", value))
    return f"`{name}` has {size} {'item' if size == 1 else 'items'}; check its length first."


def _attribute(found: re.Match[str], scene: Scene) -> str:
    module = scene.names.get(found[1])
    if not isinstance(module, ModuleType):
        return ""
    close = nearest(found[2], dir(module))
    return f"Did you mean `{found[1]}.{close}`?" if close else f"`{found[1]}` has no `{found[2]}`."


def _called_module(_: re.Match[str], scene: Scene) -> str:
    for module in MODULES:
        if re.search(rf"\b{module}\s*\(", scene.line):
            return f"`{module}` is a module: call one of its functions, such as `{module}.{_USUAL[module]}`."
    return ""


_USUAL = {
    "math": "sqrt(x)",
    "json": "dumps(value)",
    "datetime": "now()",
    "re": "findall(pattern, text)",
    "random": "random()",
    "statistics": "mean(values)",
    "asyncio": "gather(...)",
}


def _fence(_: re.Match[str], scene: Scene) -> str:
    return "Leave out the ``` fence: the code is the program itself." if scene.line.lstrip().startswith("```") else ""


def _foreign_operator(_: re.Match[str], scene: Scene) -> str:
    for sign, meant in (("&&", "and"), ("||", "or"), ("!", "not"), ("++", "+= 1"), ("?.", "if ... is not None")):
        if sign in scene.line.replace("!=", ""):
            return f"Python writes `{meant}` where other languages write `{sign}`."
    return ""


def _foreign_word(_: re.Match[str], scene: Scene) -> str:
    found = re.match(r"\s*(const|let|var|function|new|switch|else if)\b", scene.line)
    meant = {"function": "def", "else if": "elif", "switch": "match"}
    if found is None:
        return ""
    word = found[1]
    return f"`{word}` is no Python; write {f'`{meant[word]}`' if word in meant else '`name = value`'}."


def _fenced_triple(_: re.Match[str], scene: Scene) -> str:
    return "A text over several lines stands between two triple quotes, and the closing one is missing."


def _tools(scene: Scene) -> str:
    shown = [f"`{signature}`" for signature in list(scene.signatures.values())[:_SHOWN_TOOLS]]
    more = len(scene.signatures) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


_AWAIT = "A call in async code is awaited: write `await` before it."
_NAME = r"name '(\w+)' is not defined"

MISTAKES: tuple[Mistake, ...] = (
    # Names
    Mistake(name="json_constant", error="NameError", pattern=_NAME, text=_constant),
    Mistake(name="tools_holder", error="NameError", pattern=_NAME, text=_holder),
    Mistake(name="absent_module", error="NameError", pattern=_NAME, text=_elsewhere),
    Mistake(name="member_without_module", error="NameError", pattern=_NAME, text=_member),
    Mistake(name="misspelt_tool", error="NameError", pattern=_NAME, text=_tool),
    Mistake(name="misspelt_variable", error="NameError", pattern=_NAME, text=_variable),
    Mistake(name="unknown_tool", error="NameError", pattern=_NAME, text=_no_such_name),
    Mistake(
        name="local_before_assignment",
        error="UnboundLocalError",
        pattern=r"local variable '(\w+)'",
        text="The function assigns `{0}` itself, so it is its own variable there. Write `global {0}` as its first line.",
    ),
    # Tools called the wrong way
    Mistake(name="missing_argument", error="TypeError", pattern=r"^(\w+)\(\) missing \d+ required", text=_signature),
    Mistake(name="unexpected_argument", error="TypeError", pattern=r"^(\w+)\(\) got an unexpected", text=_signature),
    Mistake(name="argument_twice", error="TypeError", pattern=r"^(\w+)\(\) got multiple values", text=_signature),
    Mistake(name="too_many_arguments", error="TypeError", pattern=r"^(\w+)\(\) takes .* positional", text=_signature),
    # Async code
    Mistake(name="await_forgotten", error="TypeError AttributeError", pattern=r"'?coroutine'? object", text=_AWAIT),
    Mistake(name="await_forgotten_for_task", error="TypeError AttributeError", pattern=r"'_?(Task|Future|GatheringFuture)' object", text=_AWAIT),
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
        text="`await` stands at the top of the program or in an `async def`. Leave it out here: tools can be called without.",
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
        text="The value is None: what gave it found or returned nothing. Check for None first.",
    ),
    Mistake(name="misspelt_key", error="KeyError", pattern=r"^'(.*)'$", text=_key),
    Mistake(name="index_out_of_range", error="IndexError", pattern=r"index out of range", text=_length),
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
        pattern=r"can only concatenate str \(not \"(\w+)\"\) to str|unsupported operand type\(s\) for \+: '\w+' and 'str'",
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
    Mistake(name="module_called", error="TypeError", pattern=r"'module' object is not callable", text=_called_module),
    Mistake(
        name="misspelt_member",
        error="AttributeError",
        pattern=r"module '(\w+)' has no attribute '(\w+)'",
        text=_attribute,
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
    Mistake(name="pattern_quoting", error="error PatternError", pattern=r"at position", text="Write patterns as raw text: r'\\d+'."),
    Mistake(
        name="endless_recursion",
        error="RecursionError",
        pattern=r"maximum recursion depth",
        text="A function calls itself without end, or a thousand levels deep. Write it as a loop.",
    ),
    # What a program does not have
    Mistake(
        name="asked_the_user",
        error="EOFError RuntimeError",
        pattern=r"nobody answers input\(\)",
        text="A program cannot ask the user. Write the value into the program, or end it and ask in your reply.",
    ),
    Mistake(
        name="opened_a_file",
        error="OSError",
        pattern=r"Too many open files",
        text="A program has no files and no network; use the tools.",
    ),
    Mistake(
        name="result_no_data",
        error="TypeError",
        pattern=r"^__result__ holds (.*)",
        text="A result is made of None, bool, int, float, str, bytes, dates, list, tuple, set and dict.",
    ),
    # Text that is no program
    Mistake(name="fence", error="SyntaxError", pattern=r"", text=_fence),
    Mistake(
        name="typographic_character",
        error="SyntaxError",
        pattern=r"invalid (?:non-printable )?character '?(.)?'? ?\(?(U\+[0-9A-F]+)",
        text="Use the plain characters of the keyboard for quotes, commas and brackets in code.",
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
    Mistake(name="unclosed_long_text", error="SyntaxError", pattern=r"unterminated triple-quoted", text=_fenced_triple),
    Mistake(name="foreign_word", error="SyntaxError", pattern=r"", text=_foreign_word),
    Mistake(name="foreign_operator", error="SyntaxError", pattern=r"", text=_foreign_operator),
    Mistake(
        name="indentation",
        error="IndentationError",
        pattern=r"",
        text="Indent each block by four spaces, and the lines of one block alike.",
    ),
)
