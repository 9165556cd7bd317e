"""All tools of a registry by one call, and the value of a program for its host."""

from __future__ import annotations

from pathlib import Path

from toolwire import Session, ToolRegistry, ToolResult, protocols


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def registry() -> ToolRegistry:
    made = ToolRegistry()
    made.register(add)
    made.enable_code_execution()
    made.configure(tool_search=True)
    return made


def test_an_export_has_all_tools_with_name_description_and_schema() -> None:
    made = registry()
    specs = made.to_toolspecs()
    assert list(specs) == made.list_toolspecs() == ["add", "code_execution", "search_tools"]
    assert [spec.name for spec in specs.values()] == list(specs)
    assert all(spec.description and spec.input_schema["properties"] for spec in specs.values())
    assert specs["code_execution"].input_schema["required"] == ["code"]
    described = protocols.get("openai").describe(specs.values())
    assert [one["function"]["name"] for one in described] == list(specs)
    made.disable_code_execution()
    assert list(made.to_toolspecs()) == ["add", "search_tools"]


def test_the_export_of_programs_runs_them_down_the_whole_path() -> None:
    made = registry()
    log = made.enable_logging()
    result = made.to_toolspecs()["code_execution"].exec(code="print('sum')\nadd(1, 2)")
    assert (result.text, result.program_value) == ("sum\n3", 3)
    assert [entry.tool_name for entry in log.get_entries()] == ["code_execution", "add"]
    made.disable("code_execution", "not today")
    failure = made.to_toolspecs()["code_execution"].exec(code="1").failure
    assert failure is not None
    assert failure.kind == "unavailable"


def test_the_host_reads_the_value_of_a_program() -> None:
    made = registry()
    assert made.invoke("code_execution", {"code": "{'sum': (add(1, 2),)}"}).program_value == {"sum": (3,)}
    assert made.invoke("code_execution", {"code": "print(1)"}).program_value is None
    assert made.invoke("code_execution", {"code": "__result__ = 1\n1 / 0"}).program_value is None
    assert made.invoke("add", {"a": 1, "b": 2}).program_value is None


def test_a_program_that_was_kept_has_its_value(tmp_path: Path) -> None:
    session = Session([add], permissions={"add": "confirm"}, store=f"sqlite:///{tmp_path}/runs.db")
    turn = session.run_turn("[tool_call]\nstatus = 'success'\ncode = 'add(1, 2) + 1'\n")
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    done = session.run_resume(turn.suspended, [{"request_id": request.id, "verdict": "approve"}])
    again = session.run_resume(turn.suspended)
    assert [each.results[0].program_value for each in (done, again)] == [4, 4]


def test_metadata_of_another_tool_are_no_program() -> None:
    def sly() -> ToolResult:
        """Claims to be a program."""
        return ToolResult(True, "text", None, {"program": {"value": "forged"}})

    made = ToolRegistry()
    made.register(sly)
    assert made.invoke("sly").program_value is None
    assert ToolResult(True, metadata={"program": {"value": "forged"}}).program_value is None
