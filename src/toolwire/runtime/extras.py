"""Packages that come with an extra of toolwire, and the error for those that are not here."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

from toolwire.vocabulary.errors import ConfigurationError

Extra = Literal[
    "browser",
    "fastmcp",
    "fleet",
    "langchain",
    "mcp",
    "openai-agents",
    "openapi",
    "postgres",
    "pydantic-ai",
    "web",
    "web,ddgs",
]
"""An extra whose absence is an error. Without those of `otel`, `toolwire serve` goes on and says what is missing."""
PAGE_PACKAGES = ("html_to_markdown", "pypdfium2", "selectolax", "trafilatura")
"""Packages of the extra `web` that only the process imports that parses pages."""


def install_command(extra: Extra) -> str:
    """Returns the command that installs an extra."""
    return f"pip install 'toolwire[{extra}]'"


@contextmanager
def packages_of(extra: Extra, user: str) -> Generator[None]:
    """Imports in this context are those of an extra. `user` is what needs them, such as `MCPClient`.

    Raises:
        ConfigurationError: A package cannot be imported. The message has the command that installs it.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        # A name that our own modules lack is a defect, and no package mends it.
        if package == "toolwire":
            raise
        named = f"needs the package {package!r}, which" if package else "needs a package that"
        why = f"{named} is not here" if isinstance(error, ModuleNotFoundError) else f"cannot import a package ({error})"
        raise ConfigurationError(f"{user} {why}: {install_command(extra)}") from error


def require_version(extra: Extra, user: str, package: str, at_least: str) -> None:
    """Checks that a package of an extra is not too old. One that is not here is left to the import of it.

    Raises:
        ConfigurationError: It is older than `at_least`, such as `2.68`.
    """
    # It takes ten milliseconds to import.
    from importlib import metadata

    try:
        here = metadata.version(package)
    except metadata.PackageNotFoundError:
        return
    if _numbers(here) < _numbers(at_least):
        raise ConfigurationError(
            f"{user} needs {package} {at_least} or later, and {here} is here: {install_command(extra)}"
        )


def _numbers(written: str) -> tuple[int, ...]:
    """Returns the numbers of a release: those of `2.68.0rc1` are 2, 68 and 0."""
    found = re.match(r"\d+(?:\.\d+)*", written)
    return () if found is None else tuple(map(int, found[0].split(".")))


def require_packages(extra: Extra, user: str, packages: tuple[str, ...]) -> None:
    """Checks that packages are there that are imported later, or by another process.

    Raises:
        ConfigurationError: One is not here.
    """
    with packages_of(extra, user):
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
