"""The sandbox, the same without its layers, and the canaries, shared by all attacks that one process runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.attacks.arena import Arena, WasmArena
from tests.attacks.canaries import ENVIRONMENT_NAME, Canaries


@pytest.fixture(scope="session")
def canaries() -> Iterator[Canaries]:
    with closing(Canaries()) as canaries, pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT_NAME, canaries.environment_secret)
        yield canaries


@pytest.fixture(scope="session")
def arena(canaries: Canaries) -> Iterator[Arena]:
    """The sandbox as it is."""
    with closing(Arena(canaries)) as arena:
        yield arena


@pytest.fixture(scope="session")
def wasm_arena(canaries: Canaries) -> Iterator[WasmArena]:
    """The sandbox in WebAssembly."""
    with closing(WasmArena(canaries)) as arena:
        yield arena


@pytest.fixture(scope="session")
def arena_without(canaries: Canaries) -> Iterator[Callable[[str], Arena]]:
    """The sandbox without some layers, by their names; one of each kind is kept."""
    kept: dict[str, Arena] = {}
    with ExitStack() as closing_all:

        def make(layers: str) -> Arena:
            if layers not in kept:
                kept[layers] = Arena(canaries, without=layers)
                closing_all.callback(kept[layers].close)
            return kept[layers]

        yield make


@pytest.fixture(scope="session")
def permissive_arena(canaries: Canaries) -> Iterator[Arena]:
    """The sandbox as it is, for a registry that permits every tool."""
    with closing(Arena(canaries, permit_all=True)) as arena:
        yield arena
