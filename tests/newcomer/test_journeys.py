"""Seven first programs, each in an environment with only what its first line installs. Models are stand-ins here."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mcp.client.stdio import StdioServerParameters
from nbformat.v4 import new_code_cell, new_notebook

from mcp import Client
from tests.newcomer import small_server
from tests.newcomer.environment import Environment, build_wheel
from tests.patience import PATIENCE_S
from tests.protocols.providers import Provider, provider
from tests.session.test_native_protocols import chunks, completion

HERE = Path(__file__).parent
JOURNEYS = sorted(path.stem for path in (HERE / "journeys").glob("*.py"))
LINES = 50
PROGRAM = """
thought = "Add them up."

[tool_call]
status = "success"
target = "copies in March 2026"
code = "sum(sale['copies'] for sale in sales('2026-03'))"
"""


def installs(journey: str) -> tuple[str, ...]:
    """What the first line of a journey installs."""
    return tuple(shlex.split(source(journey).partition("\n")[0].removeprefix("# pip install ")))


class Environments:
    """One environment for each line of installs, made when a journey needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wheel = build_wheel(folder)
        self._made: dict[tuple[str, ...], Environment] = {}

    def of(self, journey: str) -> Environment:
        packages = installs(journey)
        if packages not in self._made:
            folder = self._folder / str(len(self._made))
            folder.mkdir()
            self._made[packages] = environment = Environment(folder, self._wheel)
            environment.install(*(self._located(package) for package in packages))
        return self._made[packages]

    def _located(self, package: str) -> str:
        return f"{package} @ {self._wheel.as_uri()}" if package.startswith("toolwire") else package


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Environments:
    return Environments(tmp_path_factory.mktemp("journeys"))


def source(journey: str) -> str:
    return (HERE / "journeys" / f"{journey}.py").read_text("utf-8")


def program(environment: Environment, journey: str) -> str:
    """The path of the program in the newcomer's folder, outside of the repository."""
    path = environment.work / f"{journey}.py"
    path.write_text(source(journey), "utf-8")
    return str(path)


@pytest.fixture
def model() -> Iterator[Provider]:
    with provider() as server:
        yield server


