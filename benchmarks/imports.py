"""The costs of importing and defining, each import in a fresh interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.timing import Figure, medians

RUNS = 11


def figures() -> list[Figure]:
    """Import times against their floors, an agent's against a session's, and the schema of a five-argument function."""
    statements = ("pass", "import toolwire", _PYDANTIC, _REGISTRY, _SESSION, _AGENT)
    seconds: dict[str, list[float]] = {statement: [] for statement in statements}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = _installed(bytecode)
        for statement in seconds:
            _time_of(statement, environment)
        for _ in range(RUNS):
            for statement, times in seconds.items():
                times.append(_time_of(statement, environment))
    middle = {statement: statistics.median(times) for statement, times in seconds.items()}
    return [
        Figure(name="import toolwire", ratio=(middle["import toolwire"] - middle["pass"]) * 1000, limit=5, unit="ms"),
        Figure(
            name=f"{_REGISTRY}, against pydantic's BaseModel", ratio=middle[_REGISTRY] / middle[_PYDANTIC], limit=1.6
        ),
        Figure(name=f"{_AGENT}, against Session", ratio=middle[_AGENT] / middle[_SESSION], limit=1.2),
        Figure(name="schema of a five-argument function", ratio=_schema_ms(), limit=2.5, unit="ms"),
    ]


_PYDANTIC = "from pydantic import BaseModel"
_REGISTRY = "from toolwire import ToolRegistry"
_SESSION, _AGENT = "from toolwire import Session", "from toolwire import Agent"


def _installed(bytecode: str) -> Mapping[str, str]:
    """The environment of imports as after an installation.

    Installing compiles a package. A source tree where writing bytecode is switched off is compiled at each import
    instead: pydantic, which was installed, would not be, and the two could not be compared.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": bytecode}


def _time_of(statement: str, environment: Mapping[str, str]) -> float:
    code = f"import time; started = time.perf_counter(); {statement}; print(time.perf_counter() - started)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(ran.stdout)


def _schema_ms() -> float:
    from toolwire import ToolSpec

    def five(
        query: str, limit: int = 10, tags: list[str] | None = None, exact: bool = False, weight: float = 1.0
    ) -> Any:
        """Searches.

        Args:
            query: What to look for
            limit: How many at most
        """

    def schema() -> object:
        return ToolSpec.from_function(five).input_schema

    schema()  # the first one loads pydantic
    return medians({"schema": schema}, number=20)["schema"] * 1000
