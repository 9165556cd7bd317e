"""A docstring parser for Google, NumPy, reST and Epydoc style, with English or Chinese headings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolwire.vocabulary.text import encodable_text

if TYPE_CHECKING:
    from docstring_parser import Docstring


@dataclass(frozen=True, slots=True, kw_only=True)
class Docs:
    """The parts of a function's docstring."""

    description: str = ""
    """The purpose: the first line, and the paragraphs before the first heading."""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """The text of each described parameter, by its name without asterisks."""
    returns: str = ""
    """The description of the return value. Continuation lines have no common indentation."""
    returns_type: str = ""
    """The type before that description; empty without one."""
    raises: tuple[tuple[str, str], ...] = ()
    """The name of each exception, and when it is raised."""
    examples: tuple[str, ...] = ()
    """The lines of each example section."""

    @property
    def summary(self) -> str:
        """The first paragraph of the description."""
        return self.description.split("\n\n", 1)[0]


def read_docstring(text: str | None, *, parse: bool = True) -> Docs:
    """Parses a docstring. With `parse=False`, the result is only its first paragraph, unchanged.

    A docstring that fits no style becomes the description as a whole.
    """
    cleaned = encodable_text(inspect.cleandoc(text)) if text else ""
    if not cleaned:
        return Docs()
    if not parse:
        return Docs(description=cleaned.split("\n\n", 1)[0])
    # Imported here: it costs as much as everything else in this folder together.
    import docstring_parser

    try:
        return _docs(docstring_parser.parse(_in_english(_under_its_heading(cleaned))))
    except docstring_parser.ParseError:
        return Docs(description=cleaned)


def _docs(parsed: Docstring) -> Docs:
    gap = "\n\n" if parsed.blank_after_short_description else "\n"
    returned = parsed.returns
    description = gap.join(part for part in (parsed.short_description, parsed.long_description) if part)
    return Docs(
        description="" if description == _NO_DESCRIPTION else description,
        parameters={item.arg_name.lstrip("*"): item.description or "" for item in parsed.params},
        returns=(returned.description or "") if returned else "",
        returns_type=(returned.type_name or "") if returned else "",
        raises=tuple((item.type_name or "", item.description or "") for item in parsed.raises),
        examples=tuple(
            "\n".join(part for part in (item.snippet, item.description) if part) for item in parsed.examples
        ),
    )


_HEADINGS = {
    "Args": "参数|參數|入参|形参|参数说明",
    "Returns": "返回|返回值|返回结果|傳回|回傳",
    "Yields": "产出|生成",
    "Raises": "异常|抛出|引发|抛出异常|例外|異常",
    "Example": "示例|例子|例|范例|用法示例|使用示例|範例",
}
_ENGLISH = {word: heading for heading, words in _HEADINGS.items() for word in words.split("|")}
_HEADING = re.compile(rf"(?:{'|'.join(sorted(_ENGLISH, key=len, reverse=True))}|[A-Z][a-z]+)[ \t]*[:：][ \t]*")
_NAME_THEN_COLON = re.compile(r"([*\w.]+(?:[ \t]*[(（][^()（）]*[)）])?)[ \t]*：[ \t]*")
_TYPE_THEN_COLON = re.compile(r"([A-Za-z_][\w.]*(?:\[[^：]*\])?)[ \t]*：[ \t]*")


def _in_english(text: str) -> str:
    """Converts headings, and the colons after names, to the form that the parser knows. All other text is unchanged."""
    heading, lines, indent = "", list[str](), -1
    for line in text.split("\n"):
        body = line.lstrip()
        if body == line and _HEADING.fullmatch(line):
            word = line.rstrip().rstrip(":：").rstrip()
            heading, indent = _ENGLISH.get(word, word), -1
            lines.append(f"{heading}:")
            continue
        if body:
            indent = len(line) - len(body) if indent < 0 else indent
            if heading and len(line) - len(body) == indent:
                line = line[:indent] + _ascii_colon(body, heading)
        lines.append(line)
    return "\n".join(lines)


_NO_DESCRIPTION = "."


def _under_its_heading(text: str) -> str:
    """Restores the indentation below a heading in the first line.

    `inspect.cleandoc` removes that indentation, here and in the parser, unless a line precedes the heading.
    """
    first, _, rest = text.partition("\n")
    following = rest.lstrip("\n").partition("\n")[0]
    if not _HEADING.fullmatch(first) or not following or _HEADING.fullmatch(following):
        return text
    indented = rest if following.startswith(" ") else textwrap.indent(rest, "    ")
    return f"{_NO_DESCRIPTION}\n\n{first}\n{indented}"


def _ascii_colon(body: str, heading: str) -> str:
    if heading in ("Args", "Arguments", "Parameters", "Params", "Raises", "Exceptions"):
        return _NAME_THEN_COLON.sub(r"\1: ", body, count=1) if _NAME_THEN_COLON.match(body) else body
    if heading in ("Returns", "Yields"):
        return _TYPE_THEN_COLON.sub(r"\1: ", body, count=1) if _TYPE_THEN_COLON.match(body) else body
    return body
