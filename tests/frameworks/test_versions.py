"""A framework that is too old is refused with the line that brings a newer one."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib

import pytest

from tests.architecture.source import ROOT
from tests.patience import PATIENCE_S

OLD = """
import importlib.metadata
real = importlib.metadata.version
importlib.metadata.version = lambda name: {old!r} if name == {package!r} else real(name)
import toolwire.frameworks.{module}
"""
ADAPTERS = {
    ("pydantic_ai", "pydantic-ai-slim"): ("2.68", "pydantic-ai"),
    ("openai_agents", "openai-agents"): ("0.24", "openai-agents"),
    ("langchain", "langchain"): ("1.5", "langchain"),
    ("langchain", "langgraph"): ("1.2", "langchain"),
}
"""The least version of each package that an adapter imports, and its extra."""


def imported(module: str, package: str, old: str) -> subprocess.CompletedProcess[str]:
    code = OLD.format(module=module, package=package, old=old)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize(("module", "package"), ADAPTERS)
def test_a_package_that_is_too_old_is_named_with_the_command(module: str, package: str) -> None:
    least, extra = ADAPTERS[module, package]
    major, minor = map(int, least.split("."))
    old = f"{major}.{minor - 1}.9rc1"
    refused = imported(module, package, old)
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert f"needs {package} {least} or later, and {old} is here: pip install 'toolwire[{extra}]'" in last
    # The control: the least version itself, and the one that is here.
    assert imported(module, package, f"{least}.0").returncode == 0
    assert imported(module, package, importlib.metadata.version(package)).returncode == 0


def test_the_versions_are_those_of_the_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for (_, package), (least, extra) in ADAPTERS.items():
        assert any(one.startswith(f"{package}>={least},") for one in extras[extra]), package
