"""Checks types for macOS and Windows: `python -m tests.elsewhere.platform_types`.

Only the files that import something which typeshed describes by its system can have other types there. The files of
pyright.json that run on Linux alone are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT, Module, modules
from tests.elsewhere.platform_names import stub_text

SETTINGS = Path(__file__).with_name("pyright.json")
PLATFORMS = ("Darwin", "Windows")
KNOWS = "toolwire.vocabulary.machine.system"
"""Our module that has other names on each system."""


def may_differ(module: Module) -> bool:
    """Whether a module imports something that another system has otherwise."""
    standard = [name for name in module.imports if name.split(".")[0] in sys.stdlib_module_names]
    return KNOWS in (module.name, *module.imports) or any("sys.platform" in stub_text(name) for name in standard)


def check(platform: str) -> bool:
    """Runs pyright for a platform, prints its complaints, and returns whether there are any."""
    settings = json.loads(SETTINGS.read_text())
    excluded = [(SETTINGS.parent / path).resolve() for path in settings["exclude"]]
    files = [module.path for module in modules() if may_differ(module)]
    included = [path for path in files if not any(path.is_relative_to(each) for each in excluded)]
    with tempfile.TemporaryDirectory() as folder:
        # pyright takes relative paths alone.
        own = {
            "include": [os.path.relpath(path, folder) for path in included],
            "exclude": [],
            "strict": [os.path.relpath(PACKAGE, folder)],
            # Otherwise our modules that are not included count as those of another package.
            "extraPaths": [os.path.relpath(PACKAGE.parent, folder)],
            "venvPath": os.path.relpath(ROOT, folder),
        }
        (project := Path(folder) / "pyrightconfig.json").write_text(json.dumps({**settings, **own}))
        command = [Path(sys.executable).with_name("pyright"), "--outputjson", "--project", project]
        done = subprocess.run([*command, "--pythonplatform", platform], stdout=subprocess.PIPE, check=False, text=True)
    said = json.loads(done.stdout)
    for one in said["generalDiagnostics"]:
        print(f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}")
    count = said["summary"]["filesAnalyzed"]
    print(f"types on {platform}: {count} of {len(modules())} files", flush=True)
    assert count == len(included), done.stdout
    return bool(said["generalDiagnostics"])


if __name__ == "__main__":
    sys.exit(any(check(platform) for platform in PLATFORMS))
