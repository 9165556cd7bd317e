"""`toolwire serve --config`: the tools of other MCP servers, for all clients."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from mcp import Client
from tests.architecture.source import ROOT
from tests.cli.command_line import run_here
from tests.patience import PATIENCE_S, eventually, until
from toolwire.cli import config_watch
from toolwire.cli.config_watch import ConfigWatch
from toolwire.cli.output import Output

GONE = {"command": "/no/such/command"}


def upstream(record: Path) -> dict[str, Any]:
    arguments = ["-m", "tests.mcp.client.tool_server", str(record)]
    return {"command": sys.executable, "args": arguments, "cwd": str(ROOT)}


def written(path: Path, servers: dict[str, Any]) -> str:
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def serve_config(*options: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "toolwire", "serve", "--http", "0", *options]
    return subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def said_until_served(process: subprocess.Popen[str]) -> list[str]:
    """The lines up to the one with the URL."""
    assert process.stderr is not None
    lines = [process.stderr.readline()]
    while " at http" not in lines[-1]:
        assert lines[-1], lines
        lines.append(process.stderr.readline())
    return lines


async def test_clients_share_one_process_of_each_server_and_a_missing_one_is_left_out(tmp_path: Path) -> None:
    config = written(tmp_path / "mcp.json", {"local": upstream(tmp_path / "record"), "gone": GONE})
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rule]]\ntool = "local/*"\neffect = "auto"\n')
    process = serve_config("--config", config, "--policy", str(policy), cwd=tmp_path)
    try:
        *warnings, served = said_until_served(process)
        place = f"{config}: mcpServers.gone: the MCP server 'gone' cannot be used: No such file or directory"
        assert any(place in line for line in warnings)
        assert served.startswith("serving mcp at http")
        ids: list[Any] = []
        for _ in range(2):
            async with Client(served.split(" at ")[1].strip()) as client:
                await eventually(lambda client=client: servers_of(client), {"local"})
                added = await client.call_tool("local_add", {"a": 1, "b": 2})
                assert (added.structured_content, added.is_error) == ({"sum": 3}, False)
                ids.append((await client.call_tool("local_process", {})).content)
                if len(ids) == 2:
                    await rules_are_read_again(policy, process, client)
        assert ids[0] == ids[1]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


async def test_each_wrong_entry_is_off_with_its_place_and_the_others_are_served(tmp_path: Path) -> None:
    good = upstream(tmp_path / "record")
    entries = {
        "My Notes": good,
        "My_Notes": good,
        "taken": good | {"rename": {"add": "fail"}},
        "rate": good | {"limits": {"rate": "many"}},
        "places": good | {"limits": {"concurrency": "4"}},
        "late": good | {"connectTimeout": "ten"},
        "wide": good | {"allow": ["everything"]},
    }
    config = written(tmp_path / "mcp.json", entries)
    process = serve_config("--config", config, "--store", "none", cwd=tmp_path)
    try:
        *warnings, served = said_until_served(process)
        async with Client(served.split(" at ")[1].strip()) as client:
            await eventually(lambda: servers_of(client), {"My"})
            taken = f"{config}: mcpServers.taken.rename.add: the tools 'add' and 'fail'"
            if not any(taken in line for line in warnings):
                await said(process, taken)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    places = ("My_Notes", "rate.limits.rate", "places.limits.concurrency", "late.connectTimeout", "wide.allow[0]")
    for place in places:
        assert [line for line in warnings if f"{config}: mcpServers.{place}: " in line and " is off" in line], place


async def rules_are_read_again(policy: Path, process: subprocess.Popen[str], client: Client) -> None:
    """Changes the policy of a running server. A server that is off may be named in it."""
    await asyncio.to_thread(
        policy.write_text,
        '[[rule]]\ntool = "local/add"\neffect = "deny"\n[[rule]]\ntool = "gone/any"\neffect = "deny"\n'
        '[[rule]]\ntool = "local/prompts:get"\neffect = "deny"\n',
    )
    await said(process, f"the rules are those of {policy} now")
    denied = await client.call_tool("local_add", {"a": 1, "b": 2})
    assert (denied.meta or {})["toolwire/failure"]["kind"] == "denied"
    await asyncio.to_thread(policy.write_text, "[[rule")
    await said(process, "the rules stay as they were")
    denied = await client.call_tool("local_add", {"a": 1, "b": 2})
    assert (denied.meta or {})["toolwire/failure"]["kind"] == "denied"
    await asyncio.to_thread(policy.write_text, '[[rule]]\ntool = "local/*"\neffect = "auto"\n')
    process.send_signal(signal.SIGHUP)
    await said(process, f"the rules are those of {policy} now")
    assert not (await client.call_tool("local_add", {"a": 1, "b": 2})).is_error


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({"bad": {}}, ["toolwire: no server of {} can be used", "The warnings say why."]),
        (
            {},
            [
                "toolwire: {} names no server that is on",
                "Write one in its table mcpServers, or enable one that is disabled.",
            ],
        ),
    ],
)
def test_a_file_without_a_server_to_wait_for_ends_the_command(
    servers: dict[str, Any], said: list[str], tmp_path: Path
) -> None:
    config = written(tmp_path / "mcp.json", servers)
    ended = run_here("serve", "--config", config, "--store", "none")
    assert (ended.code, ended.stderr.splitlines()[-2:]) == (3, [line.format(config) for line in said])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "toolwire: there is nothing to serve\nGive --tools FILE, --config FILE or --openapi FILE.\n"),
        (["--pins", "pins.json"], "toolwire: --pins is for --config\nGive --config FILE, or leave it out.\n"),
    ],
)
def test_wrong_options_say_what_to_give(arguments: list[str], message: str) -> None:
    ended = run_here("serve", *arguments)
    assert (ended.code, ended.stderr) == (2, message)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "{}/bad.toml"], "the policy cannot be used:\n{0}/bad.toml, line 1, rule 1: unknown key 'effct'"),
        (["--store", "/proc/none/journal.db"], "no store can be created at /proc/none/journal.db"),
        (["--retention", "runs"], "--retention: 'runs' is not a part of one"),
        (["--pins", "{}/bad.toml"], "pins='{0}/bad.toml' is not a file of pins"),
        (["--token-env", "NO_SUCH_VARIABLE"], "the variable NO_SUCH_VARIABLE has no token"),
    ],
)
def test_a_mistake_elsewhere_ends_the_command_before_a_server_starts(
    options: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text('[[rule]]\ntool = "a"\neffct = "auto"\n')
    script = f"touch {tmp_path}/started; exec sleep 600"
    config = written(tmp_path / "mcp.json", {"a": {"command": "sh", "args": ["-c", script]}})
    ended = run_here("serve", "--config", config, "--http", "0", *(option.format(tmp_path) for option in options))
    assert ended.code == 2
    assert ended.stderr.startswith(f"toolwire: {said.format(tmp_path)}")
    assert not (tmp_path / "started").exists()


def test_a_file_that_is_not_json_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("{")
    ended = run_here("serve", "--config", str(tmp_path / "mcp.json"))
    assert ended.code == 2
    assert "cannot be read" in ended.stderr


async def test_a_changed_file_and_sighup_change_the_servers_of_a_running_process(tmp_path: Path) -> None:
    record = tmp_path / "record"
    config = written(tmp_path / "mcp.json", {"one": upstream(record)})
    process = serve_config("--config", config, cwd=tmp_path)
    assert process.stderr is not None
    try:
        *_, served = said_until_served(process)
        async with Client(served.split(" at ")[1].strip()) as client:
            await eventually(lambda: servers_of(client), {"one"})
            written(tmp_path / "mcp.json", {"one": upstream(record), "two": upstream(record)})
            await said(process, f"the servers are those of {config} now")
            await eventually(lambda: servers_of(client), {"one", "two"})
            (tmp_path / "mcp.json").write_text("{")
            await said(process, "the servers stay as they were")
            await eventually(lambda: servers_of(client), {"one", "two"})
            written(tmp_path / "mcp.json", {"one": {"url": 5}, "two": upstream(record), "gone": GONE})
            await said(process, f"{config}: mcpServers.one.url: write a text")
            await said(
                process, f"the servers are those of {config} now; 1 of them with a former entry; 1 cannot be used"
            )
            await eventually(lambda: servers_of(client), {"one", "two"})
            written(tmp_path / "mcp.json", {"two": upstream(record), "gone": GONE})
            process.send_signal(signal.SIGHUP)
            await said(process, f"the servers are those of {config} now; 1 cannot be used")
            await eventually(lambda: servers_of(client), {"two"})
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def test_a_change_while_the_servers_start_is_noticed_and_a_defect_ends_no_watching(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, seen, said_here = tmp_path / "mcp.json", list[str](), list[str]()
    config.write_text("1")
    before = signal.getsignal(signal.SIGHUP)

    class Here:
        def say(self, text: str) -> None:
            said_here.append(text)

    def update() -> str:
        seen.append(config.read_text())
        if len(seen) == 1:
            raise RuntimeError("a defect")
        return "taken over"

    try:
        follow = ConfigWatch(cast("Output", Here())).follow(config, "nothing changes")
        replaced(config, "22")
        follow(update)
        until(lambda: "not all of it was taken over" in caplog.text)
        signal.raise_signal(signal.SIGHUP)
        until(lambda: len(said_here) == 1)
        replaced(config, "333")
        until(lambda: len(said_here) == 2)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == ["22", "22", "333"]
    assert said_here == ["taken over"] * 2
    assert "RuntimeError: a defect" in caplog.text


def test_a_file_that_is_being_written_is_not_used_before_it_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, used, looks = signal.getsignal(signal.SIGHUP), list[bytes](), iter([b"old", b"ha", b"half", b"whole"])
    now = [b""]

    def content(_file: Path) -> bytes:
        now[0] = next(looks, b"whole")
        return now[0]

    monkeypatch.setattr(config_watch, "_read_content", content)
    monkeypatch.setattr(config_watch, "LOOK_S", 0.001)

    def update() -> str:
        used.append(now[0])
        return ""

    class Here:
        def say(self, text: str) -> None:
            """Keeps nothing."""

    try:
        ConfigWatch(cast("Output", Here())).follow(tmp_path, "")(update)
        until(lambda: bool(used))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert used == [b"whole"]


def replaced(config: Path, text: str) -> None:
    """Changes the file in one step, as editors do."""
    (config.parent / "new").write_text(text)
    (config.parent / "new").replace(config)


async def servers_of(client: Client) -> set[str]:
    names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
    return {name.split("_")[0] for name in names if name != "read_result"}


async def said(process: subprocess.Popen[str], text: str) -> None:
    """Reads the lines of the process up to the one with the text."""
    stderr = process.stderr
    assert stderr is not None
    line = ""
    while text not in line:
        line = await asyncio.to_thread(stderr.readline)
        assert line, text
