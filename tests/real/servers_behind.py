"""Compares servers of others behind a gateway with a direct connection: `python -m tests.real.servers_behind FOLDER`.

`FOLDER` has the packages that `make mcp-servers` installs. One `toolwire serve --config` process serves all servers.
Each call goes to a server of its own on each way, and both give the same texts, structured content, errors, progress
and questions. The exit code is 1 if one differs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from tests.gateway.conftest import ERAS
from tests.gateway.test_config import said_until_served, serve_config, written
from tests.mcp.real_servers import AtUrl, Servers, arguments_for, at_url
from tests.patience import PATIENCE_S
from tests.real.calls import Call, Era, Outcome, Person, connect, make_calls

HERE = Path(__file__).parent
START_S = 60.0
"""Seconds in which all servers have to be there: some of them start slowly on a busy machine."""


PYTHON_CALLS: tuple[Call, ...] = (
    ("add", {"a": 1, "b": 2}),
    ("older", {"person": {"name": "Ann", "age": 41, "friends": ["Bob"]}, "years": 2}),
    ("older", {"person": {"name": "Ann", "age": 41}}),
    ("long_text", {"length": 0}),
    ("long_text", {"length": 100_000}),
    ("several", {}),
    ("nothing", {}),
    ("fail", {}),
    ("count", {"upto": 3}),
)
ASK: tuple[Call, ...] = (("ask", {}),)
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: local, context: {cluster: local, user: local}}]
current-context: local
users: [{name: local, user: {}}]
"""
"""A cluster that is down: the server shows its configuration all the same, and its other calls fail."""


Way = tuple[str | list[str], Era, Sequence[Call]]
"""A server, the era of the client, and the calls by the names that the tools have there."""


@dataclass(frozen=True, kw_only=True)
class Behind:
    """A server, and what it is asked."""

    name: str
    entry: dict[str, Any]
    """The server in the gateway's file."""

    direct: str | list[str]
    """The URL or command of the same server for a direct connection."""

    calls: Sequence[Call]
    era: Era = "auto"
    """The era of the direct connection."""


def command_entry(command: list[str], **more: Any) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:], **more}


def over_stdio(name: str, command: list[str], calls: Sequence[Call], *, protocol: str | None = None) -> Behind:
    more = {} if protocol is None else {"protocol": protocol}
    era: Era = "auto" if protocol is None else "legacy"
    return Behind(name=name, entry=command_entry(command, **more), direct=command, calls=calls, era=era)


def python_servers(folder: Path) -> list[Behind]:
    """Returns a server of each Python SDK. Those that ask speak an older protocol, in which `elicit` works."""
    script = str(HERE / "python_server.py")
    first = [str(folder / "sdk1/bin/python"), script, "sdk1"]
    second, fast = ([sys.executable, script, kind] for kind in ("sdk2", "fastmcp"))
    return [
        over_stdio("sdk1", first, [*PYTHON_CALLS, *ASK], protocol="2025-11-25"),
        over_stdio("sdk2", second, PYTHON_CALLS),
        over_stdio("sdk2 older", second, [*PYTHON_CALLS, *ASK], protocol="2025-11-25"),
        over_stdio("fastmcp", fast, PYTHON_CALLS),
        over_stdio("fastmcp older", fast, [*PYTHON_CALLS, *ASK], protocol="2025-11-25"),
    ]


EVERYTHING = (
    *("echo", "get-annotated-message", "get-resource-links", "get-resource-reference", "get-structured-content"),
    *("get-sum", "get-tiny-image", "gzip-file-as-resource", "trigger-long-running-operation"),
)
"""The tools of the server of everything whose results do not depend on the connection."""

FILES = (
    *("read_file", "read_text_file", "read_media_file", "read_multiple_files", "get_file_info", "list_directory"),
    *("list_directory_with_sizes", "directory_tree", "search_files", "list_allowed_directories"),
    *("edit_file", "write_file", "create_directory", "move_file"),
)
MEMORY = (
    *("create_entities", "create_relations", "add_observations", "read_graph", "search_nodes", "open_nodes"),
    *("delete_observations", "delete_relations", "delete_entities", "read_graph"),
)


def reference_servers(servers: Servers, place: Path, url: str) -> list[Behind]:
    """Returns the servers that the protocol's authors publish."""
    known, files = arguments_for(place / "files"), place / "files"
    # A file that is not there, and a text that is not in the file: the server says so.
    wrong: list[Call] = [
        ("read_text_file", {"path": str(files / "none.txt")}),
        ("edit_file", {"path": str(files / "a.txt"), "edits": [{"oldText": "none", "newText": ""}]}),
    ]
    everything = [(name, known.get(name, {})) for name in EVERYTHING]
    memory = [servers.node, servers.script("memory")]
    graphs = [{"env": {"MEMORY_FILE_PATH": str(place / f"graph-{way}.json")}} for way in ("behind", "direct")]
    shell = ["env", f"MEMORY_FILE_PATH={graphs[1]['env']['MEMORY_FILE_PATH']}", *memory]
    return [
        over_stdio("everything", [servers.node, servers.script("everything"), "stdio"], everything),
        Behind(name="everything http", entry={"url": url}, direct=url, calls=everything),
        over_stdio(
            "filesystem",
            [servers.node, servers.script("filesystem"), str(files)],
            [*((name, known.get(name, {})) for name in FILES), *wrong],
        ),
        Behind(
            name="memory",
            entry=command_entry(memory, **graphs[0]),
            direct=shell,
            calls=[(name, known.get(name, {})) for name in MEMORY],
        ),
    ]


