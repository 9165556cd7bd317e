"""Profiles: a client sees and calls the tools of its own token alone, over HTTP, in lists, calls and programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.cli.command_line import run_here
from tests.gateway.serving import call_body, call_headers, raw, serving
from tests.gateway.test_config import said, said_until_served, serve_config, upstream, written
from tests.gateway.test_tokens import bearer, client_of
from tests.patience import PATIENCE_S, eventually
from toolwire import Caller, ClientProfiles, ConfigurationError, ToolRegistry, ToolServer

PROFILES = {
    "support": {"token": "${SUPPORT_TOKEN}", "tools": ["notes/*"], "excludeTools": ["*/delete*"]},
    "ops": {"token": "${env:OPS_TOKEN}", "tools": ["*"]},
}


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPPORT_TOKEN", "support-1")
    monkeypatch.setenv("OPS_TOKEN", "ops-1")


def new_registry(**options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    for name in ("notes/read", "notes/delete_all", "bank/pay"):
        registry.register(named(name), name=name, permission="auto")
    return registry


def named(name: str) -> Any:
    def tool() -> str:
        """Says its name."""
        return f"{name} ran"

    return tool


@contextmanager
def server_of(profiles: ClientProfiles, *, is_hiding: bool = True, **options: Any) -> Generator[int]:
    registry = new_registry(visible=profiles.sees if is_hiding else None)
    with serving(ToolServer(registry, "tests", token_verifier=profiles, **options).asgi()) as port:
        yield port


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_sees_the_tools_of_its_profile_and_no_other_is_there_for_it(mode: Any) -> None:
    with server_of(ClientProfiles(PROFILES)) as port:
        async with client_of(port, "support-1", mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["notes_read"]
            assert (await client.call_tool("notes_read")).is_error is False
            for hidden in ("notes_delete_all", "bank_pay", "bank/pay", "missing"):
                with pytest.raises(MCPError) as caught:
                    await client.call_tool(hidden)
                assert caught.value.error.code == -32602
                assert "bank_pay" not in str(caught.value.error).replace(hidden, "")
        async with client_of(port, "ops-1", mode=mode) as client:
            assert len((await client.list_tools()).tools) == 3
            assert (await client.call_tool("bank_pay")).is_error is False


async def test_without_the_predicate_the_same_client_sees_and_calls_everything() -> None:
    with server_of(ClientProfiles(PROFILES), is_hiding=False) as port:
        async with client_of(port, "support-1") as client:
            assert len((await client.list_tools()).tools) == 3
            assert (await client.call_tool("bank_pay")).is_error is False


async def test_a_program_and_a_search_reach_only_the_tools_of_the_profile() -> None:
    with server_of(ClientProfiles(PROFILES), mode="code") as port:
        async with client_of(port, "support-1") as client:
            ran = await client.call_tool("run_program", {"code": "print(notes_read())"})
            assert "notes/read ran" in str(ran.content)
            refused = await client.call_tool("run_program", {"code": "print(bank_pay())"})
            assert "bank/pay ran" not in str(refused.content)
            found = await client.call_tool("search_tools", {"query": "pay from a bank, says its name"})
            assert "bank" not in str(found.content)
            described = await client.call_tool("describe_tools", {"names": ["bank/pay"]})
            assert "There is no tool named 'bank/pay'" in str(described.content)
        async with client_of(port, "ops-1") as client:
            ran = await client.call_tool("run_program", {"code": "print(bank_pay())"})
            assert "bank/pay ran" in str(ran.content)


async def test_a_profile_may_exclude_programs() -> None:
    profiles = {"support": {**PROFILES["support"], "excludeTools": ["code_execution"]}}
    with server_of(ClientProfiles(profiles), mode="code") as port:
        async with client_of(port, "support-1") as client:
            refused = await client.call_tool("run_program", {"code": "print(notes_read())"})
            assert "Programs cannot be run here." in str(refused.content)


def test_no_token_and_no_other_token_opens_the_server() -> None:
    with server_of(ClientProfiles(PROFILES)) as port:
        statuses = [raw(port, *headers)[0] for headers in ([], [bearer("support-2")], [bearer("")], [bearer("ops")])]
    assert statuses == [401, 401, 401, 401]


def test_a_profile_that_is_taken_away_or_narrowed_is_so_at_the_next_request() -> None:
    profiles = ClientProfiles(PROFILES)
    with server_of(profiles) as port:

        def pay(token: str) -> tuple[int, bytes]:
            headers = [*call_headers("bank_pay"), bearer(token)]
            return raw(port, *headers[-1:], body=call_body("bank_pay", {}), name="bank_pay")

        assert b"bank/pay ran" in pay("ops-1")[1]
        profiles.update({"ops": {"token": "${OPS_TOKEN}", "tools": ["notes/*"]}})
        assert b"-32602" in pay("ops-1")[1]
        profiles.update({})
        assert pay("ops-1")[0] == 401


def test_a_token_may_stand_as_its_digest_and_the_digest_opens_nothing() -> None:
    digest = hashlib.sha256(b"support-1").hexdigest()
    profiles = ClientProfiles({"support": {"token": f"sha256:{digest}", "tools": ["*"]}})
    with server_of(profiles) as port:
        tokens = ("support-1", digest, f"sha256:{digest}", "support-2")
        statuses = [raw(port, bearer(token), name="bank_pay", body=call_body("bank_pay", {}))[0] for token in tokens]
    assert statuses == [200, 401, 401, 401]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_hear_that_a_profile_has_changed(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.gateway.sdk_server.LIST_POLL_S", 0.01)
    heard, is_open = anyio.Event(), anyio.Event()
    profiles = ClientProfiles(PROFILES)

    async def message(received: Any) -> None:
        if isinstance(received, types.ToolListChangedNotification):
            heard.set()

    async def listen(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as events:
            is_open.set()
            async for _ in events:
                heard.set()

    with server_of(profiles) as port:
        async with (
            client_of(port, "support-1", mode=mode, message_handler=message) as client,
            anyio.create_task_group() as tasks,
        ):
            if mode == "auto":
                tasks.start_soon(listen, client)
                await is_open.wait()
            assert await names_of(client) == ["notes_read"]
            profiles.update({"support": {**PROFILES["support"], "tools": ["bank/*"]}})
            with anyio.fail_after(PATIENCE_S):
                await heard.wait()
            assert await names_of(client) == ["bank_pay"]
            tasks.cancel_scope.cancel()


def test_who_has_no_profile_sees_nothing() -> None:
    sees = ClientProfiles(PROFILES).sees
    found = [sees("notes/read", Caller(principal=name)) for name in ("support", "ops", "", "other", "Support")]
    assert found == [True, True, False, False, False]


WRONG: list[tuple[Any, str]] = [
    ({"a": {"token": "secret", "tools": []}}, "write a variable of the environment, as ${NAME}, and no token"),
    ({"a": {"token": "${OPS_TOKEN:-secret}", "tools": []}}, "write a variable of the environment"),
    ({"a": {"token": f"sha256:{'secret':0>63}", "tools": []}}, "or sha256: and the 64 digits of its SHA-256"),
    ({"a": {"token": f"sha256:{'A' * 64}", "tools": []}}, "or sha256: and the 64 digits of its SHA-256"),
    ({"a": {"token": "x${OPS_TOKEN}", "tools": []}}, "write a variable of the environment"),
    ({"a": {"token": "${NO_SUCH}", "tools": []}}, "the environment has no variable NO_SUCH: set it"),
    ({"a": {"token": "${BLANK}", "tools": []}}, "the variable has no token: set it"),
    ({"a": {"token": "${OPS_TOKEN}"}}, "profiles.a: write a name, and its 'token' and 'tools'"),
    ({" ": {"token": "${OPS_TOKEN}", "tools": []}}, "write a name, and its 'token' and 'tools'"),
    ({"a": {"token": "${OPS_TOKEN}", "tools": "notes/*"}}, "profiles.a.tools: write a list of names or patterns"),
    ({"a": {"token": "${OPS_TOKEN}", "tools": [1]}}, "profiles.a.tools: write a list of names or patterns"),
    ({"a": {"token": "${OPS_TOKEN}", "tools": [], "exclude": []}}, "profiles.a.exclude is not known: write"),
    (
        {"a": {"token": "${OPS_TOKEN}", "tools": []}, "b": {"token": "${env:OPS_TOKEN}", "tools": []}},
        "profiles.b.token is that of 'a' too: give each its own",
    ),
]


@pytest.mark.parametrize(("profiles", "told"), WRONG)
def test_a_wrong_profile_is_refused_and_the_old_ones_stay(
    profiles: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLANK", " ")
    there = ClientProfiles(PROFILES)
    with pytest.raises(ConfigurationError) as caught:
        there.update(profiles)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)
    assert (len(there), there.sees("bank/pay", Caller(principal="ops"))) == (2, True)


def configured(path: Path, record: Path, tools: list[str]) -> str:
    profiles = {"support": {"token": "${SUPPORT_TOKEN}", "tools": tools}}
    path.write_text(json.dumps({"mcpServers": {"local": upstream(record)}, "profiles": profiles}))
    return str(path)


async def test_the_command_reads_profiles_and_reads_them_again(tmp_path: Path) -> None:
    config = configured(tmp_path / "mcp.json", tmp_path / "record", ["local/add"])
    process = serve_config("--config", config, cwd=tmp_path)
    try:
        *_, served = said_until_served(process)
        port = int(served.rsplit(":", 1)[1].partition("/")[0])
        assert raw(port)[0] == 401
        async with client_of(port, "support-1") as client:
            await eventually(lambda: names_of(client), ["local_add"])
            configured(tmp_path / "mcp.json", tmp_path / "record", ["local/fail"])
            await said(process, f"the servers are those of {config} now")
            await eventually(lambda: names_of(client), ["local_fail"])
            written(tmp_path / "mcp.json", {"local": upstream(tmp_path / "record")})
            await said(process, f"the servers are those of {config} now")
        assert raw(port, bearer("support-1"))[0] == 401
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


async def names_of(client: Any) -> list[str]:
    names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
    # The command lets clients read on in long results.
    return [name for name in names if name != "read_result"]


BROKEN: list[dict[str, Any]] = [
    {"mcpServer": {}, "profiles": {"support": {"token": "${SUPPORT_TOKEN}", "tools": ["*"]}}},
    {"mcpServers": {}, "profiles": {}},
    {"mcpServers": {}, "profiles": None},
    {"mcpServers": {}, "profiles": []},
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_file_that_is_wrong_anywhere_changes_no_profile_and_opens_no_server(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps(content))
    there = ClientProfiles(PROFILES)
    with pytest.raises(ConfigurationError):
        there.update(config)
    assert there.sees("bank/pay", Caller(principal="support")) is False
    assert run_here("serve", "--config", str(config), "--http", "0").code == 2


def test_a_file_without_the_table_has_no_profiles(tmp_path: Path) -> None:
    assert len(ClientProfiles(written(tmp_path / "mcp.json", {}))) == 0


def test_profiles_need_http_and_take_the_place_of_the_one_token(tmp_path: Path) -> None:
    config = configured(tmp_path / "mcp.json", tmp_path / "record", ["local/add"])
    ended = run_here("serve", "--config", config)
    assert (ended.code, ended.stderr) == (2, f"toolwire: the profiles of {config} are for --http\nGive --http PORT.\n")
    ended = run_here("serve", "--config", config, "--http", "0", "--token-env", "OPS_TOKEN")
    assert (ended.code, ended.stderr) == (
        2,
        f"toolwire: {config} has profiles with tokens\nLeave --token-env out.\n",
    )


async def has(client: Client, name: str) -> bool:
    return name in await names_of(client)


async def test_profiles_that_a_running_server_did_not_have_are_told_to_need_a_restart(tmp_path: Path) -> None:
    config = written(tmp_path / "mcp.json", {"local": upstream(tmp_path / "record")})
    process = serve_config("--config", config, cwd=tmp_path)
    try:
        *_, served = said_until_served(process)
        configured(tmp_path / "mcp.json", tmp_path / "record", ["local/add"])
        await said(process, f"{config} has profiles now: restart the server to use them; the servers stay as they were")
        async with Client(served.split(" at ")[1].strip()) as client:
            # The server behind may still be starting.
            await eventually(lambda: has(client, "local_fail"), wanted=True)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


async def test_a_file_of_profiles_alone_is_served_with_tools_of_its_own(tmp_path: Path) -> None:
    tools = [
        'def look() -> str:\n    """Looks."""\n    return ""\n',
        'def pay() -> str:\n    """Pays."""\n    return ""\n',
    ]
    (tmp_path / "desk.py").write_text("\n\n".join(tools))
    config = tmp_path / "profiles.json"
    config.write_text(json.dumps({"profiles": {"support": {"token": "${SUPPORT_TOKEN}", "tools": ["look"]}}}))
    process = serve_config("--tools", "desk.py", "--config", str(config), cwd=tmp_path)
    try:
        served = said_until_served(process)[-1].split(" at ")[1].strip()
        port = int(served.removesuffix("/mcp").rpartition(":")[2])
        async with client_of(port, "support-1") as client:
            await eventually(lambda: names_of(client), ["look"])
        # The file is read again: the profile sees more.
        config.write_text(json.dumps({"profiles": {"support": {"token": "${SUPPORT_TOKEN}", "tools": ["*"]}}}))
        await said(process, "the servers are those of")
        async with client_of(port, "support-1") as client:
            await eventually(lambda: names_of(client), ["look", "pay"])
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
