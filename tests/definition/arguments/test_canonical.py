"""No two values of one parameter share a digest, whatever its type is and does."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

import pytest
from pydantic import BaseModel

from tests.definition.arguments.generated_types import Types
from toolwire.definition.from_function import from_function
from toolwire.definition.shape import Validated
from toolwire.definition.tool import Tool, canonical
from toolwire.permission.condition import Condition
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.values import digest

TYPES = 1_500
VALUES = 20
"""For each type; every third is the one before with a small difference."""
PARTS = 4


def content(value: Any) -> str:
    """All that a value holds, as text: written without the code under test."""
    kind = type(value).__name__
    if hasattr(value, "get_secret_value"):
        return f"{kind}({content(value.get_secret_value())})"
    if isinstance(value, BaseModel):
        held = (vars(value), value.__pydantic_extra__ or {}, getattr(value, "__pydantic_private__", None) or {})
        return f"{kind}{id(type(value))}({content(list(held))})"
    if dataclasses.is_dataclass(value):
        slots = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{kind}({content({**slots, **getattr(value, '__dict__', {})})})"
    if isinstance(value, Mapping):
        held = cast("Mapping[Any, Any]", value)
        return f"{kind}{sorted((content(key), content(item)) for key, item in held.items())}"
    if isinstance(value, list | tuple):
        return f"{kind}{[content(item) for item in cast('list[Any]', value)]}"
    if isinstance(value, set | frozenset):
        return f"{kind}{sorted(content(item) for item in cast('set[Any]', value))}"
    return f"{kind}:{value!r}:{getattr(value, 'fold', '')}"


def tool_of(annotation: Any) -> Tool | None:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = annotation
    tool = from_function(take)
    try:
        tool.verify()
    except DefinitionError:
        return None
    return tool


def read(tool: Tool, given: Any) -> Validated | None:
    try:
        found = tool.validate({"value": given})
    except Exception:
        return None
    return found if isinstance(found, Validated) else None


def form_of(validated: Validated) -> dict[str, Any] | None:
    try:
        return canonical(validated)
    except Unrepresentable:
        return None


@pytest.mark.threat(66)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_two_values_of_generated_types_share_a_digest(part: int) -> None:
    types = Types(part)
    made = read_count = representable = 0
    while made < TYPES // PARTS * VALUES:
        annotation = types.make()
        tool = tool_of(annotation)
        if tool is None:
            continue
        forms: dict[str, dict[str, Any]] = {}
        contents: dict[str, set[str]] = defaultdict(set)
        value = None
        for place in range(VALUES):
            made += 1
            value = types.near(value) if place % 3 == 2 else types.fitting(annotation)
            validated = read(tool, value)
            if validated is None:
                continue
            read_count += 1
            form = form_of(validated)
            if form is None:
                continue
            representable += 1
            key = digest(form)
            forms[key] = form
            contents[key].add(content(validated.values["value"]))
        for key, held in contents.items():
            assert len(held) == 1, f"{annotation}: {forms[key]} stands for {held}"
        for key, form in forms.items():
            shown = Condition(path="/arguments", op="==", value=form)
            passing = [other for other in forms if other != key and shown.holds(forms[other]) is True]
            assert not passing, f"{annotation}: a decision about {form} lets {[forms[other] for other in passing]} run"
    assert read_count > 10_000 // PARTS, "the control: that many values are calls"
    assert representable > read_count // 3, "the control: many of the calls have a form"
