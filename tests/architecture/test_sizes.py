"""Files and functions stay small enough to be read whole."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter

from tests.architecture.source import PACKAGE, modules

MODULE_LINES = 500
"""A longer file often has two reasons to change. One that has not says why in a line `# Over 500 lines: REASON`."""
FUNCTION_LINES = 60
FOLDER_FILES = 20


def test_folders_are_short() -> None:
    files = Counter(module.path.parent for module in modules())
    counts = {folder.relative_to(PACKAGE).as_posix(): count for folder, count in files.items()}
    assert {name: count for name, count in counts.items() if count > FOLDER_FILES} == {}


def test_a_long_module_says_why_it_is_long() -> None:
    texts = {module.name: module.path.read_text("utf-8") for module in modules()}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    has_reason = {name for name, text in texts.items() if re.search(r"^# Over 500 lines: \S", text, re.MULTILINE)}
    assert {name for name, count in lines.items() if count > MODULE_LINES} == has_reason
    assert statistics.median(lines.values()) <= 150


def test_functions_do_one_step() -> None:
    lengths = {
        f"{module.name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}
    assert statistics.median(lengths.values()) <= 12
