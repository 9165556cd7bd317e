"""Whatever package of an extra is missing, the error is the command that installs the extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.extras.environment import base_distributions, make_environment, run_in

USES = (ROOT / "tests/extras/uses.py").read_text("utf-8")
COMMANDS = {
    "serve --tools tools.py": "mcp",
    "serve --tools tools.py --http 0": "mcp",
    "serve --config mcp.json": "mcp",
    "mcp doctor --config mcp.json": "mcp",
    "mcp login http://127.0.0.1:9/mcp": "mcp",
    "run reply.json --tools tools.py --protocol json --store postgresql://u@127.0.0.1:9/d": "postgres",
    "log --store postgresql://u@127.0.0.1:9/d": "postgres",
    "approvals list --store postgresql://u@127.0.0.1:9/d": "postgres",
    "worker --migrate --store postgresql://u@127.0.0.1:9/d": "fleet",
}
EXTRAS = {
    "MCPClient": "mcp",
    "register": "mcp",
    "registry.mcp": "mcp",
    "diagnose": "mcp",
    "log_in": "mcp",
    "ToolServer": "mcp",
    "ToolSpec.to_mcp": "mcp",
    "ToolSpec.to_fastmcp": "fastmcp",
    "ToolSpec.from_fastmcp": "fastmcp",
    "register_openapi": "openapi",
    "WebFetchTool": "web",
    "WebSearchTool": "web",
    "WebSearchTool ddgs": "web,ddgs",
    "a PDF": "web",
    "ProcrastinateQueue": "fleet",
    "Worker": "fleet",
    "ToolwireToolset": "pydantic-ai",
    "Store": "postgres",
    "Session": "postgres",
}


def extra_of(use: str) -> str:
    return next(EXTRAS[name] for name in sorted(EXTRAS, key=len, reverse=True) if use.startswith(name))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("base"))


def test_the_environment_has_what_the_readme_counts() -> None:
    assert f"toolwire installs {len(base_distributions())} other packages." in (ROOT / "README.md").read_text("utf-8")


def test_each_use_without_any_extra_says_what_to_install(packages: Path, tmp_path: Path) -> None:
    done = run_in(packages, USES, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    said: dict[str, list[str]] = json.loads(done.stdout)
    assert {use: text for use, text in said.items() if f"pip install 'toolwire[{extra_of(use)}]'" not in text[1]} == {}


@pytest.mark.parametrize(("command", "extra"), COMMANDS.items())
def test_each_command_without_any_extra_says_what_to_install(
    command: str, extra: str, packages: Path, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text('def add(a: int, b: int) -> int:\n    "Adds."\n    return a + b\n')
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"fs": {"command": "npx", "args": ["x"]}}}')
    (tmp_path / "reply.json").write_text('{"name": "add", "arguments": {"a": 1, "b": 2}}')
    done = run_in(packages, "from toolwire.__main__ import main; main()", *command.split(), cwd=tmp_path)
    assert done.returncode != 0
    assert f"pip install 'toolwire[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


PAIRS = (
    "anyio:MCPClient.stdio",
    "anyio:ToolServer.in_memory",
    "mcp:ToolServer.run_stdio",
    "mcp:ToolSpec.to_fastmcp",
    "mcp_types:ToolSpec.to_mcp",
    "httpx2:MCPClient.http",
    "httpx2:MCPClient.login",
    "httpx2:WebSearchTool",
    "starlette:ToolServer.asgi",
    "uvicorn:ToolServer.run_http",
    "fastmcp:register_openapi",
    "httpx2:register_openapi",
    "yaml:register_openapi",
    "trafilatura:WebFetchTool",
    "html_to_markdown:WebFetchTool",
    "pypdfium2:a PDF",
    "selectolax:WebFetchTool",
    "procrastinate:ProcrastinateQueue",
    "procrastinate:Worker",
    "psycopg_pool:Worker",
    "pydantic_ai:ToolwireToolset",
)


def test_each_package_of_an_extra_that_is_missing_alone_is_named_with_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", USES, *PAIRS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    said: dict[str, list[str]] = json.loads(done.stdout)
    wrong = {
        pair: text
        for pair, text in said.items()
        if f"needs the package {pair.partition(':')[0]!r}, which is not here: pip install "
        f"'toolwire[{extra_of(pair.partition(':')[2])}]'" not in text[1]
    }
    assert (set(said), wrong) == (set(PAIRS), {})
