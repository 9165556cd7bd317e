"""The pages of the documentation, and the Python blocks on them."""

from __future__ import annotations

import re
from typing import Any

from tests.architecture.source import ROOT

PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def text_of(page: str) -> str:
    """The text of a page, by its path in the project."""
    return (ROOT / page).read_text("utf-8")


def blocks_of(page: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)


def files_of(page: str) -> dict[str, str]:
    """The blocks of a page that are files of a user, by the name in their first line. They need other packages."""
    blocks = re.findall(r"^```py\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    return {block.partition("\n")[0].removeprefix("# "): block for block in blocks}


def module_of(page: str) -> str:
    """The blocks of a page as one module. An import that an earlier block has is left out, as in a user's own file."""
    lines: list[str] = []
    for line in "\n\n".join(blocks_of(page)).splitlines():
        if not line.startswith(("import ", "from ")) or line.endswith("(") or line not in lines:
            lines.append(line)
    return "\n".join([*lines, ""])


def run_blocks(page: str) -> dict[str, Any]:
    """Runs the blocks of a page one after the other, and returns the names that they define."""
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(page):
        exec(compile(block, page, "exec", dont_inherit=True), names)
    return names


def said_by(page: str) -> str:
    """The output that a page gives in its comments.

    These are the comments at the end of a line that prints or runs, and the lines of comments below such a line.
    """
    said: list[str] = []
    for block in blocks_of(page):
        is_output = False
        for line in block.splitlines():
            if line.lstrip().startswith(("print(", "asyncio.run(")):
                is_output = True
                _, mark, comment = line.rpartition("  # ")
                said += [comment] if mark else []
            elif is_output and line.startswith("#"):
                said.append(line.removeprefix("#").removeprefix(" "))
            else:
                is_output = False
    return "".join(f"{line}\n" for line in said)
