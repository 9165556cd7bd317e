"""Documents and arguments that would send calls, tokens or the reader elsewhere. Each has a control that works."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.openapi.echo import Echo, body, client_of, document, parameter
from tests.openapi.servers import serving
from toolwire import ConfigurationError, DefinitionError, ToolRegistry
from toolwire.builtin.web import guard

GET = {"path": "/x", "operationId": "get_x"}


def register(given: Any, **options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_openapi(given, **options)
    return registry


HIDDEN = ["http://127.0.0.1", "http://localhost:8000", "http://[::1]/api", "http://169.254.169.254", "http://10.0.0.5"]


@pytest.mark.parametrize("url", HIDDEN)
def test_a_document_cannot_name_a_private_server(url: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"not on the public internet .* give client=httpx2.AsyncClient\(base_url="
    ):
        register(document(GET, url=url))
    assert [*register(document(GET, url="https://api.example.com"))] == ["get_x"]


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "shop.example.com"])
def test_a_private_address_behind_a_name_is_refused_at_the_connection(
    echo: tuple[Echo, str], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    port = int(echo[1].rpartition(":")[2])

    class Names:
        async def addresses(self, _: str, port: int) -> list[str]:
            return [str(item[4][0]) for item in socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(guard, "_NAMES", Names())
    registry = register(document(GET, url=f"http://{host}:{port}"))
    before = len(echo[0].requests)
    result = registry.invoke("get_x")
    assert result.failure is not None
    assert (result.failure.kind, result.error) == (
        "tool_error",
        (
            f"the server {host!r} of the document is not on the public internet; its owner can allow it with "
            "client=httpx2.AsyncClient(base_url='https://...')."
        ),
    )
    assert len(echo[0].requests) == before
    # The control: the owner says so.
    assert register(document(GET, url=f"http://{host}:{port}"), client=client_of(echo[1])).invoke("get_x").success


def test_a_fetched_document_cannot_name_another_server() -> None:
    def served(url: str) -> Any:
        return lambda _: (200, {"content-type": "application/json"}, json.dumps(document(GET, url=url)).encode())

    for url in ("https://evil.example.com", "http://localhost:1"):
        with serving(Echo(served(url))) as at, pytest.raises(ConfigurationError) as refused:
            register(f"{at}/openapi.json")
        assert "sends calls to another server" in str(refused.value)
        assert "client=httpx2.AsyncClient(base_url=" in str(refused.value)
    app = Echo(served("/v1"))
    with serving(app) as at:
        assert register(f"{at}/openapi.json").invoke("get_x").success
        assert app.requests[-1]["path"] == "/v1/x"
        assert register(f"{at}/openapi.json", client=client_of(f"{at}/v2")).invoke("get_x").success
        assert app.requests[-1]["path"] == "/v2/x"


def test_a_redirect_takes_no_token_along() -> None:
    thief = Echo()
    with serving(thief) as elsewhere:
        honest = Echo(lambda _: (307, {"location": f"{elsewhere}/steal"}, b""))
        with serving(honest) as at:
            client = client_of(at, follow_redirects=True)
            result = register(document(GET), client=client, headers={"Authorization": "Bearer t"}).invoke("get_x")
    assert (result.success, thief.requests) == (False, [])
    assert honest.requests[0]["headers"]["authorization"] == "Bearer t"
    assert result.error == (
        f"GET /x answered 307 Temporary Redirect: it redirects to '{elsewhere}/steal', and no redirect is followed"
    )


def test_a_redirect_of_the_document_is_not_followed() -> None:
    with (
        serving(Echo(lambda _: (302, {"location": "http://127.0.0.1:1/openapi.json"}, b""))) as at,
        pytest.raises(
            ConfigurationError, match=r"is somewhere else: give the URL 'http://127\.0\.0\.1:1/openapi\.json'"
        ),
    ):
        register(f"{at}/openapi.json")


def test_ten_thousand_operations_are_too_many() -> None:
    given = document(*({"path": f"/x{number}", "operationId": "same"} for number in range(10_000)))
    with pytest.raises(
        ConfigurationError, match=r"has 10,000 operations, and at most 2,000 can become tools: .*include="
    ):
        register(given)
    assert [*register(given, include=["GET /x123", "same_9*8"], exclude=["same_99*"])][:2] == ["same_98", "same_124"]


PLACES = {
    "a parameter": {"path": "/x", "parameters": [{"$ref": "TARGET"}]},
    "a schema": {"path": "/x", "parameters": [parameter("p", "query", {"allOf": [{"$ref": "TARGET"}]})]},
    "a body": {"path": "/x", "method": "post", "requestBody": {"$ref": "TARGET"}},
    "below a body": {"path": "/x", "method": "post", "requestBody": body({"not": {"items": {"$ref": "TARGET"}}})},
    "a path": {"path": "/x"},
}


@pytest.mark.parametrize("scheme", ["file", "http", "relative"])
@pytest.mark.parametrize("place", PLACES)
def test_no_reference_is_fetched(echo: tuple[Echo, str], tmp_path: Path, place: str, scheme: str) -> None:
    (tmp_path / "secret.json").write_text('{"name": "p", "in": "query", "schema": {"type": "string"}}', "utf-8")
    target = {"file": f"file://{tmp_path}/secret.json", "http": f"{echo[1]}/x.json", "relative": "secret.json"}[scheme]
    before = len(echo[0].requests)

    def given(reference: str) -> dict[str, Any]:
        made = json.loads(json.dumps(document(PLACES[place])).replace("TARGET", reference))
        if place == "a path":
            made["paths"]["/x"] = {"$ref": reference}
        return made

    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(given(target)), "utf-8")
    with pytest.raises(DefinitionError, match="leads out of the document, and no reference is fetched: bundle"):
        register(path)
    assert len(echo[0].requests) == before
    inside = {"schemas": {"S": {"type": "object"}}, "parameters": {"P": parameter("p", "query")}}
    inside |= {"requestBodies": {"B": body({})}, "pathItems": {"I": {"get": {"responses": {}}}}}
    name = {"a parameter": "parameters/P", "a body": "requestBodies/B", "a path": "pathItems/I"}.get(place, "schemas/S")
    assert len([*register(given(f"#/components/{name}") | {"components": inside})]) == 1


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("#/components/schemas/Gone", "leads to nothing that a reference can mean"),
        ("#/components/schemas/Round", "leads to no end"),
        ("#/info/title", "leads to nothing that a reference can mean"),
        ("#", "leads to nothing that a reference can mean"),
        ("#anchor", "leads to nothing that a reference can mean"),
        ("#/components", "leads to nothing that a reference can mean"),
        ("#/components/schemas", "leads to nothing that a reference can mean"),
    ],
)
def test_a_reference_to_nothing_or_itself_names_its_place(reference: str, why: str) -> None:
    given = document({"path": "/x", "parameters": [parameter("p", "query", {"$ref": reference})]})
    given["components"] = {"schemas": {"Round": {"$ref": "#/components/schemas/Round"}}}
    if "Round" not in reference:
        del given["components"]
    with pytest.raises(DefinitionError) as refused:
        register(given)
    assert why in str(refused.value)
    assert "paths./x.get.parameters.0.schema" in str(refused.value) or "components.schemas.Round" in str(refused.value)


@pytest.mark.parametrize("reference", ["#", "#/paths"])
def test_a_path_that_refers_to_all_paths_is_refused(reference: str) -> None:
    given = document(GET)
    given["paths"]["/y"] = {"$ref": reference}
    with pytest.raises(DefinitionError, match=r"paths\./y: \$ref '#\S*' leads to nothing that a reference can mean"):
        register(given)


@pytest.mark.parametrize("value", ["..", ".", "../admin", "a/../../b", "%2e%2e", "%252e%252e/x", "", "..\\x"])
def test_a_path_parameter_reaches_no_other_path(echo: tuple[Echo, str], value: str) -> None:
    operation = {"path": "/items/{id}", "method": "delete", "parameters": [parameter("id", "path")]}
    registry = register(document(operation), client=client_of(echo[1]), permission="auto")
    before = len(echo[0].requests)
    result = registry.invoke("delete_items_id", {"id": value})
    assert result.failure is not None
    assert result.failure.kind == "invalid_arguments"
    assert len(echo[0].requests) == before
    assert registry.invoke("delete_items_id", {"id": "..a"}).data["path"] == "/items/%2E%2Ea"


@pytest.mark.parametrize(("where", "value"), [("header", "a\r\nX-Admin: 1"), ("header", "ü"), ("cookie", "a; admin=1")])
def test_a_value_adds_no_header_and_no_cookie(echo: tuple[Echo, str], where: str, value: str) -> None:
    operation = {"path": "/x", "operationId": "x", "parameters": [parameter("X-H", where)]}
    registry = register(document(operation), client=client_of(echo[1]))
    result = registry.invoke("x", {"X-H": value})
    assert result.failure is not None
    assert result.failure.kind == "invalid_arguments"
    assert registry.invoke("x", {"X-H": "a"}).success


def test_a_text_of_yaml_that_grows_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.openapi.api_document.NODES_LIMIT", 100_000)
    lines = ["openapi: 3.1.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join([*lines, "paths: {}"]), "utf-8")
    with pytest.raises(DefinitionError, match="has more than 100,000 values"):
        register(path)


def test_a_server_of_one_path_gets_no_call(echo: tuple[Echo, str], caplog: pytest.LogCaptureFixture) -> None:
    operation = {**GET, "servers": [{"url": "https://evil.example.com"}]}
    with caplog.at_level(logging.WARNING, "toolwire.openapi"):
        registry = register(document(operation), client=client_of(echo[1]))
    assert [record.getMessage() for record in caplog.records] == [
        "the OpenAPI document: GET /x names the server 'https://evil.example.com', which gets no calls"
    ]
    assert registry.invoke("get_x").data["headers"]["host"] in echo[1]


@pytest.mark.parametrize("name", ["Host", "Content-Length", "X-HTTP-Method-Override"])
def test_no_model_gives_a_header_that_changes_the_request_itself(echo: tuple[Echo, str], name: str) -> None:
    operation = {
        "path": "/x",
        "operationId": "x",
        "parameters": [parameter(name, "header"), parameter("X-H", "header")],
    }
    registry = register(document(operation), client=client_of(echo[1]))
    assert [*registry.get_tool("x").input_schema["properties"]] == ["X-H"]
    before = len(echo[0].requests)
    result = registry.invoke("x", {name: "DELETE"})
    assert result.failure is not None
    assert (result.failure.kind, len(echo[0].requests)) == ("invalid_arguments", before)
    assert registry.invoke("x", {"X-H": "a"}).success


@pytest.mark.parametrize("path", ["/../admin", "/a/%2e%2e/%2E%2e/admin", "/a/..\\..\\admin", "/."])
def test_a_path_of_the_document_does_not_leave_that_of_the_server(
    path: str, echo: tuple[Echo, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "toolwire.openapi"):
        registry = register(document({"path": path}, GET), client=client_of(f"{echo[1]}/v1"))
    assert [*registry] == ["get_x"]
    assert [record.getMessage() for record in caplog.records] == [
        f"the OpenAPI document: GET {path} is left out: its path leads out of the server's"
    ]
    assert registry.invoke("get_x").data["path"] == "/v1/x"


KEYS = {
    "securitySchemes": {
        "q": {"type": "apiKey", "in": "query", "name": "api_key"},
        "h": {"$ref": "#/components/x-more/header"},
        "c": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "b": {"type": "http", "scheme": "bearer", "name": "free", "in": "query"},
    },
    "x-more": {"header": {"type": "apiKey", "in": "header", "name": "X-Key"}},
}


def test_no_model_is_asked_for_the_keys_of_an_api(echo: tuple[Echo, str]) -> None:
    asked = [("api_key", "query"), ("x-key", "header"), ("sid", "cookie"), ("other", "cookie")]
    asked += [("sid", "query"), ("free", "query")]
    operation = {**GET, "parameters": [parameter(name, where, required=True) for name, where in asked]}
    given = document(operation) | {"components": KEYS}
    client = client_of(echo[1], params={"api_key": "k"})
    registry = register(given, client=client, headers={"Cookie": "sid={user.sid}"})
    assert [*registry.get_tool("get_x").input_schema["properties"]] == ["sid__query", "free"]
    sent = registry.invoke("get_x", {"sid__query": "a", "free": "b"}, state={"user": {"sid": "s"}}).data
    assert sorted(map(tuple, sent["query"])) == [("api_key", "k"), ("free", "b"), ("sid", "a")]
    assert sent["headers"]["cookie"] == "sid=s"


def test_no_model_replaces_what_the_client_sends(echo: tuple[Echo, str]) -> None:
    places = [("X-A", "header"), ("version", "query"), ("sid", "cookie"), ("User-Agent", "header"), ("q", "query")]
    operation = {**GET, "parameters": [parameter(name, where) for name, where in places]}
    operation["parameters"].append(parameter("filter", "query", {"type": "object"}))
    client = client_of(echo[1], headers={"X-A": "1"}, params={"version": "2"}, cookies={"sid": "3"})
    registry = register(document(operation), client=client)
    assert [*registry.get_tool("get_x").input_schema["properties"]] == ["q", "filter"]
    result = registry.invoke("get_x", {"filter": {"version": "3"}})
    assert result.error == "'version' in the query is not for you to give."
    assert ["version", "2"] in registry.invoke("get_x", {"filter": {"size": "3"}}).data["query"]
    free = register(document(operation)).get_tool("get_x").input_schema["properties"]
    assert [*free] == ["X-A", "version", "sid", "q", "filter"]


@pytest.mark.parametrize("ending", ["/v1?version=2", "/v1#a"])
def test_a_base_url_ends_at_its_path(ending: str) -> None:
    with pytest.raises(ConfigurationError, match="end it at the path, and give its query as"):
        register(document(GET), client=client_of(f"https://api.example.com{ending}"))
