"""One module knows the operating system; the names of Linux are written there, and in a few files that run on it alone.

`tests/elsewhere/pyright.json` lists those files. `make types-elsewhere` checks the types of the others for macOS and
Windows, where these may differ.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, Module, modules
from tests.elsewhere.platform_names import ABSENT, MODULES, lacking

LINUX_ALONE = [
    path.removeprefix("../../src/toolwire/")
    for path in json.loads((ROOT / "tests/elsewhere/pyright.json").read_text())["exclude"]
]
KNOWS = "vocabulary/machine/system.py"
LACKING = {name: lacking(name, "darwin") | lacking(name, "win32") for name in MODULES}
PLATFORM = {("sys", "platform"), ("os", "name"), ("os", "uname"), ("platform", "system")}


def of_one_system(module: Module) -> Iterator[str]:
    """What a module names that another system lacks, and its questions which system this is."""
    for node in module.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=source), attr=name):
                if name in LACKING.get(source, ()) or (source, name) in PLATFORM:
                    yield f"{source}.{name}"
            case ast.ImportFrom(module=str(source), names=names, level=0):
                for each in names:
                    if each.name in LACKING.get(source, ()) or (source, each.name) in PLATFORM:
                        yield f"{source}.{each.name}"
            case _:
                continue
    yield from module.imports & set(ABSENT)


def path_of(module: Module) -> str:
    return module.path.relative_to(PACKAGE).as_posix()


def is_listed(path: str) -> bool:
    return any(Path(path).is_relative_to(listed) for listed in LINUX_ALONE)


def test_the_names_that_a_system_lacks_are_known() -> None:
    assert {"fork", "O_CLOEXEC", "O_PATH", "register_at_fork", "killpg"} <= LACKING["os"]
    assert {"SIGKILL", "SIGHUP"} <= LACKING["signal"]
    assert "SIGTERM" not in LACKING["signal"]


def test_a_module_names_nothing_that_a_system_lacks() -> None:
    others = [module for module in modules() if path_of(module) != KNOWS and not is_listed(path_of(module))]
    assert others
    lacking = {path_of(module): list(of_one_system(module)) for module in others}
    assert {path: names for path, names in lacking.items() if names} == {}


@pytest.mark.parametrize("listed", [KNOWS, *LINUX_ALONE])
def test_a_file_is_listed_because_it_names_something_of_one_system(listed: str) -> None:
    inside = [module for module in modules() if Path(path_of(module)).is_relative_to(listed)]
    assert [name for module in inside for name in of_one_system(module)] != []