def git_server(folder: Path, place: Path) -> Behind:
    """Returns the server of git, and makes a repository for it."""
    repository = place / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    (repository / "a.txt").write_text("one\n")
    subprocess.run([*git, "add", "a.txt"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "The first"], check=True)
    (repository / "a.txt").write_text("two\n")
    at: dict[str, Any] = {"repo_path": str(repository)}
    calls: list[Call] = [
        ("git_status", at),
        ("git_diff_unstaged", at),
        ("git_log", at),
        ("git_show", {**at, "revision": "HEAD"}),
        ("git_show", {**at, "revision": "nowhere"}),
    ]
    return over_stdio("git", [str(folder / "sdk1/bin/mcp-server-git")], calls)


def kubernetes_server(folder: Path, place: Path) -> Behind:
    """Returns a server in Go, which npm has as a binary."""
    (place / "kubeconfig").write_text(KUBECONFIG)
    binary = "node_modules/kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64"
    command = [str(folder / binary), "--kubeconfig", str(place / "kubeconfig")]
    calls: list[Call] = [("configuration_view", {}), ("configuration_view", {"minified": False}), ("pods_list", {})]
    return over_stdio("kubernetes", command, calls)


TYPESCRIPT_CALLS: tuple[Call, ...] = (
    ("add", {"a": 1, "b": 2.5}),
    ("long_text", {"length": 100_000}),
    ("fail", {}),
    ("count", {"upto": 3}),
)


@contextmanager
def typescript_url(servers: Servers, folder: Path) -> Generator[str]:
    """Starts the server of the TypeScript SDK."""
    command = [servers.node, str(HERE / "typescript_server.mjs"), str(folder / "node_modules")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


@contextmanager
def gateway(place: Path, behind: Sequence[Behind]) -> Generator[str]:
    """Starts `toolwire serve --config` in front of the servers, which may do all, and yields its URL."""
    config = written(place / "mcp.json", {one.name: one.entry for one in behind})
    policy = place / "policy.toml"
    policy.write_text('[[rule]]\ntool = "*"\neffect = "auto"\n')
    process = serve_config("--config", config, "--policy", str(policy), cwd=place)
    try:
        *_, served = said_until_served(process)
        yield served.split(" at ")[1].strip()
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE_S)
        print(said[-3_000:])


def served(one: Behind) -> list[Call]:
    """Returns the calls with the names that the gateway gives the tools."""
    return [(re.sub(r"[^a-z0-9_]", "_", f"{one.name}_{name}"), arguments) for name, arguments in one.calls]


async def wait_for_tools(url: str, behind: Sequence[Behind]) -> None:
    """Returns when the gateway serves each tool that will be called."""
    wanted = {name for one in behind for name, _ in served(one)}
    async with connect(url) as client:
        with anyio.move_on_after(START_S):
            while wanted:
                wanted -= {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
                await anyio.sleep(0.2)
    assert not wanted, f"the gateway does not serve {sorted(wanted)}"


def differs(direct: Outcome, behind: Outcome) -> bool:
    """True if the gateway changed the outcome. Of progress that comes in quick steps, the last step always passes."""
    steps = set(behind.progress) <= set(direct.progress) and behind.progress[-1:] == direct.progress[-1:]
    return not steps or replace(behind, progress=direct.progress) != direct


def differences(one: Behind, direct: list[Outcome], behind: list[Outcome]) -> list[str]:
    return [
        f"{one.name} {call[0]} {call[1]}:\n  direct {str(first)[:600]}\n  behind {str(second)[:600]}"
        for call, first, second in zip(one.calls, direct, behind, strict=True)
        if differs(first, second)
    ]


async def compare(url: str, one: Behind, place: Path, era: Era) -> list[str]:
    """Makes the calls of a server on both ways, prints the count, and returns what differs."""
    outcomes: list[list[Outcome]] = []
    direct: Way = (one.direct, one.era, one.calls)
    behind: Way = (url, era, served(one))
    for target, kind, calls in (direct, behind):
        reset(place / "files")
        person = Person()
        async with connect(target, kind, elicitation_callback=person.answer) as client:
            outcomes.append(await make_calls(client, calls, person))
    found = differences(one, *outcomes)
    errors = sum(outcome.is_error for outcome in outcomes[0])
    print(
        f"{'FAIL' if found else 'ok  '} {one.name}, client {era}: {len(one.calls)} calls, {errors} errors", flush=True
    )
    return found


def reset(files: Path) -> None:
    """Puts the folder of the server of files in order."""
    subprocess.run(["rm", "-rf", str(files)], check=True)
    files.mkdir()
    (files / "a.txt").write_text("one\ntwo\n")
    (files / "b.txt").write_text("b")


async def compare_all(url: str, behind: Sequence[Behind], place: Path) -> list[str]:
    await wait_for_tools(url, behind)
    return [each for era in ERAS for one in behind for each in await compare(url, one, place, era)]


def main(folder: Path) -> None:
    servers = Servers(folder)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        place = Path(name)
        reset(place / "files")
        everything: AtUrl = running.enter_context(at_url(servers, "streamableHttp"))
        typescript = running.enter_context(typescript_url(servers, folder))
        behind = [
            *reference_servers(servers, place, f"http://127.0.0.1:{everything.port}/mcp"),
            *python_servers(folder),
            git_server(folder, place),
            kubernetes_server(folder, place),
            Behind(name="typescript", entry={"url": typescript}, direct=typescript, calls=TYPESCRIPT_CALLS),
        ]
        url = running.enter_context(gateway(place, behind))
        found = anyio.run(compare_all, url, behind, place)
        print(*found, f"{len(found)} calls differ", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
