"""Twenty documents of FastAPI become tools, and their servers accept the calls that schemathesis invents."""

from __future__ import annotations

import json
import warnings
from typing import Any

import httpx2
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.openapi.servers import serving
from toolwire import ToolRegistry

EXAMPLES = 2
"""Calls of each operation."""
APPS = 20


def cases_of(document: dict[str, Any]) -> dict[str, list[Any]]:
    """Cases of each operation, by `METHOD /path`."""
    # Each worker of the suite collects this file, and the import takes seconds.
    from schemathesis import openapi as drawn_from

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


def test_twenty_servers_accept_the_calls_of_their_documents() -> None:
    from fastapi import FastAPI

    from tests.openapi.apps import WRITTEN, invented

    root = FastAPI()
    apps = [make() for make in WRITTEN] + invented(APPS - len(WRITTEN))
    for number, app in enumerate(apps):
        root.mount(f"/a{number}", app)
    uploads = {"POST /upload"}
    with serving(root) as url:
        for number in range(APPS):
            assert call_all(f"{url}/a{number}/openapi.json") <= uploads, number


def call_all(source: str) -> set[str]:
    """Makes all calls of a document, and returns the operations that are no tools."""
    document = httpx2.get(source).json()
    registry = ToolRegistry()
    names = registry.register_openapi(source, permission="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = cases_of(document)
    specs = {registry.get_tool(name).__tool__().title: registry.get_tool(name) for name in names}
    for title, spec in specs.items():
        assert cases[title], title
        for case in cases[title]:
            arguments = arguments_of(case, spec.input_schema["properties"])
            result = registry.invoke(spec.name, arguments)
            assert result.success, (title, arguments, result.text)
    return cases.keys() - specs.keys()
