"""Importing stays cheap: heavy modules are loaded only by the code that needs them."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE_S


def loaded_by(statement: str) -> set[str]:
    """The top-level names of all modules that the statement loads in a fresh interpreter."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_else() -> None:
    frozen = {"importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings"}
    assert loaded_by("import toolwire") - frozen == {"toolwire"}


def test_importing_the_registry_loads_nothing_heavy() -> None:
    modules = loaded_by("from toolwire import ToolRegistry")
    # A search reads its thesaurus at its first use.
    assert "toolwire.catalogue.terms" not in modules
    loaded = {name.split(".")[0] for name in modules}
    heavy = {"sqlalchemy", "mcp", "mcp_types", "anyio", "asyncio", "pydantic", "typer"}
    assert loaded & {*heavy, "opentelemetry"} == set()


def test_calling_a_sync_tool_loads_no_event_loop() -> None:
    statement = (
        "import sys; sys.path.insert(0, '.'); from toolwire import ToolRegistry; from benchmarks.plain import add;"
        "registry = ToolRegistry(); registry.register(add); assert registry.invoke('add', {'a': 1, 'b': 2}).data == 3"
    )
    assert "asyncio" not in loaded_by(statement)


def test_a_server_without_a_store_loads_no_database() -> None:
    statement = (
        "from toolwire import ToolRegistry, ToolServer; server = ToolServer(ToolRegistry(), 's');"
        "server.in_memory(); server.asgi()"
    )
    loaded = loaded_by(statement)
    assert "mcp" in loaded
    assert "sqlalchemy" not in loaded
