"""Programs run in a real `toolwire runner`, over mutual TLS, and nothing else about them changes."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.app import call
from tests.fleet.runners import Authority, RunnerProcess
from tests.patience import until
from toolwire import ConfigurationError, SandboxUnavailable, Session, ToolRegistry
from toolwire.fleet import RemoteRunner
from toolwire.sandbox.answers import Answer, Parked, Replay
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program, ProgramCall, ProgramParameter, ProgramTool
from toolwire.sandbox.runner import ProgramRunner
from toolwire.testing.runners import RUNNER_CHECKS

ADD = ProgramTool(
    name="add",
    program_name="add",
    parameters=tuple(
        ProgramParameter(name=name, program_name=name, kind="either", required=True) for name in ("a", "b")
    ),
)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def program(code: str) -> Any:
    """A reply that runs it."""
    return call("code_execution", code=code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runners")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "ours")


@pytest.fixture(scope="module")
def tls(authority: Authority) -> dict[str, Any]:
    """The options of a host with a certificate."""
    host = authority.identity("host")
    return {"cert": host.cert, "key": host.key, "ca": authority.ca}


@pytest.fixture(scope="module")
def start(folder: Path, authority: Authority) -> Iterator[Callable[[], RunnerProcess]]:
    """Starts a runner with a certificate. Each is killed at the end."""
    identity, started = authority.identity("runner"), list[RunnerProcess]()

    def start_one() -> RunnerProcess:
        options = ["--cert", str(identity.cert), "--key", str(identity.key), "--client-ca", str(authority.ca)]
        started.append(RunnerProcess(folder / f"said{len(started)}", "--listen", "127.0.0.1:0", *options))
        return started[-1]

    yield start_one
    for one in started:
        one.kill()


@pytest.fixture(scope="module")
def process(start: Callable[[], RunnerProcess]) -> RunnerProcess:
    return start()


@pytest.fixture(scope="module")
def runner(process: RunnerProcess, tls: dict[str, Any]) -> Iterator[RemoteRunner]:
    with RemoteRunner([process.address], trust="kernel+namespaces", **tls) as runner:
        yield runner


def test_a_session_runs_its_programs_there(runner: RemoteRunner, process: RunnerProcess) -> None:
    session = Session([add], protocol="openai", programs=True, runner=runner)
    result = session.run_turn(program("add(a=add(a=1, b=2), b=3)")).results[0]
    assert result.text == "6"
    claimed = result.metadata["isolation"]["report"]["claimed"]
    assert claimed.endswith(f"by the runner {process.address}")


def test_a_registry_runs_its_programs_there(runner: RemoteRunner, process: RunnerProcess) -> None:
    registry = ToolRegistry(runner=runner)
    registry.register(add)
    registry.enable_code_execution()
    result = registry.run_program("add(a=1, b=2)")
    assert (result.status, result.value) == ("finished", 3)
    assert result.cpu_s > 0
    assert process.address in result.isolation.report["claimed"]
    turn = Session(registry, protocol="openai").run_turn(program("1 + 1"))
    assert process.address in turn.results[0].metadata["isolation"]["report"]["claimed"]


@pytest.mark.parametrize("check", RUNNER_CHECKS)
def test_it_is_a_program_runner(check: str, runner: RemoteRunner) -> None:
    kept: ProgramRunner = runner
    RUNNER_CHECKS[check](lambda: kept)


def test_large_values_pass_both_ways(runner: RemoteRunner) -> None:
    registry = ToolRegistry(runner=runner)

    @registry.register
    def echo(text: str) -> str:
        return text

    result = registry.run_program("text = 'é' * 450_000\nassert echo(text=text) == text\n'x' * 900_000")
    assert (result.status, len(result.value)) == ("finished", 900_000)


def test_parallel_calls_and_programs_do_not_mix(runner: RemoteRunner) -> None:
    registry = ToolRegistry(runner=runner)

    @registry.register
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number

    code = "import asyncio\nsum(await asyncio.gather(*[later(number={0} + n) for n in range(20)]))"

    async def main() -> list[Any]:
        return await asyncio.gather(*(registry.ainvoke("code_execution", {"code": code.format(n)}) for n in range(8)))

    registry.enable_code_execution()
    results = asyncio.run(main())
    assert [result.text for result in results] == [str(190 + 20 * number) for number in range(8)]


def test_a_program_that_crashes_is_no_lost_connection(runner: RemoteRunner) -> None:
    result = ToolRegistry(runner=runner).run_program("while True: pass", limits=Limits(cpu_s=1))
    assert result.status == "timeout_cpu"
    assert "lost" not in result.isolation.report


@pytest.mark.parametrize(("trust", "level"), [(None, "process"), ("kernel", "kernel")])
def test_a_claim_counts_as_far_as_it_is_trusted(
    trust: Any, level: str, process: RunnerProcess, tls: dict[str, Any]
) -> None:
    with RemoteRunner([process.address], trust=trust, **tls) as runner:
        registry = ToolRegistry(runner=runner)
        assert registry.run_program("1", min_isolation="process").isolation.level == level
        if trust is None:
            with pytest.raises(SandboxUnavailable, match=r"'kernel'.*not trusted above 'process'(.|\n)*--trust kernel"):
                registry.run_program("1")
        else:
            assert registry.run_program("1").status == "finished"


def test_no_runner_says_what_to_do(process: RunnerProcess, tls: dict[str, Any], tmp_path: Path) -> None:
    with RemoteRunner([f"unix:{tmp_path}/none"]) as runner:
        registry = ToolRegistry(runner=runner)
        registry.enable_code_execution()
        with pytest.raises(SandboxUnavailable, match=r"none: No such file(.|\n)*Start `toolwire runner` there"):
            registry.run_program("1")
        failure = registry.invoke("code_execution", {"code": "1"}).failure
        assert failure is not None
        assert failure.kind == "unavailable"
    with RemoteRunner([f"unix:{tmp_path}/none", process.address], trust="kernel", **tls) as runner:
        assert ToolRegistry(runner=runner).run_program("1 + 1").value == 2


def _program(source: str, replay: Replay | None) -> Program:
    return Program(source=source, tools=(ADD,), replay=replay)


def test_a_recorded_program_goes_on_elsewhere(start: Callable[[], RunnerProcess], tls: dict[str, Any]) -> None:
    """The record answers the call that was made before its runner died."""
    first, second = start(), start()
    made: list[int] = []

    def answer(call: ProgramCall) -> Answer | Parked:
        made.append(call.ordinal)
        if call.ordinal == 2:
            first.kill()
        return Answer(value=call.arguments["a"] + call.arguments["b"])

    source = "x = add(a=1, b=2)\ny = add(a=x, b=3)\nadd(a=y, b=4)"
    # A new runner begins with the second address, and then takes them in turn.
    with RemoteRunner([second.address, first.address], trust="kernel", **tls) as runner:
        result = runner.run(_program(source, Replay(seed=1, started_at=1.0)), answer)
        assert (result.status, result.value, made) == ("finished", 10, [1, 2, 3])
        assert second.address in result.isolation.report["claimed"]
        assert runner.run(_program("add(a=1, b=1)", None), answer).value == 2


def test_without_a_record_only_a_program_without_calls_runs_again(
    start: Callable[[], RunnerProcess], tls: dict[str, Any]
) -> None:
    first, second = start(), start()
    made: list[int] = []

    def answer(call: ProgramCall) -> Answer | Parked:
        made.append(call.ordinal)
        first.kill()
        return Answer(value=0)

    with RemoteRunner([second.address, first.address], trust="kernel", **tls) as runner:
        result = runner.run(_program("add(a=1, b=2)", None), answer)
    assert (result.status, made) == ("crashed", [1])
    assert first.address in result.isolation.report["lost"]


def test_a_runner_that_is_told_to_end_waits_for_its_program(
    start: Callable[[], RunnerProcess], tls: dict[str, Any]
) -> None:
    process = start()

    def answer(_: ProgramCall) -> Answer | Parked:
        process.send(signal.SIGTERM)
        until(lambda: not _is_open(process))
        return Answer(value=5)

    with RemoteRunner([process.address], trust="kernel", **tls) as runner:
        assert runner.run(_program("add(a=1, b=2)", None), answer).value == 5
    assert process.wait() == 0
    assert process.said().endswith("ended\n")


def test_a_unix_socket_is_for_this_user_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "runner"
    process = RunnerProcess(tmp_path / "said", "--listen", f"unix:{path}")
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        with RemoteRunner([f"unix:{path}"], trust="kernel") as runner:
            assert ToolRegistry(runner=runner).run_program("2 + 2").value == 4
    finally:
        process.send(signal.SIGTERM)
        assert process.wait() == 0
    assert not path.exists()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"addresses": []}, "give a list of addresses"),
    ({"addresses": "r1:8443"}, r"give a list of addresses, such as \['r1:8443'\]"),
    ({"addresses": ["r1"]}, "'r1' is not the address of a runner: write HOST:PORT, or unix:PATH"),
    ({"addresses": ["http://r1:1"]}, "'http://r1:1' is not the address of a runner"),
    ({"addresses": ["r1:8443"]}, "r1:8443 needs mutual TLS: give a certificate, its key"),
    ({"addresses": ["127.0.0.1:1"]}, "needs mutual TLS"),
    ({"addresses": ["r1:8443"], "insecure": True}, "others than this machine reach r1:8443"),
    ({"addresses": ["127.0.0.1:1"], "insecure": True, "cert": "a"}, "leave insecure out"),
    ({"addresses": ["r1:1"], "cert": "/none", "key": "/none", "ca": "/none"}, "No such file.*give PEM files"),
    (
        {"addresses": ["unix:/x"], "cert": "a"},
        "a unix: address has no TLS: leave the certificate, key and authority out",
    ),
    ({"addresses": ["unix:/x"], "trust": "yes"}, "trust='yes': write 'kernel'"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_wrong_options_are_refused_in_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        RemoteRunner(**options)
    assert "\n" not in str(refused.value)


def test_a_runner_without_programs_is_refused() -> None:
    with RemoteRunner(["unix:/none"]) as runner, pytest.raises(ConfigurationError, match="runner is for programs"):
        Session([add], protocol="json", programs=False, runner=runner)


@pytest.mark.parametrize("make", [lambda wrong: Session([add], runner=wrong), lambda wrong: ToolRegistry(runner=wrong)])
def test_what_runs_no_programs_is_refused(make: Callable[[Any], object]) -> None:
    for wrong in ("r1:8443", RemoteRunner):
        with pytest.raises(ConfigurationError, match="or an object that runs programs"):
            make(wrong)


def _is_open(process: RunnerProcess) -> bool:
    host, _, port = process.address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
