"""What is public works on macOS and Windows, as far as their names in the standard library say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

import pytest

from tests.architecture.source import PACKAGE, ROOT
from tests.patience import PATIENCE_S
from toolwire.vocabulary.machine.code_cache import code_cache_folder

SYSTEMS = ("darwin", "win32")


@pytest.fixture(scope="module", params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def saw(system: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process of that system saw, by the part of the surface."""
    folder = tmp_path_factory.mktemp(system)
    # The compiled guest of this machine serves there too.
    compiled = code_cache_folder()
    assert compiled is not None
    (folder / "Library").mkdir()
    (folder / "Library/Caches").symlink_to(compiled.parent.parent)
    of_user = {"HOME": str(folder), "LOCALAPPDATA": str(compiled.parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.elsewhere.surface", system],
        cwd=folder,
        env={**os.environ, **of_user, "PYTHONPATH": os.pathsep.join(map(str, (PACKAGE.parent, ROOT)))},
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "saw.json").read_text())


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("public_names", []),
        ("every_module", []),
        ("sessions", [3, 7]),
        ("programs", ["3\n", "wasm"]),
        ("store_and_approval", 11),
        ("raw_files", "1: one\n2: two"),
        ("mcp_in_memory", {"result": 2}),
        ("mcp_process", {"result": 6}),
        ("mcp_served", [{"result": 4}, {"result": 4}]),
        ("tokens", "t"),
    ],
)
def test_it_works(part: str, expected: Any, saw: dict[str, Any]) -> None:
    assert saw[part] == expected


def test_each_command_ends_as_on_linux(saw: dict[str, Any]) -> None:
    assert {line: ended for line, ended in saw["commands"].items() if ended != [0, ""]} == {
        "approvals list --store sqlite:///runs.db": [0, "nothing waits for a person\n"],
    }


def test_the_tools_of_a_folder_work_on_macos(system: str, saw: dict[str, Any]) -> None:
    if system == "win32":
        assert saw["folder_tools"] == (
            "the tools of one folder need Linux or macOS, which keep each path inside of it, and this is win32. Here "
            "take an MCP server for files, or register the raw file tools (view_text_file, write_text_file, "
            "insert_text_file), of which a person confirms each call"
        )
        return
    one, two = (sha256(text).hexdigest() for text in (b"one\n", b"two\n"))
    assert saw["folder_tools"] == [
        f"Wrote /workspace/deep/a.txt, sha256 {one}.",
        f"Edited /workspace/deep/a.txt, sha256 {two}.",
        "Moved /workspace/deep/a.txt to /workspace/b.txt.",
        "two\n",
        {"entries": ["/workspace/b.txt:1: two"], "next_start": None},
        "file",
        "/workspace/link is a symbolic link, which is not followed: use the path of the file itself",
        "/workspace/b.txt exists already: choose another name, or delete it first",
        "/workspace/b.txt is deleted.",
        {"entries": ["deep/"], "next_start": None},
    ]


def test_what_needs_linux_says_so_when_it_is_made(system: str, saw: dict[str, Any]) -> None:
    pages, sandbox = saw["what_needs_linux"]
    assert pages == (
        f"web_fetch reads HTML and PDF in a process that Linux confines, and this is {system}: it reads only text and "
        "JSON"
    )
    assert sandbox == (
        f"SandboxUnavailable: the runner 'kernel' needs Linux, and this is {system}\n"
        "Or run programs in WebAssembly, one wall inside this process: pip install 'toolwire[wasm]', and runner='wasm'."
    )
