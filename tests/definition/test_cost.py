"""The modules that importing and defining must not load."""

from __future__ import annotations

import subprocess
import sys


def loaded(code: str) -> list[str]:
    heavy = "('pydantic', 'jsonschema', 'mcp')"
    report = f"import sys; print(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_and_defining_loads_no_heavy_library() -> None:
    code = (
        "import toolwire.definition.renderings.describe, toolwire.definition.renderings.stub\n"
        "import toolwire.definition.from_code, toolwire.definition.from_schema, toolwire.mcp.convert\n"
        "from toolwire.definition.from_function import from_function\n"
        "def f(a: int) -> int:\n    '''F.'''\n    return a\n"
        "from_function(f)"
    )
    assert loaded(code) == []


def test_a_tool_known_by_its_schema_needs_no_pydantic() -> None:
    code = (
        "from toolwire.definition.from_schema import from_schema\n"
        "tool = from_schema('f', '', {'type': 'object', 'properties': {'a': {}}}, None, lambda a: a)\n"
        "assert tool.invoke(tool.validate({'a': [1]})) == [1]"
    )
    assert loaded(code) == ["jsonschema"]
