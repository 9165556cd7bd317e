"""Twenty documents of FastAPI become tools, and their servers accept the calls that schemathesis invents."""

from __future__ import annotations

import json
import warnings
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import openapi as drawn_from

from tests.openapi.apps import WRITTEN, invented
from tests.openapi.servers import serving
from toolwire import ToolRegistry

EXAMPLES = 3
"""Calls of each operation."""
APPS = 20


def cases_of(document: dict[str, Any]) -> dict[str, list[Any]]:
    """Cases of each operation, by `METHOD /path`."""
    operations = [drawn.ok() for drawn in drawn_from.from_dict(document).get_all_operations()]
    return {f"{each.method.upper()} {each.path}": cases_of_operation(each) for each in operations}


def cases_of_operation(operation: Any) -> list[Any]:
    cases: list[Any] = []

    @seed(1)
    @settings(max_examples=EXAMPLES, phases=[Phase.generate], database=None, suppress_health_check=[*HealthCheck])
    @given(operation.as_strategy())
    def collect(case: Any) -> None:
        cases.append(case)

    collect()
    return cases


def arguments_of(case: Any, shown: dict[str, Any]) -> dict[str, Any]:
    """The arguments of one case, flat and typed as a model gives them. `shown` are the properties that it sees."""
    places = (case.path_parameters, case.query, case.headers, case.cookies)
    flat = {
        name: typed(value, shown[name]) for place in places for name, value in (place or {}).items() if name in shown
    }
    if type(case.body).__name__ == "NotSet":
        return flat
    whole = [name for name in ("body", "items", "number") if name in shown]
    if whole and not (isinstance(case.body, dict) and whole[0] in case.body):
        return {**flat, whole[0]: case.body}
    return flat | {name: value for name, value in case.body.items() if name in shown}


def typed(value: Any, schema: dict[str, Any]) -> Any:
    """The value before schemathesis wrote it as a text."""
    if isinstance(value, list):
        return [typed(item, schema.get("items", {})) for item in value]
    kinds = {one.get("type", "string") for one in schema.get("anyOf", [schema])}
    if "array" in kinds:
        return [typed(value, schema.get("items", {}))]
    is_text = "string" in kinds and not (value == "null" and "null" in kinds)
    return json.loads(value) if isinstance(value, str) and not is_text else value


@pytest.fixture(scope="module")
def served() -> Any:
    root = FastAPI()
    apps = [make() for make in WRITTEN] + invented(APPS - len(WRITTEN))
    for number, app in enumerate(apps):
        root.mount(f"/a{number}", app)
    with serving(root) as url:
        yield url


@pytest.mark.parametrize("number", range(APPS))
def test_a_server_accepts_the_calls_of_its_document(served: str, number: int) -> None:
    source = f"{served}/a{number}/openapi.json"
    document = httpx2.get(source).json()
    registry = ToolRegistry()
    names = registry.register_openapi(source, permission="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = cases_of(document)
    done = 0
    for name in names:
        spec = registry.get_tool(name)
        for case in cases[spec.__tool__().title]:
            arguments = arguments_of(case, spec.input_schema["properties"])
            result = registry.invoke(name, arguments)
            assert result.success, (spec.__tool__().title, arguments, result.text)
            done += 1
    assert done >= len(names)
    assert len(names) == len(cases) - (1 if number == 5 else 0)
