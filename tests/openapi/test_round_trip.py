"""Each kind of parameter and each style of a list reaches the server as OpenAPI says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.openapi.echo import Echo, body, client_of, document, parameter
from toolwire import ToolRegistry

LIST = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
OBJECT = {"type": "object", "properties": {"r": {"type": "integer"}, "g": {"type": "integer"}}}


def send(url: str, operation: dict[str, Any], arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The request that the server got for one call."""
    registry = ToolRegistry()
    [name] = registry.register_openapi(document(operation, **more), client=client_of(url), permission="auto")
    result = registry.invoke(name, arguments)
    assert result.success, result.text
    return result.data


QUERIES = [
    (parameter("q", "query"), "a b&c=ü", [["q", "a b&c=ü"]]),
    (parameter("q", "query", {"type": "boolean"}), True, [["q", "true"]]),
    (parameter("q", "query", {"type": "number"}), 1.5, [["q", "1.5"]]),
    (parameter("q", "query", LIST), ["a", "b,c"], [["q", "a"], ["q", "b,c"]]),
    (parameter("q", "query", NUMBERS), [1, 2], [["q", "1"], ["q", "2"]]),
    (parameter("q", "query", LIST, style="form", explode=False), ["a", "b"], [["q", "a,b"]]),
    (parameter("q", "query", LIST, style="spaceDelimited", explode=False), ["a", "b"], [["q", "a b"]]),
    (parameter("q", "query", LIST, style="pipeDelimited", explode=False), ["a", "b"], [["q", "a|b"]]),
    (parameter("q", "query", LIST), [], []),
    (
        parameter("q", "query", OBJECT, style="deepObject", explode=True),
        {"r": 1, "g": 2},
        [["q[r]", "1"], ["q[g]", "2"]],
    ),
    (parameter("q", "query", OBJECT), {"r": 1}, [["r", "1"]]),
    (parameter("q", "query", OBJECT, explode=False), {"r": 1, "g": 2}, [["q", "r,1,g,2"]]),
    (parameter("q", "query", {"type": ["string", "null"]}), None, []),
    (
        {"name": "q", "in": "query", "content": {"application/json": {"schema": OBJECT}}},
        {"r": 1},
        [["q", '{"r": 1}']],
    ),
]


@pytest.mark.parametrize(("given", "value", "wanted"), QUERIES)
def test_a_query_parameter_is_written_in_its_style(
    echo: tuple[Echo, str], given: dict[str, Any], value: Any, wanted: list[list[str]]
) -> None:
    got = send(echo[1], {"path": "/x", "parameters": [given]}, {"q": value})
    assert (got["method"], got["path"], got["query"]) == ("GET", "/x", wanted)


PATHS = [
    ({"type": "string"}, {}, "a/b?c#ü", "/x/a%2Fb%3Fc%23%C3%BC/y"),
    ({"type": "boolean"}, {}, False, "/x/false/y"),
    (LIST, {}, ["a", "b"], "/x/a%2Cb/y"),
    (LIST, {"style": "label"}, ["a", "b"], "/x/%2Ea%2Cb/y"),
    (LIST, {"style": "label", "explode": True}, ["a", "b"], "/x/%2Ea%2Eb/y"),
    (LIST, {"style": "matrix"}, ["a", "b"], "/x/%3Bp%3Da%2Cb/y"),
    (LIST, {"style": "matrix", "explode": True}, ["a", "b"], "/x/%3Bp%3Da%3Bp%3Db/y"),
    (OBJECT, {"explode": True}, {"r": 1, "g": 2}, "/x/r%3D1%2Cg%3D2/y"),
]


@pytest.mark.parametrize(("schema", "style", "value", "wanted"), PATHS)
def test_a_path_parameter_stays_one_part_of_the_path(
    echo: tuple[Echo, str], schema: dict[str, Any], style: dict[str, Any], value: Any, wanted: str
) -> None:
    operation = {"path": "/x/{p}/y", "parameters": [parameter("p", "path", schema, **style)]}
    assert send(echo[1], operation, {"p": value})["path"] == wanted


HEADERS = [
    ("header", {"type": "integer"}, {}, 3, "x-h", "3"),
    ("header", LIST, {}, ["a", "b"], "x-h", "a,b"),
    ("header", OBJECT, {"explode": True}, {"r": 1, "g": 2}, "x-h", "r=1,g=2"),
    ("cookie", {"type": "boolean"}, {}, True, "cookie", "X-H=true"),
    ("cookie", LIST, {"explode": False}, ["a", "b"], "cookie", "X-H=a%2Cb"),
]


@pytest.mark.parametrize(("where", "schema", "style", "value", "header", "wanted"), HEADERS)
def test_headers_and_cookies_are_one_text(
    echo: tuple[Echo, str],
    where: str,
    schema: dict[str, Any],
    style: dict[str, Any],
    value: Any,
    header: str,
    wanted: str,
) -> None:
    operation = {"path": "/x", "parameters": [parameter("X-H", where, schema, **style)]}
    assert send(echo[1], operation, {"X-H": value})["headers"][header] == wanted


