"""What becomes of a document in a registry: names, permissions, headers, files, and errors that name the place."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.openapi.echo import Echo, body, client_of, document, parameter
from toolwire import (
    ConfigurationError,
    DefinitionError,
    RegistrationError,
    Reply,
    Session,
    ToolCall,
    ToolRegistry,
    ToolSpec,
)
from toolwire.vocabulary.context import CallContext

METHODS = ("get", "head", "put", "delete", "post", "patch")


def made(*operations: dict[str, Any], url: str = "http://unused.example.com", **options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_openapi(document(*operations), client=client_of(url), **options)
    return registry


def test_the_method_decides_permission_effects_and_repetition() -> None:
    registry = made(*({"path": "/x", "method": method} for method in (*METHODS, "options", "trace")))
    declared = {
        name: (registry.permission_of(name), sorted(tool.effects.kinds), tool.effects.idempotent)
        for name, tool in ((name, spec.__tool__()) for name, spec in registry.to_toolspecs().items())
    }
    assert declared == {
        "get_x": ("auto", ["read"], "natural"),
        "head_x": ("auto", ["read"], "natural"),
        "put_x": ("confirm", ["send", "write"], "natural"),
        "delete_x": ("confirm", ["send", "write"], "natural"),
        "post_x": ("confirm", ["send", "write"], "no"),
        "patch_x": ("confirm", ["send", "write"], "no"),
    }
    everything = made(*({"path": "/x", "method": method} for method in METHODS), permission="deny")
    assert {everything.permission_of(name) for name in everything} == {"deny"}


def test_a_write_waits_for_a_person_and_nothing_is_sent(echo: tuple[Echo, str]) -> None:
    registry = made({"path": "/x", "method": "post"}, url=echo[1])
    before = len(echo[0].requests)
    result = registry.invoke("post_x")
    assert result.failure is not None
    assert (result.failure.kind, len(echo[0].requests)) == ("approval_required", before)
    registry.configure(rules=[{"tool": "post_x", "effect": "auto"}])
    assert registry.invoke("post_x").success


NAMES = [
    ("list", "/x", "list"),
    ("pets.list-all", "/x", "pets_list_all"),
    ("获取用户", "/x", "获取用户"),
    ("1st", "/x", "_1st"),
    ("class", "/x", "class_"),
    ("", "/pets/{id}/toys.json", "get_pets_id_toys_json"),
    ("...", "/", "get"),
    ("x" * 200, "/x", "x" * 64),
]


@pytest.mark.parametrize(("operation_id", "path", "name"), NAMES)
def test_a_name_is_that_of_the_operation_as_programs_can_write_it(operation_id: str, path: str, name: str) -> None:
    operation = {"path": path, "operationId": operation_id, "parameters": [parameter("id", "path")]}
    assert [*made(operation)] == [name]


def test_doubled_names_have_a_number_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolwire.openapi"):
        registry = made(*({"path": f"/{n}", "operationId": name} for n, name in enumerate(["a", "a_2", "a", "a"])))
    assert [*registry] == ["a", "a_2", "a_3", "a_4"]
    assert [record.getMessage() for record in caplog.records] == [
        "the OpenAPI document: names of operations occur twice and have a number: GET /2 is 'a_3', GET /3 is 'a_4'"
    ]


def test_a_taken_name_adds_no_tool() -> None:
    registry = ToolRegistry()
    registry.register_openapi(document({"path": "/b", "operationId": "b"}))
    with pytest.raises(RegistrationError, match=r"'b' is registered already: leave the operation out with exclude="):
        registry.register_openapi(document({"path": "/a", "operationId": "a"}, {"path": "/b", "operationId": "b"}))
    assert [*registry] == ["b"]


def test_patterns_choose_operations_by_name_or_by_path() -> None:
    operations = [{"path": "/pets", "operationId": "list_pets"}, {"path": "/pets", "method": "post"}, {"path": "/x"}]
    assert [*made(*operations, include=["GET /pets*", "get_x"])] == ["list_pets", "get_x"]
    assert [*made(*operations, exclude=["POST *"])] == ["list_pets", "get_x"]
    for option in ("include", "exclude"):
        with pytest.raises(ConfigurationError, match=rf"{option}=\['GET /cats'\] matches no operation"):
            made(*operations, **{option: ["GET /cats"]})
        with pytest.raises(ConfigurationError, match="write a list of patterns"):
            made(*operations, **{option: "GET /pets"})
    for nothing in ({"include": []}, {"exclude": ["*"]}):
        with pytest.raises(ConfigurationError, match="leave none of 3 operations"):
            made(*operations, **nothing)


@pytest.mark.parametrize("wrong", [{"permission": "nope"}, {"headers": [1]}, {"include": 5}, {"exclude": [5]}])
def test_a_wrong_option_is_refused_as_a_whole(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{next(iter(wrong))}="):
        made({"path": "/pets"}, **wrong)


def test_what_a_path_has_besides_and_a_document_without_operations_are_told(caplog: pytest.LogCaptureFixture) -> None:
    given = document(
        {"path": "/x", "method": "GET"}, {"path": "/x", "method": "query"}, {"path": "/x", "method": "trace"}
    )
    with caplog.at_level(logging.WARNING):
        assert ToolRegistry().register_openapi(given) == []
    assert [record.getMessage() for record in caplog.records] == [
        "the OpenAPI document: paths./x.GET is not read",
        "the OpenAPI document: paths./x.query is not read",
        "the OpenAPI document has no operation that can become a tool",
    ]


def test_a_broken_document_is_told_once_with_the_place_and_a_way(caplog: pytest.LogCaptureFixture) -> None:
    operations = [{"path": "/x", "parameters": [parameter("p", "query", {"type": "strin"})]}, {"path": "/y"}]
    with caplog.at_level(logging.DEBUG), pytest.raises(DefinitionError) as refused:
        made(*operations)
    assert re.search(
        r"is broken: paths\./x\.get\.parameters\.0\.\S*type\S*: Input should be 'null'", str(refused.value)
    )
    assert str(refused.value).endswith("leave out an operation that is broken with exclude=[...]")
    assert caplog.records == []
    assert [*made(*operations, exclude=["GET /x"])] == ["get_y"]


def test_a_later_version_is_read_as_the_last_one_that_the_parser_knows(echo: tuple[Echo, str]) -> None:
    nullable = {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}}
    for version, kinds in (("3.2.0", "string"), ("3.1", "string"), ("3.0.9", ["string", "null"])):
        registry = ToolRegistry()
        given = document({"path": "/x", "method": "post", "requestBody": body(nullable)}) | {"openapi": version}
        registry.register_openapi(given, client=client_of(echo[1]))
        assert registry.get_tool("post_x").input_schema["properties"]["a"]["type"] == kinds


CREDENTIALS = [parameter(name, "header") for name in ("X-Token", "Accept", "Authorization", "content-type", "X-Other")]


def test_no_model_sees_or_gives_the_owners_headers(echo: tuple[Echo, str]) -> None:
    operation = {"path": "/x", "operationId": "x", "parameters": [{**one, "required": True} for one in CREDENTIALS]}
    registry = made(operation, url=echo[1], headers={"x-token": "t", "Authorization": "Bearer a"})
    assert [*registry.get_tool("x").input_schema["properties"]] == ["X-Other"]
    sent = registry.invoke("x", {"X-Other": "o"}).data["headers"]
    assert [sent[name] for name in ("x-token", "authorization", "x-other")] == ["t", "Bearer a", "o"]
    assert registry.invoke("x", {"X-Other": "o", "X-Token": "stolen"}).failure.kind == "invalid_arguments"


def test_a_token_comes_from_the_state_of_each_user(echo: tuple[Echo, str]) -> None:
    registry = made({"path": "/x", "operationId": "x"}, url=echo[1], headers={"Authorization": "Bearer {user.token}"})
    call = "<tool_call><name>x</name><params></params></tool_call>"
    for token in ("t-ann", "t-bob"):
        session = Session(registry, protocol="xml", state={"user": {"token": token}})
        result = session.run_turn(call).results[0]
        assert result.data["headers"]["authorization"] == f"Bearer {token}"
    assert registry.get_tool("x").input_schema["properties"] == {}
    result = registry.invoke("x", {"state.user.token": "stolen"}, state={"user": {"token": "t"}})
    assert result.failure.kind == "invalid_arguments"
    nobody = registry.invoke("x")
    assert (nobody.success, "no 'user.token'" in nobody.text) == (False, True)


def test_a_header_may_be_a_function_of_the_call(echo: tuple[Echo, str]) -> None:
    async def token(context: CallContext) -> str:
        return f"Bearer for {context.caller.principal or 'nobody'}"

    registry = made({"path": "/x", "operationId": "x"}, url=echo[1], headers={"Authorization": token})
    assert registry.invoke("x").data["headers"]["authorization"] == "Bearer for nobody"


NO_LINE = "the owner's header 'X-Key' must be one line of ASCII text"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("a\r\nX-Admin: 1", NO_LINE),
        ("ü", NO_LINE),
        (None, "'key' in the state is NoneType, and a header needs a text"),
        ({"a": "secret"}, "'key' in the state is dict, and a header needs a text"),
    ],
)
def test_a_token_that_is_no_header_is_neither_sent_nor_told(
    echo: tuple[Echo, str], token: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = made({"path": "/x", "operationId": "x"}, url=echo[1], headers={"X-Key": "{key}"})
    before = len(echo[0].requests)
    result = registry.invoke("x", state={"key": token})
    assert (result.success, result.error) == (False, f"GET /x was not sent: {why}.")
    assert len(echo[0].requests) == before
    assert [(one.getMessage(), one.exc_info) for one in caplog.records] == [(f"GET /x was not sent: {why}", None)]


def test_a_function_that_gives_no_header_fails_the_call_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    registry = made({"path": "/x", "operationId": "x"}, headers={"X-Key": lambda _: "a\nb"})
    assert registry.invoke("x").error == f"GET /x was not sent: {NO_LINE}."
    assert [one.exc_info for one in caplog.records] == [None]


BRACE = "its '{' names no key of the state"


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"a b": "x"}, "name of a header"),
        ({"": "x"}, "name of a header"),
        ({"X": 3}, "give a text"),
        ({"X": None}, "give a text"),
        ({"X": "a\nb"}, "one line"),
        ({"X": "Bearer {user.token"}, BRACE),
        ({"X": "Bearer {user token}"}, BRACE),
        ({"X": "{a}{"}, BRACE),
    ],
)
def test_wrong_headers_are_refused_at_once(headers: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^headers=.*{re.escape(why)}") as refused:
        made({"path": "/x"}, headers=headers)
    assert "\n" not in str(refused.value)
    assert "Bearer" not in str(refused.value)


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_write_after_private_and_untrusted_data_asks(echo: tuple[Echo, str], method: str) -> None:
    def read_mail() -> str:
        """Reads the mail."""
        return "mail"

    registry = made(
        {"path": "/x", "operationId": "x"},
        {"path": "/x", "method": method, "operationId": "change"},
        url=echo[1],
        permission="auto",
    )
    registry.register(ToolSpec.from_function(read_mail, labels=["private"], effects=["read"]))
    session = Session(registry, protocol="openai")
    assert session.run_turn(reply("change")).results[0].success
    # What the server answers is untrusted already.
    session.run_turn(reply("read_mail"))
    failure = session.run_turn(reply("change")).results[0].failure
    assert failure is not None
    assert failure.kind == "approval_required"
    assert session.run_turn(reply("x")).results[0].success


def reply(name: str) -> Reply:
    return Reply(calls=(ToolCall(name, {}, id="c"),))


def test_a_key_of_the_call_fills_the_header_that_the_document_names(echo: tuple[Echo, str]) -> None:
    key = {**parameter("Idempotency-Key", "header"), "required": True}
    operation = {"path": "/x", "method": "post", "operationId": "pay", "parameters": [key]}
    registry = made(operation, url=echo[1], permission="auto")
    tool = registry.get_tool("pay").__tool__()
    assert (tool.effects.idempotent, tool.input_schema["properties"]) == ("key", {})
    first, second = (registry.invoke("pay").data["headers"]["idempotency-key"] for _ in range(2))
    assert first
    assert first != second


FILE = {"type": "string", "format": "binary"}
UPLOADS = [
    ({"file": FILE, "n": {"type": "integer"}}, ["file"], None),
    ({"file": {"type": "array", "items": FILE}, "n": {}}, [], ["n"]),
    ({"file": {"anyOf": [{"type": "string", "contentMediaType": "image/png"}, {"type": "null"}]}, "n": {}}, [], ["n"]),
    ({"file": {"type": "string", "format": "base64"}, "n": {"type": "integer"}}, ["n"], ["n"]),
]


@pytest.mark.parametrize(("properties", "required", "left"), UPLOADS)
def test_files_are_left_out_with_one_warning(
    properties: dict[str, Any], required: list[str], left: list[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    schema = {"type": "object", "properties": properties, "required": required}
    operation = {"path": "/up", "method": "post", "requestBody": body(schema, "multipart/form-data")}
    with caplog.at_level(logging.WARNING, "toolwire.openapi"):
        registry = made(operation)
    shown = [[*spec.input_schema["properties"]] for spec in registry.to_toolspecs().values()]
    assert shown == ([] if left is None else [left])
    told = "the OpenAPI document: POST /up is left out: it needs a file as 'file', and a model has none to send"
    assert [record.getMessage() for record in caplog.records] == [
        told if left is None else "POST /up goes without the file 'file'"
    ]


def test_a_body_of_bytes_leaves_the_operation_out(caplog: pytest.LogCaptureFixture) -> None:
    given = body(FILE, "application/octet-stream")
    with caplog.at_level(logging.WARNING, "toolwire.openapi"):
        registry = made(
            {"path": "/a", "method": "put", "requestBody": given},
            {"path": "/b", "method": "put", "requestBody": {**given, "required": False}},
        )
    assert [*registry] == ["put_b"]
    assert [record.getMessage() for record in caplog.records] == [
        f"the OpenAPI document: PUT {text}: its body is application/octet-stream, which cannot be made of arguments"
        for text in ("/a is left out", "/b goes without its body")
    ]


BROKEN: list[tuple[Any, type[Exception], str]] = [
    (3, ConfigurationError, "give an OpenAPI document as a dict, a path or an http(s) URL"),
    ({"swagger": "2.0"}, DefinitionError, "is Swagger '2.0', and OpenAPI 3 is read: convert it"),
    ({}, DefinitionError, "it has no key 'openapi'"),
    ({"openapi": 3.1}, DefinitionError, "its key 'openapi' is 3.1, not '3.1.0'"),
    ({"openapi": "3.1.0", "paths": []}, DefinitionError, "paths must be an object, not []"),
    ({"openapi": "3.1.0", "paths": {"x": {}}}, DefinitionError, "paths: 'x' must begin with '/'"),
    (document({"path": "/x", "parameters": 3}), DefinitionError, "paths./x.get.parameters"),
    (document({"path": "/x", "parameters": [{"in": "query"}]}), DefinitionError, "paths./x.get.parameters.0"),
    (document({"path": "/x"}) | {"servers": []}, ConfigurationError, "sends calls to '/', which is not the URL"),
    (
        document({"path": "/x"}, url="https://{host}/v1"),
        ConfigurationError,
        "'https://{host}/v1', which is not the URL",
    ),
    (document({"path": "/x"}, url="https://me:pw@example.com"), ConfigurationError, "which is not the URL of a server"),
    (document({"path": "/x"}, url="file:///etc"), ConfigurationError, "which is not the URL of a server"),
]


@pytest.mark.parametrize(("given", "kind", "told"), BROKEN)
def test_a_document_that_cannot_be_used_says_where(given: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as refused:
        ToolRegistry().register_openapi(given)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("a: [", "is neither JSON nor YAML"),
        ("- 1", "it must be an object"),
        (" <!doctype html>", "is HTML or XML, such as"),
    ],
)
def test_a_file_that_is_no_document_says_so(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(DefinitionError, match=told):
        ToolRegistry().register_openapi(path)
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        ToolRegistry().register_openapi(str(tmp_path / "gone.json"))


def test_yaml_keys_and_dates_are_read_as_json(tmp_path: Path) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(
        "openapi: 3.0.0\ninfo: {title: a, version: 2020-01-01}\nservers: [{url: 'https://{v}.example.com', "
        "variables: {v: {default: api}}}]\npaths:\n  /x:\n    get:\n      responses: {200: {description: ok}}\n      "
        "parameters: [{name: day, in: query, schema: {type: string, enum: [2020-01-01, yes]}}]\n",
        "utf-8",
    )
    registry = ToolRegistry()
    assert registry.register_openapi(path) == ["get_x"]
    assert registry.get_tool("get_x").input_schema["properties"]["day"]["enum"] == ["2020-01-01", True]


@pytest.mark.parametrize("client", [object(), "http://x", client_of("")])
def test_a_client_needs_a_base_url(client: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"give client=httpx2.AsyncClient\(base_url="):
        ToolRegistry().register_openapi(document({"path": "/x"}), client=client)


def test_a_document_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.openapi.api_document.DOCUMENT_LIMIT_BYTES", 400)
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document({"path": "/x"})), "utf-8")
    assert ToolRegistry().register_openapi(path) == ["get_x"]
    path.write_text(json.dumps(document({"path": "/x", "description": "x" * 400})), "utf-8")
    with pytest.raises(ConfigurationError, match="has more than 400 bytes"):
        ToolRegistry().register_openapi(path)


def test_importing_toolwire_imports_no_client_and_no_parser() -> None:
    code = "import sys; from toolwire import ToolRegistry; print({'httpx2', 'fastmcp', 'yaml'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
