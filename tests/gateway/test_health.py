"""`/healthz` and `/readyz` of a server at a port."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.gateway.test_starting import HUNG, QUICK
from toolwire import Store, ToolRegistry, ToolServer
from toolwire.vocabulary.errors import StoreUnavailable


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
    registry.mcp.update({"mcpServers": {"quick": servers["quick"], "hung": {**HUNG, "connectTimeout": 0.1}}})
    assert pages(registry) == (
        200,
        200,
        {"ready": True, "missing": [], "store": "none", "servers": {"quick": "on", "hung": "off"}},
    )


def test_a_server_without_its_store_is_not_ready(
    registry: ToolRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/store.db") as store:
        assert pages(registry, store, token="secret")[1:] == (
            200,
            {"ready": True, "missing": [], "store": "ok", "servers": {}},
        )

        def fail(**_: Any) -> None:
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(store, "runs", fail)
        alive, ready, shown = pages(registry, store)
        assert (alive, ready, shown["store"]) == (200, 503, "unavailable")
