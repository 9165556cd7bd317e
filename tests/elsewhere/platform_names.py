"""Names of the standard library that an operating system lacks, as typeshed knows them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

System = Literal["linux", "darwin", "win32"]
MODULES = ("os", "signal", "socket", "select", "time")
"""Modules that lack some names on another system."""
ABSENT = ("fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "syslog", "termios", "tty", "winreg")
"""Modules that are not there on one of the systems."""


@cache
def names_of(module: str, system: System) -> frozenset[str]:
    """The names that the stub of a module defines on a system; those of a module that is not there are none."""
    return frozenset(_names(ast.parse(stub_text(module)).body, system))


def lacking(module: str, system: System) -> frozenset[str]:
    """The names of a module that Linux has and the system has not."""
    return names_of(module, "linux") - names_of(module, system)


@cache
def stub_text(module: str) -> str:
    """The stub of a module of the standard library; empty if there is none, as for a name inside a module."""
    spec = find_spec("mypy")
    assert spec is not None
    assert spec.origin is not None
    path = (Path(spec.origin).parent / "typeshed" / "stdlib").joinpath(*module.split("."))
    for file in (path / "__init__.pyi", path.with_suffix(".pyi")):
        if file.exists():
            return file.read_text("utf-8")
    return ""


def _names(body: list[ast.stmt], system: System) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.If(test=test, body=then, orelse=other):
                yield from _names(then if _holds(test, system) else other, system)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.ImportFrom(module=source, names=names):
                for each in names:
                    if each.name == "*":
                        yield from names_of(source or "", system)
                    else:
                        yield each.asname or each.name
            case _:
                continue


def _holds(test: ast.expr, system: System) -> bool:
    known: dict[str, Any] = {"sys": SimpleNamespace(platform=system, version_info=sys.version_info)}
    return bool(eval(compile(ast.Expression(test), "stub", "eval"), known))
