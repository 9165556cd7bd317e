"""The folder of compiled guests, on each system."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.vocabulary.machine import code_cache

HOME = {"HOME": "/home/me"}


@pytest.mark.parametrize(
    ("system", "environment", "expected"),
    [
        ("linux", HOME, "/home/me/.cache/toolwire/wasm"),
        ("linux", {**HOME, "XDG_CACHE_HOME": "/caches"}, "/caches/toolwire/wasm"),
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/toolwire/wasm"),
        ("linux", {**HOME, "XDG_CACHE_HOME": "caches"}, "/home/me/.cache/toolwire/wasm"),
        ("linux", {**HOME, "XDG_CACHE_HOME": ""}, "/home/me/.cache/toolwire/wasm"),
        ("linux", {"HOME": "home"}, None),
        ("linux", {}, None),
        ("darwin", {**HOME, "XDG_CACHE_HOME": "/caches"}, "/home/me/Library/Caches/toolwire/wasm"),
        ("darwin", {}, None),
        ("win32", {**HOME, "LOCALAPPDATA": "/Local"}, "/Local/toolwire/wasm"),
        ("win32", HOME, None),
        ("win32", {"LOCALAPPDATA": "Local"}, None),
    ],
)
def test_each_system_has_a_folder_of_its_user(
    system: str, environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_cache, "PLATFORM", system)
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert code_cache.code_cache_folder() == (None if expected is None else Path(expected))


def test_no_variable_of_toolwire_moves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_cache.code_cache_folder()
    monkeypatch.setenv("TOOLWIRE_CACHE", "/elsewhere")
    assert code_cache.code_cache_folder() == before
