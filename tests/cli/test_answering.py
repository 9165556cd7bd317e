"""Questions on the command line: shown, answered and declined from another process while the run waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.conftest import Write

TOOLS = '''
from typing import Any
from toolwire import CallContext, InputRequired, Question

TABLE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "guests": {"type": "integer", "minimum": 1}},
    "required": ["name", "guests"],
}

def count(context: CallContext) -> str:
    """Counts."""
    return f"{context.ask('How many?', {'type': 'integer', 'maximum': 9})} counted"

def note(context: CallContext) -> str:
    """Notes."""
    return f"noted {context.ask('What?')!r}"

def book(context: CallContext) -> Any:
    """Books."""
    if not context.answers:
        return InputRequired({"table": Question("Which table?", TABLE)})
    return f"booked {context.answers['table']}"
'''


class Asked:
    """A run whose tool waits for an answer."""

    def __init__(self, tool: str, write: Write) -> None:
        self._tools = write("asking.py", TOOLS)
        reply = write("reply.xml", f"<tool_call>\n<name>{tool}</name>\n<params>\n</params>\n</tool_call>\n")
        self.ended = run_here("run", reply, "--tools", self._tools)
        (self.request,) = json.loads(run_here("approvals", "list", "--json").stdout)
        self.id: str = self.request["id"]

    def resume(self) -> Ended:
        return run_here("run", "--resume", self.request["run_id"], "--tools", self._tools)


@pytest.mark.parametrize(
    ("tool", "given", "text"),
    [
        ("count", ["--value", "3"], "3 counted"),
        ("note", ["--value", "3"], "noted '3'"),
        ("note", ["--value", ""], "noted ''"),
        ("book", ["name=Ada", "guests=4"], "booked {'name': 'Ada', 'guests': 4}"),
        ("book", ["--value", '{"name": "Ada", "guests": 4}'], "booked {'name': 'Ada', 'guests': 4}"),
    ],
)
def test_a_question_is_answered_and_the_run_goes_on(tool: str, given: list[str], text: str, write: Write) -> None:
    asked = Asked(tool, write)
    assert (asked.ended.code, asked.request["kind"]) == (6, "question")
    answered = run_here("approvals", "answer", asked.id[:8], *given)
    assert (answered.code, answered.stdout.startswith(f"{asked.id}: answered by ")) == (0, True)
    assert text in asked.resume().stdout


def test_a_question_is_listed_and_shown(write: Write) -> None:
    asked = Asked("count", write)
    assert f"toolwire approvals show {asked.id[:10]}, then answer or deny\n" in asked.ended.stderr
    assert "How many?" in run_here("approvals", "list").stdout
    shown = run_here("approvals", "show", asked.id).stdout
    assert '"asks": "How many?"' in shown
    assert '"maximum": 9' in shown


@pytest.mark.parametrize("given", [["--value", "10"], ["--value", "many"], ["size=3"]])
def test_an_answer_that_does_not_fit_decides_nothing(given: list[str], write: Write) -> None:
    asked = Asked("count", write)
    wrong = run_here("approvals", "answer", asked.id, *given)
    assert wrong.code == 1
    assert "is not valid: 'answer' must be" in wrong.stderr
    assert "Nothing was decided." in wrong.stderr
    assert run_here("approvals", "answer", asked.id, "--value", "9").code == 0


def test_a_question_is_declined(write: Write) -> None:
    asked = Asked("count", write)
    assert run_here("approvals", "deny", asked.id, "--reason", "no idea").code == 0
    ended = asked.resume()
    assert "the person declined to answer 'How many?': no idea" in ended.stdout + ended.stderr


@pytest.mark.parametrize("words", [["approve"], ["approve", "--remember", "run"], ["edit", "--arguments", "{}"]])
def test_a_question_cannot_be_approved(words: list[str], write: Write) -> None:
    asked = Asked("count", write)
    command, *rest = words
    wrong = run_here("approvals", command, asked.id, *rest)
    assert wrong.code == 1
    assert "write verdict='answer' with answer=" in wrong.stderr


@pytest.mark.parametrize("given", [[], ["--value", "3", "size=3"]])
def test_the_answer_is_given_once(given: list[str], write: Write) -> None:
    asked = Asked("count", write)
    wrong = run_here("approvals", "answer", asked.id, *given)
    assert (wrong.code, wrong.stderr.split("\n")[0]) == (2, "toolwire: the answer is missing or given twice")


def test_an_approval_cannot_be_answered(write: Write) -> None:
    tools = write(
        "pay.py",
        "from toolwire import ToolSpec\n"
        'def pay() -> str:\n    """Pays."""\n    return "paid"\n'
        'pay = ToolSpec.from_function(pay, permission="confirm")\n',
    )
    run_here(
        "run",
        write("reply.xml", "<tool_call>\n<name>pay</name>\n<params>\n</params>\n</tool_call>\n"),
        "--tools",
        tools,
    )
    (request,) = json.loads(run_here("approvals", "list", "--json").stdout)
    wrong = run_here("approvals", "answer", request["id"], "--value", "yes")
    assert (wrong.code, "is a request for approval" in wrong.stderr) == (1, True)


def test_a_decision_as_json_has_the_answer(write: Write) -> None:
    asked = Asked("count", write)
    run_here("approvals", "answer", asked.id, "--value", "3")
    found: dict[str, Any] = json.loads(run_here("approvals", "show", asked.id, "--json").stdout)["decision"]
    assert (found["verdict"], found["answer"]) == ("answer", 3)
