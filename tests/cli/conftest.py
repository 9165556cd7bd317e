"""Tools and replies for the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store file of this test's commands."""
    path = str(tmp_path / "store.db")
    monkeypatch.setenv("TOOLWIRE_STORE", path)
    return path


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and gives its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def tools(write: Write) -> str:
    """A file with two ordinary tools."""
    return write(
        "shop.py",
        '''
        def add(a: int, b: int = 10) -> int:
            """Adds two numbers.

            Args:
                a: The first.
                b: The second.
            """
            return a + b


        def greet(name: str) -> str:
            """Greets somebody.

            It is polite.
            """
            return f"Hello {name}"
        ''',
    )


@pytest.fixture
def program(write: Write) -> Callable[[str], str]:
    """Writes a reply with this program and gives its path."""

    def program(code: str) -> str:
        head = 'thought = "why"\n\n[tool_call]\nstatus = "success"\ntarget = "what for"\n'
        return write("reply.toml", f"{head}code = '''\n{dedent(code).strip()}\n'''\n")

    return program
