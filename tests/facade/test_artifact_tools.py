"""Models work on artifacts by tools that go down the one path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolwire import BaseTool, CallContext, Session, Store, ToolRegistry
from toolwire.facade.built_in.artifact_tools import CreateArtifactTool
from toolwire.tools import ArtifactManager, create_artifact_tools
from toolwire.vocabulary.results import ToolResult


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as opened:
        yield opened


@pytest.fixture
def artifacts(store: Store) -> ArtifactManager:
    return ArtifactManager(store, namespace="c-17")


@pytest.fixture
def tools(artifacts: ArtifactManager) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in create_artifact_tools(artifacts):
        registry.register(tool)
    return registry


def call(tools: ToolRegistry, name: str, **arguments: Any) -> ToolResult:
    return tools.invoke(name, arguments)


@pytest.mark.requirement("base.builtin.create-artifact")
@pytest.mark.requirement("base.builtin.read-artifact")
@pytest.mark.requirement("base.builtin.update-artifact")
@pytest.mark.requirement("base.builtin.rewrite-artifact")
def test_a_model_creates_reads_updates_rewrites_and_restores(tools: ToolRegistry) -> None:
    made = call(tools, "create_artifact", id="plan", content="1. Read\n2. Write\n", title="The plan")
    assert made.text == "Wrote plan (The plan), version 1, text/markdown, 17 bytes."
    assert (made.data["id"], made.data["version"]) == ("plan", 1)
    read = call(tools, "read_artifact", id="plan")
    assert read.text == "plan (The plan), version 1, text/markdown, 17 bytes\n1. Read\n2. Write\n"
    assert read.data == "1. Read\n2. Write\n"
    updated = call(tools, "update_artifact", id="plan", old_str="2.  Write", new_str="2. Test")
    assert updated.text == (
        "Wrote plan (The plan), version 2, text/markdown, 16 bytes. old_str was not in it as given; this was replaced, "
        "94.1 of 100 alike:\n2. Write"
    )
    assert call(tools, "diff_artifact", id="plan", old=1).text.splitlines()[-2:] == ["-2. Write", "+2. Test"]
    assert call(tools, "rewrite_artifact", id="plan", content="x", base_version=2).data["version"] == 3
    assert call(tools, "restore_artifact", id="plan", version=1).data["version"] == 4
    assert call(tools, "diff_artifact", id="plan", old=1, new=4).text == "The versions are equal."
    assert call(tools, "read_artifact", id="plan", version=3).data == "x"
    assert call(tools, "list_artifacts").text == "plan (The plan), version 4, text/markdown, 17 bytes"


def test_without_artifacts_the_list_says_so(tools: ToolRegistry) -> None:
    assert call(tools, "list_artifacts").text == "There are no artifacts."


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("read_artifact", {"id": "nope"}, "there is no artifact 'nope'. There are 'plan'."),
        ("create_artifact", {"id": "plan", "content": "b"}, "exists already, at version 1: rewrite or update it"),
        ("update_artifact", {"id": "plan", "old_str": "zzz", "new_str": "b"}, "read it, and copy the text"),
        ("rewrite_artifact", {"id": "plan", "content": "b", "base_version": 2}, "and no version 2"),
        ("restore_artifact", {"id": "plan", "version": 9}, "and no version 9"),
        ("diff_artifact", {"id": "plan", "old": 9}, "and no version 9"),
        ("read_artifact", {"id": 5}, "'id' must be a string"),
    ],
)
def test_a_model_reads_what_was_wrong_and_nothing_is_written(
    tools: ToolRegistry, artifacts: ArtifactManager, name: str, arguments: dict[str, Any], why: str
) -> None:
    artifacts.create("plan", "a")
    result = call(tools, name, **arguments)
    assert result.failure is not None
    assert result.failure.kind == "invalid_arguments"
    assert why in result.text
    assert [version.version for version in artifacts.list()] == [1]


def test_a_program_gets_the_text(tools: ToolRegistry) -> None:
    program = "create_artifact('a', 'hello')\nread_artifact('a').upper()"
    assert tools.run_program(program).value == "HELLO"


def test_the_tools_declare_permission_effects_keys_and_labels(artifacts: ArtifactManager) -> None:
    declared = {
        each.name: (each.__tool__().permission, set(each.__tool__().effects.kinds), each.__tool__().effects.idempotent)
        for each in create_artifact_tools(artifacts)
    }
    reads, writes = ("auto", {"read"}, "natural"), ("auto", {"write"}, "key")
    assert declared == {
        "create_artifact": writes,
        "read_artifact": reads,
        "update_artifact": writes,
        "rewrite_artifact": writes,
        "list_artifacts": reads,
        "diff_artifact": reads,
        "restore_artifact": writes,
    }
    labels = [each.__tool__().effects.labels for each in create_artifact_tools(artifacts)]
    assert labels == [{"private"}] * 7


class Crashes(CreateArtifactTool):
    """Makes the artifact, and the process is lost before the answer."""

    async def execute(self, context: CallContext, **arguments: Any) -> ToolResult:  # type: ignore[override]
        await super().execute(context, **arguments)
        raise KeyboardInterrupt


def test_a_call_whose_process_was_lost_makes_no_second_version(store: Store, artifacts: ArtifactManager) -> None:
    reply = "<tool_call><name>create_artifact</name><params><id>plan</id><content>a</content></params></tool_call>"
    crashing = Session([Crashes(artifacts)], protocol="xml", store=store, conversation="c-17")
    with pytest.raises(KeyboardInterrupt):
        crashing.run_turn(reply)
    [run] = store.runs(conversation="c-17")
    session = Session([CreateArtifactTool(artifacts)], protocol="xml", store=store, conversation="c-17")
    turn = session.run_resume(run.run_id)
    assert [result.data["version"] for result in turn.results] == [1]
    assert len(artifacts.history("plan")) == 1
    # The control: a new call with the same arguments is another one, and is refused.
    assert "exists already" in session.run_turn(reply).results[0].text


def test_a_base_tool_may_declare_its_effects_and_else_has_none(artifacts: ArtifactManager) -> None:
    class Plain(BaseTool):
        def get_parameters(self) -> list[Any]:
            return []

        async def execute(self) -> ToolResult:
            return ToolResult(True, 1)

    assert Plain("plain", "P.").__tool__().effects.idempotent == "no"
    assert CreateArtifactTool(artifacts).__tool__().effects.has_key
