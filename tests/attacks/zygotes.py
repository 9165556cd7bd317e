"""The fork server with layers taken away, for controls. A script; its own file name says which.

The tests start it by a link named `without <layer> <layer> ....py` that lies beside a link `child` to the sandbox's
own code. The layers: descriptors, privileges, limits, landlock, seccomp, namespaces.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

LAYERS = ("descriptors", "privileges", "limits", "landlock", "seccomp", "namespaces")
SYSTEM_LAYERS = {"limits", "landlock", "seccomp"}


def main() -> None:
    """Loads the sandbox's own start script, and takes the layers away before it goes on."""
    taken = frozenset(Path(__file__).stem.split()[1:])
    start = _load(Path(__file__).parent / "child" / "start.py")
    import_module = importlib.import_module

    def import_and_take_away(name: str, package: str | None = None) -> Any:
        module = import_module(name, package)
        if name == f"{start.PACKAGE}.fork_server":
            importlib.import_module = import_module
            take_away(start.PACKAGE, taken)
        return module

    importlib.import_module = import_and_take_away
    start.main()


def take_away(package: str, taken: frozenset[str]) -> None:
    """Replaces the steps of the set-up that belong to these layers by nothing."""
    lockdown = sys.modules[f"{package}.kernel.lockdown"]
    namespaces = sys.modules[f"{package}.kernel.namespaces"]
    if "limits" in taken:
        _replace(lockdown, "_FOR_ALL", ())
        _replace(lockdown, "_FOR_CHILD", ())
        _replace(lockdown.Lockdown, "allow", lambda self, process, allowance: None)
    if "privileges" in taken:
        _replace(lockdown, "_restrictions", lambda zygote: [])
    if "descriptors" in taken:
        _replace(lockdown, "_closer", list)
    if "namespaces" in taken:
        nothing = namespaces.NamespaceState(own_processes=False, refused="taken away")
        _replace(namespaces, "enter", lambda announce: nothing)
    _vouch(package, taken)


def _replace(owner: Any, name: str, value: Any) -> None:
    """If a step had been renamed, taking it away would silently change nothing."""
    if not hasattr(owner, name):
        raise SystemExit(f"{owner} has no {name}")
    setattr(owner, name, value)


def _vouch(package: str, taken: frozenset[str]) -> None:
    """The self-test would notice, and the host would rightly refuse: here it has to say that all is well."""
    self_test = sys.modules[f"{package}.kernel.self_test"]

    def examine(attempt: Any, present: frozenset[str], landlock_abi: int, entered: Any) -> Any:
        report = {"taken away": " ".join(sorted(taken))}
        return self_test.ObservedIsolation(level="kernel", report=report, layers=present - (taken & SYSTEM_LAYERS))

    _replace(self_test, "examine", examine)


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("start", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
