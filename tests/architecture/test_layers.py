"""The layer table of ARCHITECTURE.md, held."""

from __future__ import annotations

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source import ROOT, modules

LOWER = {
    "vocabulary": set[str](),
    "sandbox/child": set[str](),
    "runtime": {"vocabulary"},
    "definition": {"vocabulary"},
    "permission": {"vocabulary", "definition"},
    "protocols": {"vocabulary", "definition"},
    "catalogue": {"vocabulary", "definition", "permission"},
    "sandbox": {"vocabulary", "runtime"},
    "invocation": {"vocabulary", "runtime", "definition", "permission", "catalogue"},
    "journal": {"vocabulary", "runtime", "permission"},
    "observability": {"vocabulary"},
    "builtin/files": {"vocabulary"},
    "builtin/web": {"vocabulary", "sandbox/child"},
    "mcp": {"vocabulary", "runtime", "definition"},
    "openapi": {"vocabulary", "definition", "builtin/web"},
    "builtin": {"vocabulary", "runtime", "definition"},
    "models": {"vocabulary", "protocols"},
}
FACADE = {*LOWER} - {"sandbox/child"}
LAYERS = {
    **LOWER,
    "facade": FACADE,
    "session": {*FACADE, "facade"},
    "agent": {*FACADE, "facade", "session"},
    "testing": {*FACADE, "facade", "session"},
    "gateway": {*FACADE, "facade", "session"},
    "fleet": {*FACADE, "facade", "session"},
    "frameworks": {*FACADE, "facade", "session"},
    "cli": {"root", "fleet"},
}
MORE = {
    "toolwire.builtin.code_execution": {"sandbox"},
    "toolwire.builtin.program_record": {"sandbox"},
    "toolwire.builtin.tool_groups": {"catalogue"},
    "toolwire.catalogue.similar_names": {"sandbox/child"},
    "toolwire.cli.chat_models": {"models"},
    "toolwire.cli.commands.chat_command": {"models"},
    "toolwire.mcp.oauth.authorization_network": {"builtin/web"},
    "toolwire.cli.commands.mcp_command": {"vocabulary"},
    "toolwire.cli.config_watch": {"vocabulary"},
    "toolwire.cli.loading": {"mcp"},
    "toolwire.cli.display": {"vocabulary"},
}
"""Modules that may import a layer that the rest of their folder may not."""


def layer_of(name: str) -> str:
    parts = name.split(".")[1:]
    below = "/".join(parts[:2])
    if below in LOWER:
        return below
    return parts[0] if parts and parts[0] in LAYERS else "root"


def test_a_module_imports_only_layers_below_its_own() -> None:
    forbidden: dict[str, set[str]] = {}
    for module in modules():
        if module.layer != "root":
            allowed = LAYERS[module.layer] | MORE.get(module.name, set()) | {module.layer}
            ours = {layer_of(name) for name in module.imports if name.split(".")[0] == "toolwire"}
            forbidden[module.name] = ours - allowed
    assert {name: layers for name, layers in forbidden.items() if layers} == {}


@pytest.mark.parametrize("layer", ["vocabulary", "sandbox/child"])
def test_the_lowest_layers_import_the_standard_library_only(layer: str) -> None:
    inside = {module.path.stem for module in modules() if module.layer == layer}
    for module in modules():
        if module.layer == layer:
            outside = {name.split(".")[0] for name in module.imports} - sys.stdlib_module_names - {"toolwire"}
            # The child is run as a script from its own folder, so that its files know each other by bare name.
            assert outside - (inside if layer == "sandbox/child" else set()) == set(), module.name


def test_nothing_below_the_facade_names_what_users_hold() -> None:
    names = re.compile(r"\b(ToolSpec|ToolRegistry|Toolkit|BaseTool)\b")
    for module in modules():
        if module.layer in LOWER and module.layer != "root":
            code = [line for line in module.path.read_text("utf-8").splitlines() if names.search(line)]
            assert [line for line in code if re.search(rf"(import|class|=|\() *({names.pattern})", line)] == []


def test_nothing_imports_what_is_there_for_testing() -> None:
    users = {module.name for module in modules() if any(layer_of(name) == "testing" for name in module.imports)}
    assert {name for name in users if not name.startswith("toolwire.testing")} == set()


def test_only_the_command_line_imports_the_package_root() -> None:
    guilty = [
        module.name for module in modules() if module.layer not in {"cli", "root"} and "toolwire" in module.imports
    ]
    assert guilty == []


def test_modules_form_no_cycle() -> None:
    graph = {module.name: {name for name in module.imports if name.startswith("toolwire.")} for module in modules()}
    seen: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name]) if name in trail else ""
        if seen.get(name):
            return
        for other in graph.get(name, set()):
            visit(other, (*trail, name))
        seen[name] = 1

    for name in graph:
        visit(name, ())


def test_no_two_parts_of_a_folder_import_each_other() -> None:
    """A part is a file or a folder with all below it."""
    names = {module.name for module in modules()}
    graphs: dict[str, dict[str, set[str]]] = {}
    for module in modules():
        for name in module.imports:
            if name not in names:
                continue
            ours, other = module.name.split("."), name.split(".")
            depth = next((at for at, (one, two) in enumerate(zip(ours, other, strict=False)) if one != two), None)
            if depth:
                graph = graphs.setdefault(".".join(ours[:depth]), {})
                graph.setdefault(ours[depth], set()).add(other[depth])
    circles: dict[str, list[str]] = {}
    for folder, graph in graphs.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circles[folder] = error.args[1]
    assert circles == {}


def test_the_page_and_this_test_give_the_same_table() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z/]+)` \| ([^|]+) \|", page, re.MULTILINE))
    written = {layer: set(re.findall(r"`([a-z/]+)`", cell.split(";")[0])) for layer, cell in rows.items()}
    assert {layer: names for layer, names in written.items() if layer in LOWER} == LOWER
    assert set(rows) == set(LAYERS)


def test_nothing_that_a_model_wrote_can_reach_code_run_in_this_process() -> None:
    importers = {module.name for module in modules() if "toolwire.definition.from_code" in module.imports}
    assert importers == {"toolwire.facade.tools.tool_spec"}
    callers = [
        module.name
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "from_code"
    ]
    assert callers == []
    builders = {
        module.name
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"exec", "eval"}
    }
    assert {name for name in builders if ".sandbox.child." not in name} == {"toolwire.definition.from_code"}
