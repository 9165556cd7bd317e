"""The script that the host starts: loads this folder as its own package and becomes the zygote."""

import importlib.util
import pathlib
import sys
from typing import Any, cast

PACKAGE = "toolwire_child"


def main() -> None:
    """Loads the package from the folder of this file; it searches no path of the host."""
    folder = pathlib.Path(__file__).resolve().parent
    places = [str(folder)]
    # asyncio and hashlib work without them, and OpenSSL's memory would be mapped into every child.
    for name in ("ssl", "_hashlib"):
        sys.modules[name] = cast("Any", None)
    spec = importlib.util.spec_from_file_location(PACKAGE, folder / "__init__.py", submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {folder}")
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{PACKAGE}.fork_server").main()


if __name__ == "__main__":
    main()
