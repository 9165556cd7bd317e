"""`toolwire mcp login` as a person types it."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from tests.cli.command_line import run_here
from tests.mcp.client.authorization_server import Protected, browser
from toolwire import MCPClient


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that were opened in the browser, by a person who agrees."""
    pages = list[str]()
    monkeypatch.setenv("DISPLAY", ":0")

    def open_page(address: str) -> bool:
        pages.append(address)
        browser(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    return pages


def test_a_login_by_url_opens_the_browser_and_tries_the_server(protected: Protected, opened: list[str]) -> None:
    ended = run_here("mcp", "login", protected.url)
    assert (ended.code, ended.stdout) == (0, "logged in: 9 tools\n")
    assert ended.stderr == f"Open this page to log in:\n{opened[0]}\n"
    with MCPClient.http("issues", protected.url, auth="oauth") as client:
        assert client.is_connected


def test_a_login_by_name_takes_the_server_of_the_file(protected: Protected, opened: list[str], tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"issues": {"url": protected.url, "oauth": {"scopes": ["read"]}}}}))
    assert run_here("mcp", "login", "issues", "--config", str(config)).stdout == "logged in: 9 tools\n"
    assert run_here("mcp", "doctor", "--config", str(config)).code == 0
    assert run_here("mcp", "login", "others", "--config", str(config)).stderr == (
        "toolwire: there is no server 'others' that is on; there are 'issues'\n"
    )


def test_without_a_display_the_address_is_printed_alone(
    protected: Protected, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    protected.denies = True
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("toolwire.mcp.login.LOGIN_S", 0.1)
    ended = run_here("mcp", "login", protected.url)
    first, address, failed = ended.stderr.splitlines()
    assert (first, address.partition("?")[0]) == ("Open this page to log in:", f"{protected.issuer}/authorize")
    assert failed == f"toolwire: the login at {protected.url} failed: the browser did not come back within 0 s"
    assert (ended.code, opened) == (1, [])


def test_a_name_without_a_file_and_a_server_without_a_login_are_wrong_usage(tmp_path: Path) -> None:
    ended = run_here("mcp", "login", "issues")
    assert (ended.code, ended.stderr) == (
        2,
        "toolwire: 'issues' is not a URL: give the file that has a server of this name (--config)\n",
    )
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"fs": {"command": "npx"}}}))
    ended = run_here("mcp", "login", "fs", "--config", str(config))
    assert (ended.code, ended.stderr) == (
        2,
        "toolwire: the MCP server 'fs' has no login: give it a URL and auth='oauth'\n",
    )
