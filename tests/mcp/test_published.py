"""Title, version, icons and `_meta`: kept for exports, there and back, and told to no model."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import mcp_types
import pytest

from toolwire import DefinitionError, Session, ToolRegistry, ToolSpec, protocols, reg_toolspec, tool

ICON = {"src": "https://example.com/s.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}
META = {"team": "quartz-team", "ui": {"resourceUri": "ui://map"}}
EXTRAS: dict[str, Any] = {"title": "Quartz search", "version": "7.3-quartz", "icons": [ICON], "meta": META}


def search(query: str) -> str:
    """Searches."""
    return query


def kept_by(spec: ToolSpec) -> dict[str, Any]:
    return {"title": spec.title, "version": spec.version, "icons": spec.icons, "meta": spec.meta}


def made_by_tool() -> ToolSpec:
    return tool(**EXTRAS)(search)


def made_by_code() -> ToolSpec:
    return ToolSpec.from_code("def search(query: str) -> str:\n    return query\n", **EXTRAS)


def made_by_schema() -> ToolSpec:
    return ToolSpec.from_jsonschema(name="search", input_schema={"type": "object"}, **EXTRAS)


def made_by_mark() -> ToolSpec:
    class Library(ToolRegistry):
        @reg_toolspec(**EXTRAS)
        def search(self, query: str) -> str:
            """Searches."""
            return query

    return Library().to_toolspecs()["search"]


MAKERS: list[Any] = [lambda: ToolSpec.from_function(search, **EXTRAS), made_by_tool, made_by_code, made_by_schema]


@pytest.mark.parametrize("make", [*MAKERS, made_by_mark])
def test_every_way_to_make_a_tool_keeps_them_and_mcp_gets_them(make: Any) -> None:
    spec = make()
    assert kept_by(spec) == EXTRAS
    sent = spec.to_mcp().model_dump(by_alias=True, exclude_none=True)
    assert {key: sent.get(key) for key in ("title", "icons", "_meta")} == {
        "title": "Quartz search",
        "icons": [ICON],
        "_meta": {**META, "fastmcp": {"version": "7.3-quartz"}},
    }


def test_the_control_a_tool_without_them_sends_none() -> None:
    sent = ToolSpec.from_function(search).to_mcp().model_dump(by_alias=True, exclude_none=True)
    assert sorted(sent) == ["description", "inputSchema", "name", "outputSchema"]
    assert kept_by(ToolSpec.from_function(search)) == {"title": None, "version": None, "icons": [], "meta": {}}


@pytest.mark.parametrize("form", ["value", "dumped", "received"])
def test_a_tool_that_comes_from_mcp_goes_back_as_it_came(form: str) -> None:
    sent = ToolSpec.from_function(search, **EXTRAS).to_mcp()
    received: Any = {
        "value": sent,
        "dumped": sent.model_dump(by_alias=True),
        "received": json.loads(sent.model_dump_json(by_alias=True, exclude_none=True)),
    }[form]
    spec = ToolSpec.from_mcp(received)
    assert kept_by(spec) == EXTRAS
    assert (spec.to_mcp().meta, spec.to_mcp().icons) == (sent.meta, sent.icons)


@pytest.mark.parametrize(
    ("meta", "version"),
    [
        ({"fastmcp": {"version": "2", "tags": ["a"]}}, "2"),
        ({"_fastmcp": {"version": "2"}}, "2"),
        ({"fastmcp": {"tags": []}}, None),
        ({"fastmcp": "odd"}, None),
        ({"fastmcp": {"version": 3}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_version_that_fastmcp_sends_is_read(meta: Any, version: str | None) -> None:
    value = {"name": "search", "inputSchema": {"type": "object"}, "_meta": meta}
    spec = ToolSpec.from_mcp(value)
    assert spec.version == version
    again = ToolSpec.from_mcp(spec.to_mcp())
    assert (again.version, again.meta) == (spec.version, spec.meta)


def test_an_empty_title_of_a_server_counts_as_none() -> None:
    for title in ("", "##", None):
        value = {"name": "search", "inputSchema": {"type": "object"}, "title": title}
        assert ToolSpec.from_mcp(value).title is None


def test_an_owners_word_stands_in_for_the_servers() -> None:
    sent = ToolSpec.from_function(search, **EXTRAS).to_mcp()
    spec = ToolSpec.from_mcp(sent, version="8", meta={}, icons=[])
    assert (spec.version, spec.meta, spec.icons) == ("8", {}, [])


def test_an_icon_may_be_mcps_own_or_in_pythons_spelling() -> None:
    icons = [
        mcp_types.Icon(src="https://example.com/a.svg", mime_type="image/svg+xml"),
        {"src": "https://example.com/b.svg", "mime_type": "image/svg+xml", "theme": None},
    ]
    assert ToolSpec.from_function(search, icons=icons).icons == [
        {"src": "https://example.com/a.svg", "mimeType": "image/svg+xml"},
        {"src": "https://example.com/b.svg", "mimeType": "image/svg+xml"},
    ]


@pytest.mark.parametrize("protocol", protocols.names())
def test_no_model_reads_them(protocol: str) -> None:
    spec = ToolSpec.from_function(search, **(EXTRAS | {"title": None}))
    told = json.dumps(Session([spec], protocol=protocol).instructions)
    assert ("quartz" in told, "search" in told) == (False, True)
    assert "quartz" not in json.dumps([spec.to_jsonschema(), spec.to_prompt(), spec.code])


def test_metadata_and_icons_are_copied_in_and_out() -> None:
    meta = copy.deepcopy(META)
    spec = ToolSpec.from_function(search, meta=meta, icons=[dict(ICON)])
    meta["ui"] = "changed"
    spec.meta["team"] = "changed"
    spec.icons[0]["sizes"].append("changed")
    clone = spec.clone()
    assert (spec.meta, spec.icons) == (META, [ICON]) == (clone.meta, clone.icons)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"title": 3}, "title=3: write a string, or leave it out"),
        ({"title": ""}, "title='': write a string, or leave it out"),
        ({"version": 2.1}, "version=2.1: write a string, or leave it out"),
        ({"meta": ["team"]}, "meta=['team']: write a dict with string keys, meta={'team': 'search'}"),
        ({"meta": {1: "x"}}, "meta has the key 1: write a string"),
        ({"meta": {"x": object}}, "meta must be JSON: "),
        ({"icons": "https://example.com/i.png"}, "icons='https://example.com/i.png': write a list, icons=["),
        ({"icons": ["https://example.com/i.png"]}, "the icon 'https://example.com/i.png' is not a dict: write icons=["),
        ({"icons": [{"url": "x"}]}, "the icon {'url': 'x'} has no src: write icons=["),
        ({"icons": [{"src": 3}]}, "the icon's src=3 is wrong: write icons=["),
        ({"icons": [{"src": "x", "sizes": "48x48"}]}, "the icon's sizes='48x48' is wrong: write icons=["),
        ({"icons": [{"src": "x", "theme": "blue"}]}, "the icon's theme='blue' is wrong: write icons=["),
    ],
)
def test_metadata_that_cannot_be_exported_is_refused_at_definition(options: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match="^" + re.escape(f"tool 'search': {message}")):
        ToolSpec.from_function(search, **options)


def test_two_versions_that_differ_are_refused() -> None:
    spec = ToolSpec.from_function(search, version="1", meta={"fastmcp": {"version": "2"}})
    with pytest.raises(DefinitionError, match="say different things: leave one of them out"):
        spec.to_mcp()
