"""A call whose tool is a tag and whose parameters are tags inside it: `<read_file><path>a.txt</path></read_file>`.

Prompts of coding agents ask for this form. Models write it elsewhere too, with dots in the tool's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from toolwire.protocols.base import Refusal
from toolwire.protocols.foreign.call_shapes import NAME
from toolwire.protocols.reading.conversion import parameters_taking_tags
from toolwire.protocols.reading.incoming import line_of
from toolwire.protocols.reading.markup import OPENING
from toolwire.protocols.tool_names import KnownTools
from toolwire.protocols.xml.call_reader import refuse_lone_end, refuse_unclear_end
from toolwire.protocols.xml.element import ElementReader, Repairs
from toolwire.vocabulary.calls import Problem

_OPENS = re.compile(rf"<(?P<name>{NAME})>\s*+(?=<)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedCall:
    """A call as written."""

    name: str
    texts: dict[str, str]
    """The text of each parameter, by its name."""
    end: int
    """The position after the call."""
    problems: tuple[Problem, ...]


def read_tagged_call(text: str, position: int, known: KnownTools) -> TaggedCall | None:
    """Reads the call that begins at `position`. None if it has another form.

    It has one reading only if the outer tag is a tool and every inner tag is one of its parameters, without attributes.

    Raises:
        Refusal: A parameter is given twice, or its end is unclear.
    """
    opening = _OPENS.match(text, position)
    tool = known.find_name(opening["name"]) if opening else ""
    if opening is None or not tool:
        return None
    repairs = Repairs(text)
    elements = ElementReader(text, repairs)
    elements.names = parameters_taking_tags(known.schemas[tool])
    texts, end, closing = dict[str, str](), opening.end(), f"</{opening['name']}>"
    while not text.startswith(closing, end):
        parameter = OPENING.match(text, end)
        if parameter is None or parameter["name"] not in elements.names or parameter["attributes"]:
            return None
        name = parameter["name"]
        if name in texts:
            message = f"<{name}> is given twice in one call. Write it once; write a list as JSON."
            raise Refusal(message, place=line_of(text, parameter.start()))
        repaired = len(repairs.problems)
        texts[name], end = elements.value(name, parameter, name)
        find_place = partial(line_of, text, parameter.start())
        written = text[parameter.end() : end]
        if not written.endswith(f"</{name}>"):
            raise Refusal(f"<{name}> is not closed. Close each parameter.", place=find_place())
        refuse_unclear_end(name, texts[name], find_place, is_repaired=len(repairs.problems) > repaired)
        refuse_lone_end(name, written, find_place)
        end = elements.skip(end)
    if not texts:
        return None  # only the tool's tags, as prose mentions them
    return TaggedCall(name=tool, texts=texts, end=end + len(closing), problems=tuple(repairs.problems))
