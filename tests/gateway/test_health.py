"""`/healthz` and `/readyz` of a server at a port."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy import Connection, func, select
from starlette.testclient import TestClient

from tests.cli.command_line import run_here
from tests.gateway.conftest import Served
from tests.gateway.test_config import GONE, serve_config, written
from tests.gateway.test_starting import HUNG, QUICK
from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import store as store
from tests.journal.conftest import url as url
from tests.journal.postgres import Server
from tests.patience import PATIENCE_S, until
from toolwire import Store, ToolRegistry, ToolServer
from toolwire.journal.database.tables import METADATA


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry()
    yield made
    made.close()


def pages(registry: ToolRegistry, store: Any = None, **options: Any) -> tuple[int, int, dict[str, Any]]:
    """The status of both pages, and the content of the second."""
    with TestClient(ToolServer(registry, "gateway", store=store, **options).asgi(), "http://localhost") as client:
        ready = client.get("/readyz")
        return client.get("/healthz").status_code, ready.status_code, ready.json()


def test_a_server_is_ready_once_its_required_servers_are_there(registry: ToolRegistry) -> None:
    servers = {"quick": {**QUICK, "required": True}, "hung": {**HUNG, "required": True}}
    registry.mcp.add({"mcpServers": servers}, wait_s=0)
    alive, ready, shown = pages(registry, mode="code")
    assert (alive, ready, shown["servers"]["hung"]) == (200, 503, "starting")
    assert "hung" in shown["missing"]
    hung, unused = {**HUNG, "connectTimeout": 0.1}, {"not_now": {**QUICK, "disabled": True}, "wrong": {}}
    registry.mcp.update({"mcpServers": {"quick": servers["quick"], "hung": hung, **unused}})
    states = {"quick": "on", "hung": "off", "wrong": "off", "not_now": "disabled"}
    until(lambda: pages(registry)[2]["servers"] == states)
    assert pages(registry) == (200, 200, {"ready": True, "missing": [], "store": "none", "servers": states})


def test_a_server_that_goes_on_with_its_former_entry_is_shown(registry: ToolRegistry) -> None:
    registry.mcp.add({"mcpServers": {"quick": QUICK}})
    shown = {"ready": True, "missing": [], "store": "none", "servers": {"quick": "on"}}
    assert pages(registry) == (200, 200, shown)
    registry.mcp.update({"mcpServers": {"quick": {**QUICK, "args": 7}}})
    assert pages(registry) == (200, 200, {**shown, "former": ["quick"]})


def refuse_writes(server: Server, database: str, is_refused: bool) -> None:
    """Makes a database of PostgreSQL read-only, or takes that back."""
    value = "on" if is_refused else "off"
    with psycopg.connect(f"host={server.folder} user=tests dbname=postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = {value}'.encode())
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_server_whose_database_takes_no_writes_is_not_ready(
    registry: ToolRegistry, opened: Callable[[], Store], server: Server, url: str
) -> None:
    store, database = opened(), url.partition("?")[0].rpartition("/")[2]
    ready = {"ready": True, "missing": [], "store": "ok", "servers": {}}
    assert pages(registry, store, token="secret")[1:] == (200, ready)
    refuse_writes(server, database, is_refused=True)
    # Its answers come still.
    assert store.runs() == []
    assert pages(registry, store) == (200, 503, {**ready, "ready": False, "store": "unavailable"})
    refuse_writes(server, database, is_refused=False)
    assert pages(registry, store)[1:] == (200, ready)


def test_a_server_that_may_not_write_to_its_disk_is_not_ready(served: Callable[..., Served]) -> None:
    process = served()
    base, most = process.url.removesuffix("/mcp"), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def ready() -> int:
        return httpx2.get(f"{base}/readyz").status_code

    assert ready() == 200
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (0, most[1]))
    until(lambda: ready() == 503)
    assert httpx2.get(f"{base}/healthz").status_code == 200
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, most)
    until(lambda: ready() == 200)


def rows(store: Store) -> dict[str, int]:
    """The number of rows of each table. The size of one may change without them: a server tidies up by itself."""

    def count(connection: Connection) -> dict[str, int]:
        tables = METADATA.sorted_tables
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
        }

    return store._database.read(count)


def test_a_write_leaves_nothing_and_probes_share_one(registry: ToolRegistry, store: Store) -> None:
    writes: list[None] = []

    def try_write() -> None:
        writes.append(store_write())

    store_write, before = store.try_write, rows(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "try_write", try_write)
        with TestClient(ToolServer(registry, "gateway", store=store).asgi(), "http://localhost") as client:
            assert [client.get("/readyz").status_code for _ in range(5)] == [200] * 5
    assert len(writes) < 5
    assert rows(store) == before


def test_a_required_server_whose_entry_is_wrong_ends_the_command(tmp_path: Path, served: Callable[..., Served]) -> None:
    def file(is_required: bool) -> str:
        wrong = {"command": "sh", "args": 7, "required": is_required}
        return written(tmp_path / "mcp.json", {"good": QUICK, "wrong": wrong})

    process = serve_config("--config", file(True), "--store", "none", cwd=tmp_path)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3
    assert "mcpServers.wrong.args: 7 is not a list of texts. The MCP server 'wrong' is off\n" in said
    assert "has required servers that cannot be used: 'wrong'\nThe warnings say why.\n" in said
    # The control: without the key the others are served.
    ready = httpx2.get(served("--config", file(False), "--store", "none").url.replace("/mcp", "/readyz")).json()
    assert (ready["ready"], ready["servers"]["wrong"]) == (True, "off")


def test_doctor_shows_the_state_of_each_server(tmp_path: Path) -> None:
    servers = {"quick": QUICK, "hung": {**HUNG, "connectTimeout": 0.3}, "gone": GONE, "wrong": {"timeout": 1}}
    ended = run_here("mcp", "doctor", "--config", written(tmp_path / "mcp.json", servers))
    states = {line.split()[0]: line.split()[1] for line in ended.stdout.splitlines() if len(line.split()) > 1}
    assert {name: states[name] for name in servers} == {"quick": "on", "hung": "off", "gone": "off", "wrong": "off"}
    assert f"{tmp_path / 'mcp.json'}: mcpServers.wrong.command: is missing" in ended.stdout
    assert ended.code == 1
