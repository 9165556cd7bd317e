"""Files and functions stay small enough to be read whole."""

from __future__ import annotations

import ast
import statistics
from collections import Counter

from tests.architecture.source import PACKAGE, modules

MODULE_LINES = 500
"""A longer file has two reasons to change. Nine of ten files are shorter than `MOST_LINES`."""
MOST_LINES = 350
FUNCTION_LINES = 60
FOLDER_FILES = 20


def test_folders_are_short() -> None:
    files = Counter(module.path.parent for module in modules())
    counts = {folder.relative_to(PACKAGE).as_posix(): count for folder, count in files.items()}
    assert {name: count for name, count in counts.items() if count > FOLDER_FILES} == {}


def test_modules_are_short() -> None:
    lines = {module.name: len(module.path.read_text("utf-8").splitlines()) for module in modules()}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES} == {}
    assert statistics.quantiles(lines.values(), n=10)[-1] <= MOST_LINES
    assert statistics.median(lines.values()) <= 150


def test_functions_do_one_step() -> None:
    lengths = {
        f"{module.name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}
    assert statistics.median(lengths.values()) <= 12
