"""The pages of docs/built_in, made from the tools' definitions and from built_in.toml.

Run: make tool-pages. `test_built_in_pages.py` fails while a page is not the one that this makes.
"""

from __future__ import annotations

import ast
import io
import itertools
import json
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.architecture.source import PACKAGE, ROOT
from toolwire import ToolSpec
from toolwire.tools import built_in_tools

FOLDER = ROOT / "docs/built_in"
SOURCE = Path(__file__).with_name("built_in.toml")
_NO_REGISTRY = (
    "No registry has these tools by itself: import them from `toolwire.tools`. "
    "`toolwire tools --builtin` lists them, and `built_in_tools()` gives their definitions. "
    "`make tool-pages` makes these pages from the definitions."
)
LINE = 500
"""Characters of an error that a page shows."""
IDEMPOTENT = {
    "natural": "runs again",
    "key": "gives the result of the first call",
    "no": "runs again only if a person allows it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a page that the definition does not hold."""

    kind: Mapping[str, Any]
    own: Mapping[str, Any]

    @property
    def limits(self) -> list[str]:
        """The constants, as `module:NAME`."""
        return [*self.own.get("limits", ()), *self.kind["limits"]]


def pages() -> dict[str, str]:
    """Returns every page by its file name."""
    document = tomllib.loads(SOURCE.read_text("utf-8"))
    kinds = {name: kind for kind in document["kind"].values() for name in kind["tools"]}
    specs = built_in_tools()
    missing = {spec.name for spec in specs} ^ set(kinds) | {spec.name for spec in specs} ^ set(document["tool"])
    if missing:
        raise ValueError(f"built_in.toml and built_in_tools() differ in {', '.join(sorted(missing))}")
    made = {
        f"{spec.name}.md": page_of(spec, Parts(kind=kinds[spec.name], own=document["tool"][spec.name]))
        for spec in specs
    }
    return {"README.md": _index(specs, kinds), **made}


def page_of(spec: ToolSpec, parts: Parts) -> str:
    """Returns the page of one tool."""
    lines = [f"# {spec.name}", "", *_description(spec), "", "```", _signature(spec), "```", ""]
    lines += [*_parameters(spec), *_facts(spec, parts), "## Example", ""]
    example, errors = _ran(spec.name, parts)
    lines += ["```python", *example, "```", "", "## Errors", "", "The model reads, for example:", ""]
    for arguments, kind, error in errors:
        lines += ["```", arguments, f"{kind}: {error}", "```", ""]
    lines += ["## Limits", "", *(f"- {_limit(name)}" for name in parts.limits), ""]
    lines += [f"[All tools](README.md). More: [{_title(parts.kind['page'])}]({parts.kind['page']}).", ""]
    return "\n".join(lines)


def _index(specs: list[ToolSpec], kinds: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "# Tools in the box",
        "",
        _NO_REGISTRY,
        "",
        "| tool | does | permission | effects | page |",
        "|---|---|---|---|---|",
    ]
    for spec in specs:
        first, page = spec.description.partition("\n")[0], kinds[spec.name]["page"]
        facts = (f"[{spec.name}]({spec.name}.md)", first, spec.permission, _effects(spec), f"[{_title(page)}]({page})")
        lines.append(f"| {' | '.join(facts)} |")
    return "\n".join([*lines, ""])


def _title(page: str) -> str:
    return (FOLDER / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _description(spec: ToolSpec) -> list[str]:
    return spec.description.splitlines()


def _signature(spec: ToolSpec) -> str:
    required = spec.input_schema.get("required", [])
    told = [
        name if name in required else f"{name}={schema['default']!r}" if "default" in schema else f"{name}=None"
        for name, schema in spec.input_schema["properties"].items()
    ]
    return f"{spec.name}({', '.join(told)})"


def _parameters(spec: ToolSpec) -> list[str]:
    properties = spec.input_schema["properties"]
    if not properties:
        return []
    rows = [f"| `{name}` | {_type(schema)} | {schema.get('description', '')} |" for name, schema in properties.items()]
    return ["| parameter | type | meaning |", "|---|---|---|", *rows, ""]


def _type(schema: Mapping[str, Any]) -> str:
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    return " or ".join(
        f"list of {_type(option['items'])}" if option.get("type") == "array" else option.get("type", "object")
        for option in options
    )


def _effects(spec: ToolSpec) -> str:
    return ", ".join(sorted(spec.__tool__().effects.kinds)) or "not declared"


def _facts(spec: ToolSpec, parts: Parts) -> list[str]:
    effects = spec.__tool__().effects
    facts = {
        "permission": f"`{spec.permission}`",
        "effects": _effects(spec),
        "after a crash in a call": IDEMPOTENT[effects.idempotent],
        "labels of results": ", ".join(sorted(effects.labels)) or "none",
        "get it by": parts.kind["get"].replace("{name}", spec.name),
    }
    return ["| | |", "|---|---|", *(f"| {name} | {fact} |" for name, fact in facts.items()), ""]


def _limit(name: str) -> str:
    """Returns the docstring of a constant, with its value."""
    module, _, constant = name.partition(":")
    value = getattr(import_module(f"toolwire.{module}"), constant)
    body = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text("utf-8")).body
    for node, after in itertools.pairwise(body):
        match node, after:
            case (
                ast.Assign(targets=[ast.Name(id=named)]) | ast.AnnAssign(target=ast.Name(id=named)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if named == constant:
                return f"{value:,.10g}: {' '.join(text.split())}"
            case _:
                continue
    raise ValueError(f"{name} has no docstring")


def _ran(name: str, parts: Parts) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Runs the example and the wrong calls. Returns the example with its output as comments, and the errors."""
    source = f"{parts.kind['setup'].replace('{name}', name).strip()}\n\n{parts.own['example'].strip()}\n"
    names: dict[str, Any] = {"__name__": "page"}
    shown: list[str] = []
    with _elsewhere():
        written, after = source.splitlines(), 0
        for node in ast.parse(source).body:
            end = node.end_lineno or 0
            shown += written[after:end]
            after = end
            shown += [f"# {line}".rstrip() for line in _output(node, names)]
        errors = [(arguments, *_error(names, name, json.loads(arguments))) for arguments in parts.own["wrong"]]
    return shown, errors


def _output(node: ast.stmt, names: dict[str, Any]) -> list[str]:
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(ast.Module([node], []), "example", "exec"), names)
    return said.getvalue().splitlines()


def _error(names: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    result = names["registry"].invoke(name, arguments)
    if result.failure is None:
        raise ValueError(f"{name}({arguments}) does not fail")
    return result.failure.kind, str(result.error)[:LINE]


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Runs the examples in an empty folder, with a key for stores."""
    before, key = Path.cwd(), os.environ.get("TOOLWIRE_KEY")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TOOLWIRE_KEY"] = "00" * 32
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("TOOLWIRE_KEY")
            if key is not None:
                os.environ["TOOLWIRE_KEY"] = key


def main() -> None:
    """Writes the pages, and removes those of tools that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