ITEM = {
    "type": "object",
    "required": ["name", "note"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "note": {"type": ["string", "null"]},
        "size": {"enum": ["s", "m"], "default": "m"},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
    },
}
PART = {"type": "object", "properties": {"part": {"$ref": "#/components/schemas/Part"}, "n": {"type": "integer"}}}


def test_a_body_is_sent_with_its_nulls_and_without_defaults(echo: tuple[Echo, str]) -> None:
    operation = {"path": "/x", "method": "post", "requestBody": body({"$ref": "#/components/schemas/Item"})}
    given = {"name": "ü", "note": None, "parts": [{"n": 1, "part": {"n": 2}}]}
    got = send(echo[1], operation, given, components={"schemas": {"Item": ITEM, "Part": PART}})
    assert (json.loads(got["body"]), got["headers"]["content-type"]) == (given, "application/json")


def test_a_nullable_property_of_openapi_3_0_takes_null(echo: tuple[Echo, str]) -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "nullable": True}}}
    operation = {"path": "/x", "method": "patch", "requestBody": body(schema)}
    got = send(echo[1], operation, {"a": None}, openapi="3.0.3")
    assert json.loads(got["body"]) == {"a": None}


BODIES = [
    (body(LIST), {"body": ["a"]}, '["a"]', "application/json"),
    (body({"type": "integer"}), {"body": 3}, "3", "application/json"),
    (body({"type": "object", "additionalProperties": True}), {"body": {"k": None}}, '{"k":null}', "application/json"),
    (body({"type": "string"}, "text/plain"), {"body": "ü"}, "ü", "text/plain"),
    (body({"type": "object", "properties": {"a": {}}}, "application/merge-patch+json"), {"a": 1}, '{"a": 1}', None),
    (
        body(
            {"type": "object", "properties": {"a": NUMBERS, "b": {"type": "boolean"}, "c": OBJECT}},
            FORM := "application/x-www-form-urlencoded",
        ),
        {"a": [1, 2], "b": True, "c": {"r": 1}},
        "a=1&a=2&b=true&c=%7B%22r%22%3A+1%7D",
        FORM,
    ),
    (
        {"content": {"application/xml": {}, "application/json": {"schema": LIST}}},
        {"body": ["a"]},
        '["a"]',
        "application/json",
    ),
]


@pytest.mark.parametrize(("given", "arguments", "wanted", "media"), BODIES)
def test_a_body_has_its_content_type(
    echo: tuple[Echo, str], given: dict[str, Any], arguments: dict[str, Any], wanted: str, media: str | None
) -> None:
    got = send(echo[1], {"path": "/x", "method": "put", "requestBody": given}, arguments)
    assert (got["body"], got["headers"]["content-type"]) == (wanted, media or "application/merge-patch+json")


def test_a_form_of_parts_has_a_field_for_each_item(echo: tuple[Echo, str]) -> None:
    schema = {"type": "object", "properties": {"a": LIST, "b": {"type": "boolean"}, "c": OBJECT, "none": LIST}}
    operation = {"path": "/x", "method": "post", "requestBody": body(schema, "multipart/form-data")}
    got = send(echo[1], operation, {"a": ["1", "2"], "b": True, "c": {"r": 1}, "none": []})
    lines = [line for line in got["body"].split("\r\n") if line and not line.startswith("--")]
    assert lines == [
        *('Content-Disposition: form-data; name="a"', "1", 'Content-Disposition: form-data; name="a"', "2"),
        *('Content-Disposition: form-data; name="b"', "true", 'Content-Disposition: form-data; name="c"', '{"r": 1}'),
    ]


def test_one_name_in_two_places_is_two_arguments(echo: tuple[Echo, str]) -> None:
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
    operation = {
        "path": "/x/{id}",
        "method": "put",
        "requestBody": body(schema),
        "parameters": [parameter("id", "path"), parameter("id", "query")],
    }
    got = send(echo[1], operation, {"id__path": "1", "id__query": "2", "id": "3"})
    assert (got["path"], got["query"], got["body"]) == ("/x/1", [["id", "2"]], '{"id":"3"}')