def reach(model: Provider) -> dict[str, str]:
    return {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k"}


def test_each_journey_is_short_says_what_to_install_and_uses_public_names_alone() -> None:
    assert len(JOURNEYS) == 7
    for journey in JOURNEYS:
        text = source(journey)
        assert len(text.splitlines()) <= LINES, journey
        assert installs(journey)[0].startswith("toolwire"), journey
        homes = set(re.findall(r"^from (toolwire[\w.]*) import", text, re.MULTILINE))
        assert homes <= {"toolwire", "toolwire.approvals", "toolwire.protocols", "toolwire.testing"}, journey
        assert re.findall(r"\b[a-z]\w*\._[a-z]", text) == [], journey


def test_an_agent_streams_its_words_and_asks_before_it_pays(environments: Environments, model: Provider) -> None:
    call = {"index": 0, "id": "c1", "type": "function"}
    arguments = json.dumps({"account": "food", "euros": 20})
    model.script = [
        chunks(
            {"content": "I "},
            {"content": "pay.\n"},
            {"tool_calls": [{**call, "function": {"name": "pay", "arguments": arguments}}]},
        ),
        chunks({"content": "It is "}, {"content": "paid."}, reason="stop"),
    ]
    environment = environments.of("agent")
    output, screen = environment.at_terminal(
        program(environment, "agent"), "Pay 20 euros for food.", typed=["y"], more=reach(model)
    )
    assert output == "I pay.\nIt is paid.\n"
    assert (screen.count("May this call run?"), '"euros": 20' in screen) == (1, True)
    assert model.requests[1]["messages"][-1]["content"] == "paid 20 euros from food"


@contextmanager
def served(environment: Environment, journey: str, more: dict[str, str]) -> Iterator[str]:
    """The URL of a journey that serves at a port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [str(environment.bin / "python"), program(environment, journey), str(port)]
    process = subprocess.Popen(command, cwd=environment.work, env=environment.variables(more))
    try:
        until_s = time.monotonic() + 4 * PATIENCE_S  # a first start compiles its packages
        while not _listens(port):
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def post(url: str, body: object, *, user: str = "ada") -> tuple[int, Any]:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", "X-User": user})
    try:
        with urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, None


def test_a_web_server_lets_a_payment_wait_for_its_owner(environments: Environments, model: Provider) -> None:
    model.script = [completion(("c1", "pay", '{"euros": 5}')), completion(content="Paid.")]
    environment = environments.of("web_server")
    with served(environment, "web_server", reach(model)) as url:
        status, waits = post(url, {"question": "Pay 5 euros."})
    assert (status, sorted(waits)) == (202, ["conversation", "request", "run"])
    # Another process, as after a crash or a new release.
    with served(environment, "web_server", reach(model)) as url:
        assert post(url, {**waits, "verdict": "approve"}, user="eve") == (403, None)
        assert post(url, {**waits, "verdict": "approve"}) == (200, {"answer": "Paid."})
    assert [message["role"] for message in model.requests[1]["messages"]] == ["user", "assistant", "tool"]
    assert model.requests[1]["messages"][-1]["content"] == "paid 5 euros"


def test_a_local_model_writes_a_program(environments: Environments, model: Provider) -> None:
    model.script = [completion(content=PROGRAM), completion(content="We sold 11 copies.")]
    environment = environments.of("local_model")
    ended = environment.python(program(environment, "local_model"), model.url)
    assert ended == (0, "value: 11\nWe sold 11 copies.\n", "")
    assert (
        "def sales(\n month: str, # As 2026-03\n) -> list[dict[str, Any]]:"
        in model.requests[0]["messages"][0]["content"]
    )


async def test_the_mcp_client_of_a_colleague_calls_the_functions(environments: Environments) -> None:
    environment = environments.of("colleagues")
    started = StdioServerParameters(
        command=str(environment.bin / "python"),
        args=[program(environment, "colleagues")],
        env=environment.variables(),
        cwd=environment.work,
    )

    async def agree(context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        asked.append(params.message)
        return ElicitResult(action="accept", content=dict.fromkeys(params.requested_schema["required"], "once"))

    asked: list[str] = []
    async with Client(started, elicitation_callback=agree) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["stock", "order"]
        assert (await client.call_tool("stock", {"title": "Emma"})).structured_content == {"result": 4}
        wrong = await client.call_tool("stock", {"name": "Emma"})
        ordered = await client.call_tool("order", {"title": "Dune"})
    assert (wrong.is_error, "'title' is missing" in wrong.content[0].text) == (True, True)
    assert (ordered.content[0].text, len(asked), '"title": "Dune"' in asked[0]) == ("ordered 1 x Dune, slow", 1, True)


def test_six_mcp_servers_are_called_by_one_program(environments: Environments) -> None:
    environment = environments.of("six_servers")
    python, script = str(environment.bin / "python"), small_server.__file__
    table = {name: {"command": python, "args": [script, name]} for name in small_server.TOOLS}
    assert len(table) == 6
    config = environment.work / "mcp.json"
    config.write_text(json.dumps({"mcpServers": table}), "utf-8")
    code, output, errors = environment.python(program(environment, "six_servers"), str(config))
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0] == "['search_tools', 'describe_tools', 'run_program', 'read_result']"
    assert "def shop_price(" in output
    assert lines[-3:] == ["Emma 7 4", "Dune 9 4", "to ada: note 1: worth 46 on 2026-03-01"]


def test_a_notebook_shows_tools_programs_and_turns(environments: Environments) -> None:
    environment = environments.of("notebook")
    _, *cells = re.split(r"^# %%\n", source("notebook"), flags=re.MULTILINE)
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    (environment.work / "first.ipynb").write_text(json.dumps(notebook), "utf-8")
    more = {"IPYTHONDIR": str(environment.work / "ipython")}
    code, _, errors = environment.run(
        str(environment.bin / "jupyter-execute"), "--inplace", str(environment.work / "first.ipynb"), more=more
    )
    assert code == 0, errors
    ran = json.loads((environment.work / "first.ipynb").read_text("utf-8"))["cells"]
    shown = [
        "".join(cell["outputs"][-1]["data"].get("text/html", cell["outputs"][-1]["data"]["text/plain"])) for cell in ran
    ]
    registry, program_result, turn, data, refused = shown
    assert "<td><pre>Drops a table.</pre></td>" in registry
    assert program_result.startswith("<pre>sizes\n[0, 5, 10]</pre>")
    assert "1 result, 0 failed" in turn
    assert eval(data) == [{"id": number, "size": number * 5} for number in range(3)]
    assert "approval_required" in refused


def test_an_agent_is_tested_without_its_model_its_services_and_its_person(environments: Environments) -> None:
    environment = environments.of("inside_a_test")
    code, output, errors = environment.run(
        str(environment.bin / "pytest"), "-q", "-p", "no:cacheprovider", program(environment, "inside_a_test")
    )
    assert (code, errors, re.sub(r"in [0-9.]+s", "in 1s", output.splitlines()[-1])) == (0, "", "4 passed in 1s"), output
