"""Uses of toolwire that need an extra, run where packages of it are missing: prints each error as JSON.

An argument `PACKAGE:USE` runs one use in a process of its own without that package. Without arguments all are run.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from toolwire import MCPClient, Session, Store, ToolRegistry, ToolServer, ToolSpec
from toolwire.doctor import diagnose_mcp, log_in_mcp
from toolwire.fleet import ProcrastinateQueue, Worker, WorkerSettings
from toolwire.tools import WebFetchTool, WebSearchTool

DATABASE = "postgresql://u@127.0.0.1:9/d"
URL = "http://127.0.0.1:9/mcp"
CONFIG: Mapping[str, Any] = {"mcpServers": {"fs": {"command": "npx", "args": ["x"]}, "web": {"url": URL}}}


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def with_server(serve: Callable[[ToolServer], object]) -> Callable[[], object]:
    return lambda: serve(ToolServer([add], "sums"))


def reads_pdf() -> object:
    from toolwire.builtin.files.paths import read_path
    from toolwire.facade.built_in.pdf_text import pdf_text

    return pdf_text(b"%PDF-1.7", read_path("/workspace/a.pdf"))


def make_worker() -> object:
    with Store.open("memory:") as store:
        return Worker(store, ProcrastinateQueue(), lambda run, store: Session([add]), WorkerSettings())


USES: dict[str, dict[str, Callable[[], object]]] = {
    "mcp": {
        "MCPClient.stdio": lambda: MCPClient.stdio("x", "npx").list_tools(),
        "MCPClient.http": lambda: MCPClient.http("x", URL).list_tools(),
        "MCPClient.sse": lambda: MCPClient.sse("x", URL).list_tools(),
        "MCPClient.in_memory": lambda: MCPClient.in_memory("x", object()).list_tools(),
        "MCPClient.connect": lambda: MCPClient.stdio("x", "npx").connect(),
        "MCPClient.login": lambda: MCPClient.http("x", URL, auth="oauth").login(),
        "register_mcp_client": lambda: ToolRegistry().register_mcp_client(MCPClient.stdio("x", "npx")),
        "registry.mcp": lambda: ToolRegistry().mcp.add(CONFIG),
        "registry.mcp.add envFile": lambda: ToolRegistry().mcp.add(
            {"mcpServers": {"x": {"command": "npx", "envFile": ".env"}}}
        ),
        "diagnose_mcp": lambda: diagnose_mcp(CONFIG),
        "log_in_mcp": lambda: log_in_mcp(URL),
        "ToolServer.in_memory": with_server(lambda server: server.in_memory()),
        "ToolServer.asgi": with_server(lambda server: server.asgi()),
        "ToolServer.run_http": with_server(lambda server: server.run_http(port=0)),
        "ToolServer.run_stdio": with_server(lambda server: server.run_stdio()),
        "ToolSpec.to_mcp": lambda: ToolSpec.from_function(add).to_mcp(),
    },
    "fastmcp": {
        "ToolSpec.to_fastmcp": lambda: ToolSpec.from_function(add).to_fastmcp(),
        "ToolSpec.from_fastmcp": lambda: ToolSpec.from_fastmcp(object()),
    },
    "openapi": {"register_openapi": lambda: ToolRegistry().register_openapi({})},
    "web": {
        "WebFetchTool": WebFetchTool,
        "WebSearchTool": lambda: WebSearchTool("brave", key="k"),
        "a PDF": reads_pdf,
    },
    "web,ddgs": {"WebSearchTool ddgs": lambda: WebSearchTool("ddgs")},
    "fleet": {
        "ProcrastinateQueue": lambda: ProcrastinateQueue().migrate(DATABASE),
        "Worker": make_worker,
    },
    "pydantic-ai": {"ToolwireToolset": lambda: import_module("toolwire.frameworks.pydantic_ai")},
    "postgres": {
        "Store.open": lambda: Store.open(DATABASE),
        "Store queue": lambda: Store.open(DATABASE, queue=ProcrastinateQueue()),
        "Session store": lambda: Session([add], protocol="json", store=DATABASE),
    },
}
BY_NAME = {name: use for uses in USES.values() for name, use in uses.items()}


def error_of(name: str) -> list[str]:
    """The type and the text of the error, with what the log says."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("toolwire").addHandler(handler)
    try:
        BY_NAME[name]()
    except Exception as error:
        return [type(error).__name__, "\n".join([str(error), *said])]
    finally:
        logging.getLogger("toolwire").removeHandler(handler)
    return ["", "\n".join(said)]


class Without:
    """Finds no package of one name."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def error_without(package: str, name: str) -> list[str]:
    reading, writing = os.pipe()
    if not os.fork():
        sys.meta_path.insert(0, Without(package))  # pyright: ignore[reportArgumentType]
        for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == package]:
            del sys.modules[loaded]
        os.write(writing, json.dumps(error_of(name)).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    os.wait()
    return json.loads(said)


pairs = [argument.split(":") for argument in sys.argv[1:]]
found = (
    {f"{package}:{name}": error_without(package, name) for package, name in pairs}
    if pairs
    else {name: error_of(name) for name in BY_NAME}
)
print(json.dumps(found))
