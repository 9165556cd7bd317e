"""Builds the guest of the WebAssembly sandbox: `make wasm`. Takes half a minute."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import tzdata

from toolwire.sandbox.wasm.guest_file import ABOUT, FOLDER, PACKED, source_digest, source_files

PACKAGE = "toolwire_child"
TOOL = Path(sys.executable).parent / "componentize-py"


def main() -> None:
    """Writes the guest and what is known of it beside the code that runs it, unless they are there."""
    about, source = FOLDER / ABOUT, source_digest()
    if about.exists() and (FOLDER / PACKED).exists() and json.loads(about.read_text())["source"] == source:
        return
    with tempfile.TemporaryDirectory() as place:
        guest = build(Path(place))
    (FOLDER / PACKED).write_bytes(lzma.compress(guest, preset=6))
    digest, tool = hashlib.sha256(guest).hexdigest(), f"componentize-py {version('componentize-py')}"
    facts = {"source": source, "digest": digest, "python": _python_of(guest), "made_by": tool}
    about.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{FOLDER / PACKED}: {(FOLDER / PACKED).stat().st_size / 1e6:.1f} MB by {tool}")


def _python_of(guest: bytes) -> str:
    """Returns the version of the guest's interpreter, which stands before its licence's date."""
    found = re.search(rb"\b(3\.\d+\.\d+) \(", guest)
    if found is None:
        raise SystemExit("the guest does not say which Python it has")
    return found.group(1).decode()


def build(place: Path) -> bytes:
    """Returns the guest: the child's code with the time zones, as componentize-py compiles them."""
    app, made = place / "app", place / "guest.wasm"
    child = FOLDER.parent / "child"
    for file in source_files():
        copy = app / PACKAGE / file.relative_to(child)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    shutil.copytree(Path(tzdata.__file__).parent / "zoneinfo", app / "tzdata" / "zoneinfo")
    world = ["-d", str(Path(__file__).parent / "program.wit"), "-w", "program"]
    command = [str(TOOL), "-q", *world, "componentize", "-p", str(app), f"{PACKAGE}.wasm_app", "-o", str(made)]
    # So that it puts no packages of this machine into the guest.
    (place / "nothing" / "lib" / "site-packages").mkdir(parents=True)
    subprocess.run(command, check=True, env={"VIRTUAL_ENV": str(place / "nothing")})
    return made.read_bytes()


if __name__ == "__main__":
    main()