def test_references_of_all_kinds_are_followed(echo: tuple[Echo, str]) -> None:
    shared = {
        "parameters": {"Page": parameter("page", "query", {"$ref": "#/components/schemas/Odd%20Name"})},
        "requestBodies": {"New": body({"$ref": "#/paths/~1a/get/x-shape"})},
        "schemas": {"Odd Name": {"type": "integer"}},
        "pathItems": {"X": {"post": {"parameters": [{"$ref": "#/components/parameters/Page"}], "responses": {}}}},
    }
    shape = {"type": "object", "required": ["n"], "properties": {"n": {"not": {"$ref": "#/components/schemas/Part"}}}}
    shared["schemas"]["Part"] = {"type": "object"}
    given = document({"path": "/a", "x-shape": shape}, components=shared)
    given["paths"]["/x"] = {"$ref": "#/components/pathItems/X"}
    shared["pathItems"]["X"]["post"]["requestBody"] = {"$ref": "#/components/requestBodies/New"}
    registry = ToolRegistry()
    assert registry.register_openapi(given, client=client_of(echo[1]), include=["POST *"], permission="auto") == [
        "post_x"
    ]
    result = registry.invoke("post_x", {"page": 2, "n": "text"})
    assert result.success, (result.text, registry.get_tool("post_x").input_schema)
    got = result.data
    assert (got["query"], json.loads(got["body"])) == ([["page", "2"]], {"n": "text"})
    assert registry.invoke("post_x", {"page": "two", "n": {}}).failure.data["problems"][0]["path"] == "page"


def test_a_schema_may_have_keywords_of_an_older_draft(echo: tuple[Echo, str]) -> None:
    schema = {"type": "object", "$recursiveAnchor": True, "properties": {"a": {"items": {"$recursiveRef": "#"}}}}
    operation = {"path": "/x", "method": "post", "requestBody": body({"allOf": [schema]})}
    assert json.loads(send(echo[1], operation, {"a": [{"a": []}]})["body"]) == {"a": [{"a": []}]}


@pytest.mark.parametrize("given", [{}, {"a": None}])
def test_a_body_that_is_needed_is_an_object_at_least(given: dict[str, Any], echo: tuple[Echo, str]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    for is_needed in (True, False):
        operation = {"path": "/x", "method": "post", "requestBody": body(schema) | {"required": is_needed}}
        registry = ToolRegistry()
        registry.register_openapi(document(operation), client=client_of(echo[1]), permission="auto")
        sent = registry.invoke("post_x", given).data
        assert sent["body"] == (json.dumps(given) if given or is_needed else "")
        assert sent["headers"].get("content-type") == ("application/json" if sent["body"] else None)


def test_a_property_that_refers_to_a_read_only_schema_is_left_out(echo: tuple[Echo, str]) -> None:
    schemas = {"Id": {"type": "string", "readOnly": True}, "Key": {"type": "string"}}
    properties = {
        "id": {"$ref": "#/components/schemas/Id"},
        "own": {"$ref": "#/components/schemas/Id", "readOnly": False},
        "key": {"$ref": "#/components/schemas/Key", "readOnly": True},
        "name": {"$ref": "#/components/schemas/Key"},
    }
    schema = {"type": "object", "properties": properties, "required": ["id", "name"]}
    given = document({"path": "/x", "method": "post", "requestBody": body(schema)}) | {
        "components": {"schemas": schemas}
    }
    registry = ToolRegistry()
    registry.register_openapi(given, client=client_of(echo[1]))
    shown = registry.get_tool("post_x").input_schema
    assert ([*shown["properties"]], shown["required"]) == (["own", "name"], ["name"])


BOOLEANS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"items": True}, [1, "a"], 3),
    ({"properties": {"a": True, "default": False}}, {"a": 1}, {"default": 1}),
    ({"prefixItems": [{"type": "integer"}, True], "items": False}, [1, 2], [1, 2, 3]),
    ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
    ({"anyOf": [False, {"type": "integer"}]}, 1, "a"),
    ({"$ref": "#/components/schemas/None"}, None, 1),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), BOOLEANS)
def test_a_schema_may_be_true_or_false(schema: Any, right: Any, wrong: Any, echo: tuple[Echo, str]) -> None:
    kind = {"type": "array"} if "items" in schema else {"type": "object"} if "properties" in schema else {}
    operation = {
        "path": "/x",
        "method": "post",
        "requestBody": body({"type": "object", "properties": {"p": schema | kind}}),
    }
    registry = ToolRegistry()
    given = document(operation) | {"components": {"schemas": {"None": False, "Any": True}}}
    registry.register_openapi(given, client=client_of(echo[1]), permission="auto")
    if right is not None:
        assert json.loads(registry.invoke("post_x", {"p": right}).data["body"]) == {"p": right}
    failed = registry.invoke("post_x", {"p": wrong}).failure
    assert failed is not None
    assert failed.kind == "invalid_arguments"


def test_true_in_data_stays(echo: tuple[Echo, str]) -> None:
    schema = {"type": "object", "default": {"items": True, "properties": {"id": {"readOnly": True}}}}
    operation = {"path": "/x", "operationId": "x", "parameters": [parameter("p", "query", schema)]}
    registry = ToolRegistry()
    registry.register_openapi(document(operation), client=client_of(echo[1]))
    shown = registry.get_tool("x").input_schema["properties"]["p"]["description"]
    assert shown == '(default: {"items": true, "properties": {"id": {"readOnly": true}}})'
