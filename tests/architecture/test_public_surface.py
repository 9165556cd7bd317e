"""The exact names that can be imported from `toolwire`."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import toolwire
import toolwire.seeds
import toolwire.tools
from tests.architecture.source import PACKAGE
from tests.patience import PATIENCE_S

PUBLIC = [
    "Agent",
    "AgentTeam",
    "ApprovalRequest",
    "AudioBlock",
    "BaseTool",
    "BindingError",
    "BoundValueError",
    "Budget",
    "CallContext",
    "CallFailed",
    "CallNotAnswered",
    "CallNotSent",
    "Caller",
    "ClientProfiles",
    "Condition",
    "ConfigurationError",
    "Decision",
    "DecisionRefused",
    "DefinitionError",
    "DocumentChanged",
    "ImageBlock",
    "InputRequired",
    "Limits",
    "MCPClient",
    "McpCredentials",
    "McpLogin",
    "Policy",
    "ProgramResult",
    "ProgramRunner",
    "Question",
    "QuestionDeclined",
    "RegistrationError",
    "Reply",
    "Retention",
    "Rule",
    "SandboxUnavailable",
    "ServerUnavailable",
    "Session",
    "Store",
    "StoreUnavailable",
    "TextBlock",
    "ToolCall",
    "ToolEvent",
    "ToolParameter",
    "ToolRegistry",
    "ToolResponse",
    "ToolResult",
    "ToolServer",
    "ToolSpec",
    "Toolkit",
    "ToolwireError",
    "Turn",
    "WasmRunner",
    "load_policy",
    "middleware",
    "protocols",
    "reg_toolspec",
    "tool",
]


def test_exactly_the_documented_names_are_public() -> None:
    assert toolwire.__all__ == PUBLIC


@pytest.mark.parametrize("module", ["tools", "seeds"])
def test_the_root_gives_the_names_of_the_box_and_of_older_systems_without_listing_them(module: str) -> None:
    home = import_module(f"toolwire.{module}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [name for name in home.__all__ if getattr(toolwire, name) is not getattr(home, name)] == []
    assert not set(home.__all__) & {*toolwire.__all__, *dir(toolwire)}


@pytest.mark.parametrize("stub", ["__init__", "seeds", "tools", "types"])
def test_type_checkers_and_the_lazy_loader_see_the_same_names(stub: str) -> None:
    module = toolwire if stub == "__init__" else import_module(f"toolwire.{stub}")
    for_checkers: list[str] = []
    for node in ast.parse((PACKAGE / f"{stub}.pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            # A checker offers only names that are imported as themselves.
            for_checkers += [alias.name for alias in node.names if alias.name == alias.asname]
    assert sorted(for_checkers) == module.__all__ == dir(module)
    assert [name for name in module.__all__ if getattr(module, name) is None] == []
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute 'Nothing'$"):
        _ = module.Nothing


def test_a_star_import_gives_every_public_name() -> None:
    found: dict[str, object] = {}
    exec("from toolwire import *", found)
    assert sorted(found.keys() - {"__builtins__"}) == PUBLIC


def test_the_names_are_found_in_a_zip_file_too(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "package"), "zip", PACKAGE.parent, PACKAGE.name)
    code = "import toolwire; print(toolwire.ToolCall('add').name, toolwire.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": archive},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert run.stdout == f"add {archive}/toolwire/__init__.py\n"


def test_public_classes_and_functions_say_what_they_are() -> None:
    names = [*PUBLIC, *toolwire.tools.__all__, *toolwire.seeds.__all__]
    silent = [name for name in names if not (getattr(toolwire, name).__doc__ or "").strip()]
    assert silent == []
