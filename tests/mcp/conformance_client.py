"""A client for the conformance suite of MCP: `python -m ... URL` calls each tool of the server once.

The suite starts it for each scenario, and judges the messages that it sends. A person who accepts the defaults answers,
and logs in when a call needs it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from mcp.client.auth.extensions.client_credentials import PrivateKeyJWTOAuthProvider, SignedJWTParameters
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider

from tests.patience import PATIENCE_S
from toolwire import (
    ApprovalRequest,
    Decision,
    MCPClient,
    McpCredentials,
    McpLogin,
    ServerUnavailable,
    ToolRegistry,
    ToolResult,
)

METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The address of the client's metadata, which the suite expects."""

LOGINS = 2
"""Logins until the tools are known. One scenario changes its authorization server after the first."""

LOGIN = "the server asks for a login"
"""Stands in the error of a call that needs a person."""

ECHO, ECHOED = "json_schema_echo", "json_schema_2020_12_tool"
"""A tool of one scenario takes the schema of the other tool, as the client has it."""

VALUES: dict[str, Any] = {"integer": 5, "number": 5, "string": "text", "boolean": True, "array": [], "object": {}}


def value_of(schema: Mapping[str, Any]) -> Any:
    """Returns a value that fits a simple schema."""
    if "default" in schema:
        return schema["default"]
    return schema["enum"][0] if "enum" in schema else VALUES[schema.get("type", "string")]


def fields_of(schema: Mapping[str, Any], *, is_whole: bool) -> dict[str, Any]:
    """Returns values for the required fields, or for all that have a default or are required."""
    required, fields = schema.get("required", ()), schema.get("properties", {})
    return {
        name: value_of(field) for name, field in fields.items() if name in required or (is_whole and "default" in field)
    }


def accept(request: ApprovalRequest) -> Decision:
    """Answers a form with its defaults."""
    schema = request.answer_schema
    answer = fields_of(schema, is_whole=True) if schema.get("type") == "object" else True
    return Decision(verdict="answer", answer=answer)


def calls_of(values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives the calls that the scenario prescribes, or one call of each tool."""
    prescribed = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
    if prescribed is not None:
        yield from ((call["name"], call["arguments"]) for call in prescribed)
        return
    for name, value in values.items():
        if name == ECHO:
            yield name, {"schema": values[ECHOED].input_schema}
        else:
            yield name, fields_of(value.input_schema, is_whole=False)


def browser(address: str) -> None:
    """Opens the page of a login, and goes where it leads."""
    httpx2.get(address, follow_redirects=True, timeout=PATIENCE_S)


def issuer_of(url: str) -> str:
    """Returns the authorization server that the suite's own server names. A user reads it in a page of a provider."""
    parts = httpx2.URL(url)
    known = httpx2.get(parts.copy_with(path=f"/.well-known/oauth-protected-resource{parts.path}"), timeout=PATIENCE_S)
    return known.json()["authorization_servers"][0]


def auth_of(url: str, context: Mapping[str, Any]) -> Any:
    """Returns how the client of this scenario proves itself."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    if not scenario.startswith("auth/"):
        return None
    if "private_key_pem" in context:
        client, key = context["client_id"], context["private_key_pem"]
        signed = SignedJWTParameters(
            issuer=client, subject=client, signing_key=key, signing_algorithm=context["signing_algorithm"]
        )
        provider = signed.create_assertion_provider()
        return PrivateKeyJWTOAuthProvider(url, NoTokens(), client, provider, issuer=issuer_of(url))
    if "idp_id_token" in context:
        return IdentityAssertionOAuthProvider(
            *(url, NoTokens(), context["client_id"], context["client_secret"], issuer_of(url)),
            partial(identity_of, context),
            token_endpoint_auth_method="client_secret_basic",
        )
    if "client_secret" in context:
        kind = McpCredentials if scenario == "auth/client-credentials-basic" else McpLogin
        issuer = context.get("issuer") or issuer_of(url)
        return kind(client_id=context["client_id"], client_secret=context["client_secret"], issuer=issuer)
    return McpLogin(client_id=METADATA_URL)


async def identity_of(context: Mapping[str, Any], audience: str, resource: str) -> str:
    """Exchanges the token of the person's company for one that the authorization server takes (RFC 8693)."""
    kinds = "urn:ietf:params:oauth:token-type:"
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": f"{kinds}id-jag",
        "subject_token": context["idp_id_token"],
        "subject_token_type": f"{kinds}id_token",
        "client_id": context["idp_client_id"],
        "audience": audience,
        "resource": resource,
    }
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        answer = await client.post(context["idp_token_endpoint"], data=form)
    return answer.json()["access_token"]


class NoTokens:
    """A store of the SDK that keeps nothing."""

    async def get_tokens(self) -> None:
        return None

    async def get_client_info(self) -> None:
        return None

    async def set_tokens(self, tokens: object) -> None:
        pass

    async def set_client_info(self, client_info: object) -> None:
        pass


def called(registry: ToolRegistry, client: MCPClient, name: str, arguments: dict[str, Any]) -> ToolResult:
    """Calls a tool. The person logs in if the call needs it, and then it is called once more."""
    result = registry.invoke(f"suite/{name}", arguments)
    if result.failure is None or LOGIN not in str(result.error):
        return result
    client.login(browser)
    return registry.invoke(f"suite/{name}", arguments)


def main(url: str) -> None:
    registry = ToolRegistry(approver=accept)
    client = MCPClient.http(
        "suite", url, auth=auth_of(url, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")))
    )
    for _ in range(LOGINS):
        try:
            registry.register_mcp_client(client, permission="auto")
            break
        except ServerUnavailable as error:
            if LOGIN not in str(error):
                raise
            client.login(browser)
    values = {function.name: function.value for function in registry.tool_library.values()}
    for name, arguments in calls_of(values):
        result = called(registry, client, name, arguments)
        print(name, result.success, result.text, file=sys.stderr)
    client.close()


if __name__ == "__main__":
    # The tokens of one scenario are of no use to the next.
    with TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        main(sys.argv[1])
