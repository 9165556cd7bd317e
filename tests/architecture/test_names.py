"""A name means one thing where it is seen, and hooks of ours do not look like Python's."""

from __future__ import annotations

import abc
import ast
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, ExitStack
from importlib import import_module

from tests.architecture.source import PACKAGE, modules
from tests.types.test_named_classes import MODULES


def test_two_classes_have_one_name_only_in_different_folders_and_only_private_ones() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.path.parent.relative_to(PACKAGE).as_posix())
    public = {name for module in MODULES for name in import_module(module).__all__}
    twice = {name: folders for name, folders in places.items() if len(folders) > 1}
    assert {
        name: folders for name, folders in twice.items() if name in public or len(set(folders)) < len(folders)
    } == {}


SAME_SHAPE = ("protocols/attp", "protocols/xml", "protocols/json_text", "protocols/native")
"""Sibling folders, one for each calling format, that name the same step alike."""
KITS = "testing"
"""Its modules are named after the module whose users they check."""
SEAMS = "."
"""Its modules list public names of a topic and define none."""
SHARED_MODULES = {"values", "wire"}
"""Names that modules of folders with different shapes still share. Shrink, never grow."""


def test_modules_share_a_name_only_between_folders_of_the_same_shape() -> None:
    places: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules():
        folder = module.path.parent.relative_to(PACKAGE).as_posix()
        if not module.path.stem.startswith("__") and folder not in (KITS, SEAMS):
            places[module.path.stem].add("each format" if folder in SAME_SHAPE else folder)
    assert {name for name, folders in places.items() if len(folders) > 1} == SHARED_MODULES


PYTHONS_OWN = {
    *(name for kind in (type, dict, int, property, abc.ABCMeta) for name in dir(kind)),
    *(name for kind in (ExitStack, AsyncExitStack, AsyncGenerator, Coroutine) for name in dir(kind)),
    *("__copy__", "__deepcopy__", "__del__", "__getattr__", "__next__", "__post_init__"),
}
OUR_HOOKS = {"__tool__"}
"""Hooks of ours with double underscores. Users write `__tool__`; all others have plain names."""


def test_only_python_defines_names_with_double_underscores() -> None:
    defined = {
        (module.name, node.name)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.fullmatch(r"__\w+__", node.name)
    }
    assert defined
    assert {name for name in defined if name[1] not in PYTHONS_OWN | OUR_HOOKS} == set()
