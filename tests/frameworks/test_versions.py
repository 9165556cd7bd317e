"""A framework that is too old is refused with the line that brings a newer one."""

from __future__ import annotations

import importlib.metadata
import re
import runpy
import tomllib

import pytest

from tests.architecture.source import PACKAGE, ROOT
from toolwire import ConfigurationError

ADAPTERS = {
    ("pydantic_ai", "pydantic-ai-slim"): ("2.68", "pydantic-ai"),
    ("openai_agents", "openai-agents"): ("0.24", "openai-agents"),
    ("langchain", "langchain"): ("1.5", "langchain"),
    ("langchain", "langgraph"): ("1.2", "langchain"),
}
"""The least version of each package that an adapter imports, and its extra."""


def import_with(module: str, package: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the module of an adapter afresh where the package has this version."""
    real = importlib.metadata.version
    with monkeypatch.context() as patched:
        patched.setattr(importlib.metadata, "version", lambda name: version if name == package else real(name))
        runpy.run_path(str(PACKAGE / f"frameworks/{module}.py"))


@pytest.mark.parametrize(("module", "package"), ADAPTERS)
def test_a_package_that_is_too_old_is_named_with_the_command(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    least, extra = ADAPTERS[module, package]
    major, minor = map(int, least.split("."))
    old = f"{major}.{minor - 1}.9rc1"
    said = f"needs {package} {least} or later, and {old} is here: pip install 'toolwire[{extra}]'"
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        import_with(module, package, old, monkeypatch)
    # The control: the least version itself.
    import_with(module, package, f"{least}.0", monkeypatch)


def test_the_versions_are_those_of_the_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for (_, package), (least, extra) in ADAPTERS.items():
        assert any(one.startswith(f"{package}>={least},") for one in extras[extra]), package
