"""Loads the names of a module when they are first used. Its stub file (`.pyi`) lists them, for type checkers too."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from typing import cast


def load_name(module: str, name: str) -> object:
    """Returns what `name` stands for in the stub of this module, and keeps it in the module.

    Raises:
        AttributeError: The stub does not have the name.
    """
    homes = _homes(module)
    found: object
    if name == "__all__":
        found = sorted(homes)
    elif name in homes:
        home = homes[name]
        # A module lists its submodules as `from package import submodule as submodule`.
        found = import_module(f"{home}.{name}") if home == module else getattr(import_module(home), name)
    else:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    vars(sys.modules[module])[name] = found
    return found


def list_names(module: str) -> list[str]:
    """Returns the names in the stub of this module, in alphabetical order."""
    return sorted(_homes(module))


@cache
def _homes(module: str) -> dict[str, str]:
    """Returns each name of a stub with the module that defines it."""
    source = sys.modules[module]
    stub = f"{(source.__file__ or '').rpartition('.')[0]}.pyi"
    # The loader reads zip files too.
    text = cast("SourceFileLoader", source.__loader__).get_data(stub).decode()
    homes: dict[str, str] = {}
    for line in text.splitlines():
        # Other lines are `from module import *`, whose names that module loads, and declarations.
        match line.split():
            case ["from", home, "import", _, "as", name]:
                homes[name] = home
            case _:
                pass
    return homes
