"""A name means one thing: classes have unique names, and few modules share one."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.source import modules

SHARED_CLASSES = {
    "Inside",
    "_Text",
}
"""Names that two classes still share. Shrink, never grow."""


def test_no_two_classes_have_the_same_name() -> None:
    places: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(module.name)
    assert {name for name, found in places.items() if len(found) > 1} == SHARED_CLASSES
