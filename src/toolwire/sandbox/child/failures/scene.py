"""The place of an exception in a program, and the functions that make hints from it."""

import builtins
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any, cast

from ..world.imports import MODULES, modules_text
from ..world.nearest import nearest
from .nearest_name import nearest_name

_SHOWN_KEYS = 12
_SHOWN_TOOLS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The place of an exception.

    Attributes:
        signatures: The signature of each tool that a hint may name, by the name that a program writes.
        names: The program's global names.
        modules: The modules that it may use, by the names that it writes.
        frame: The innermost frame of the program; None when it never ran.
        line: The line of the program.
        unnamed: The names of the tools that no hint may name.
    """

    signatures: Mapping[str, str]
    names: Mapping[str, Any]
    modules: Mapping[str, Any]
    frame: FrameType | None = None
    line: str = ""
    unnamed: Collection[str] = ()


Text = str | Callable[[re.Match[str], Scene], str]


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
    "os": "A program has no files and no system; use the tools.",
    "sys": "A program has no files and no system; use the tools.",
    "pathlib": "A program has no files and no system; use the tools.",
    "Path": "A program has no files and no system; use the tools.",
    "requests": "A program has no network; use the tools.",
    "urllib": "A program has no network; use the tools.",
}
_HOLDERS = frozenset({"tools", "tool", "functions", "self", "api", "client", "toolkit"})


def constant(found: re.Match[str], _: Scene) -> str:
    meant = _CONSTANTS.get(found[1])
    return f"Python writes `{meant}` where JSON and others write `{found[1]}`." if meant else ""


def elsewhere(found: re.Match[str], scene: Scene) -> str:
    if found[1] in MODULES and found[1] not in scene.modules:
        return f"This program may not use `{found[1]}`. It may use {modules_text(scene.modules)}."
    meant = _ELSEWHERE.get(found[1])
    return f"`{found[1]}` is not available in a program. {meant}" if meant else ""


def holder(found: re.Match[str], scene: Scene) -> str:
    if found[1] not in _HOLDERS or not scene.signatures:
        return ""
    return f"Tools are called by their plain names, without `{found[1]}.`: {_list_tools(scene)}."


def tool(found: re.Match[str], scene: Scene) -> str:
    close = nearest_name(found[1], scene.signatures)
    return f"There is no `{found[1]}`. Did you mean the tool `{scene.signatures[close]}`?" if close else ""


def member(found: re.Match[str], scene: Scene) -> str:
    for name, module in scene.modules.items():
        # Names of `operator` are common words: `add`, `index`, `contains`.
        if name != "operator" and found[1] in getattr(module, "__all__", dir(module)):
            return f"Write `{name}.{found[1]}`."
    return ""


def group(found: re.Match[str], scene: Scene) -> str:
    members = [text for name, text in scene.signatures.items() if name.startswith(f"{found[1]}_")]
    if members and re.search(rf"(?<![\w.]){re.escape(found[1])}\s*[.(]", scene.line):
        return f"There is no tool `{found[1]}`. Call one of its tools: {_list_signatures(members)}."
    return ""


def variable(found: re.Match[str], scene: Scene) -> str:
    local: Any = scene.frame.f_locals if scene.frame is not None else {}
    values: Any = {**vars(builtins), **scene.names, **local}
    known = [
        name
        for name in (*local, *scene.names, *dir(builtins))
        if not name.startswith("_")
        and name.isidentifier()
        and name not in scene.unnamed
        and _can_stand_for(values[name], found[1], scene)
    ]
    close = nearest(found[1], known)
    return f"There is no `{found[1]}`. Did you mean `{close}`?" if close else ""


def _can_stand_for(value: Any, name: str, scene: Scene) -> bool:
    """False if the line calls the name and the value is not callable, or if the value lacks the attribute."""
    used = re.search(rf"(?<![\w.]){re.escape(name)}\s*(\(|\.\s*(\w+))", scene.line)
    if used is None:
        return True
    if not used[2]:
        return callable(value)
    # Neither runs a property of the program.
    return hasattr(cast("Any", type(value)), used[2]) or used[2] in getattr(value, "__dict__", ())


def no_such_name(found: re.Match[str], scene: Scene) -> str:
    if re.search(rf"(?<![\w.]){re.escape(found[1])}\s*\(", scene.line) and scene.signatures:
        return f"There is no tool `{found[1]}`. The tools are {_list_tools(scene)}."
    return ""


def signature(found: re.Match[str], scene: Scene) -> str:
    signature = scene.signatures.get(found[1])
    return f"The tool is `{signature}`." if signature else ""


def _subscript(scene: Scene) -> tuple[str, Any]:
    """Returns the first name on the line that is subscripted and holds a container, with its value; or "" and None."""
    if scene.frame is None:
        return "", None
    values: Any = {**scene.names, **scene.frame.f_locals}
    for name in re.findall(r"\b([A-Za-z_]\w*)\s*\[", scene.line):
        if name in values and isinstance(values[name], dict | list | tuple | str):
            return name, values[name]
    return "", None


def missing_key(found: re.Match[str], scene: Scene) -> str:
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


def length(_: re.Match[str], scene: Scene) -> str:
    name, value = _subscript(scene)
    if not isinstance(value, list | tuple | str):
        return ""
    size = len(cast("list[Any]", value))
    return f"`{name}` has {size} {'item' if size == 1 else 'items'}; check its length first."


def attribute(found: re.Match[str], scene: Scene) -> str:
    module = scene.modules.get(found[1], scene.names.get(found[1]))
    if not isinstance(module, ModuleType):
        return ""
    close = nearest(found[2], dir(module))
    return f"Did you mean `{found[1]}.{close}`?" if close else f"`{found[1]}` has no `{found[2]}`."


def module_as_function(_: re.Match[str], scene: Scene) -> str:
    name = next((name for name in scene.modules if re.search(rf"(?<![\w.]){name}\s*\(", scene.line)), "")
    if not name:
        return ""
    usual = f", such as `{name}.{_USUAL[name]}`" if name in _USUAL else ""
    return f"`{name}` is a module: call one of its functions{usual}."


def module_as_value(_: re.Match[str], scene: Scene) -> str:
    """For a name that the program never gave a value, so that it is the module of that name."""
    used = re.findall(r"(?<![\w.])[A-Za-z_]\w*", scene.line)
    name = next((name for name in used if name in scene.modules), "")
    return f"`{name}` is the module here: the program gives the name no value of its own." if name else ""


_USUAL = {
    "math": "sqrt(x)",
    "json": "dumps(value)",
    "datetime": "now()",
    "re": "findall(pattern, text)",
    "random": "random()",
    "statistics": "mean(values)",
    "asyncio": "gather(...)",
    "copy": "deepcopy(value)",
    "time": "time()",
    "pprint": "pformat(value)",
    "calendar": "monthrange(2024, 2)",
    "uuid": "uuid4()",
    "hashlib": "sha256(data)",
    "collections": "Counter(values)",
    "zoneinfo": "ZoneInfo('Europe/Paris')",
}


def fence(_: re.Match[str], scene: Scene) -> str:
    return "Leave out the ``` fence: the code is the program itself." if scene.line.lstrip().startswith("```") else ""


def typographic(found: re.Match[str], scene: Scene) -> str:
    # Early releases of 3.11 blame the number before such a character.
    if "literal" in found[0] and not re.search(r"\d[^\x00-\x7f\w]", scene.line):
        return ""
    return "Use the plain characters of the keyboard for quotes, commas and brackets in code."


def foreign_operator(_: re.Match[str], scene: Scene) -> str:
    for sign, meant in (("&&", "and"), ("||", "or"), ("!", "not"), ("++", "+= 1"), ("?.", "if ... is not None")):
        if sign in scene.line.replace("!=", ""):
            return f"Python writes `{meant}` where other languages write `{sign}`."
    return ""


def foreign_word(_: re.Match[str], scene: Scene) -> str:
    found = re.match(r"\s*(const|let|var|function|new|switch|else if)\b", scene.line)
    meant = {"function": "def", "else if": "elif", "switch": "match"}
    if found is None:
        return ""
    word = found[1]
    return f"`{word}` is not Python; write {f'`{meant[word]}`' if word in meant else '`name = value`'}."


def _list_tools(scene: Scene) -> str:
    return _list_signatures(list(scene.signatures.values()))


def _list_signatures(signatures: list[str]) -> str:
    shown = [f"`{signature}`" for signature in signatures[:_SHOWN_TOOLS]]
    more = len(signatures) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
