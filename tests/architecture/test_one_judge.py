"""The permission that counts is computed in one place: `invocation/judge.py` alone asks a policy."""

from __future__ import annotations

import ast

from tests.architecture.source import modules

CALLERS = {"agent", "builtin", "facade", "gateway", "invocation", "session"}
"""Layers that have a policy at hand."""


def test_only_one_module_asks_a_policy_for_a_verdict() -> None:
    asking = {
        module.name
        for module in modules()
        if module.layer in CALLERS
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VERDICTS
    }
    assert asking == {"toolwire.invocation.judge"}


VERDICTS = {"judge", "constant_verdict"}
"""The methods of a policy that give a verdict."""


def test_only_an_entry_chooses_between_its_permission_and_that_of_its_tool() -> None:
    choosing = {
        module.name
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.BoolOp)
        and [value.attr for value in node.values if isinstance(value, ast.Attribute)] == ["permission", "permission"]
    }
    assert choosing == {"toolwire.catalogue.entry"}
