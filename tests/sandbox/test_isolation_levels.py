"""Least isolation: programs that run, refusals with their messages, and the places that show the level."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.child.kernel.weakened import VOID, weakened
from tests.sandbox.programs import Runner, answer
from toolwire import ConfigurationError, SandboxUnavailable, Session, ToolCall, ToolRegistry
from toolwire.facade.built_in import program_entry as facade_programs
from toolwire.runtime.runtime import Runtime
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.isolation import require
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import WASM_INSTEAD, Isolation, IsolationLevel, MinIsolation

WARNING = (
    "a program runs at isolation level 'process': in a process of its own with limits on memory, time and output, "
    "without the kernel's walls. Run only programs of models and users that you trust."
)


def isolation(level: IsolationLevel) -> Isolation:
    return Isolation(level=level, report={"seccomp": "NOT in force: fork: done"} if level < "kernel" else {})


RUNS: dict[MinIsolation, dict[IsolationLevel, bool]] = {
    "process": {"none": False, "process": True, "kernel": True, "kernel+namespaces": True},
    "kernel": {"none": False, "process": False, "kernel": True, "kernel+namespaces": True},
    "kernel+namespaces": {"none": False, "process": False, "kernel": False, "kernel+namespaces": True},
}


@pytest.mark.requirement("ptc.safety.level")
@pytest.mark.parametrize("least", RUNS)
def test_each_isolation_level_runs_the_programs_it_allows(least: MinIsolation) -> None:
    def runs(level: IsolationLevel) -> bool:
        try:
            require(Program(source="1", min_isolation=least), isolation(level))
        except SandboxUnavailable:
            return False
        return True

    assert {level: runs(level) for level in RUNS[least]} == RUNS[least]


@pytest.mark.requirement("ptc.safety.level")
def test_kernel_is_the_least_without_being_asked_for() -> None:
    assert Program(source="1").min_isolation == "kernel"


@pytest.mark.parametrize("least", ["none", "", "KERNEL", None, 1])
def test_a_level_that_is_none_is_refused(least: object) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        Program(source="1", min_isolation=least)  # type: ignore[arg-type]
    levels = "'process', 'wasm', 'kernel', 'kernel+namespaces'"
    assert str(refusal.value) == f"min_isolation={least!r}: give one of {levels}"


def test_the_refusal_says_what_was_observed_and_what_to_do() -> None:
    report = {
        "python": "3.11.7",
        "landlock": "ABI 7: open a folder refused",
        "seccomp": "NOT in force: fork: done",
        "namespaces": "NOT there: unshare: Operation not permitted",
    }
    with pytest.raises(SandboxUnavailable) as refusal:
        require(Program(source="1"), Isolation(level="process", report=report))
    assert refusal.value.report == report
    happened, how_to_fix = str(refusal.value).splitlines()
    assert happened == (
        "a program needs isolation level 'kernel', and this machine gives 'process' "
        "(seccomp: NOT in force: fork: done; namespaces: NOT there: unshare: Operation not permitted)"
    )
    assert how_to_fix == refusal.value.how_to_fix
    assert how_to_fix == (
        "Use Linux on x86-64 or aarch64 with CONFIG_SECCOMP_FILTER, and let the container use prctl(PR_SET_SECCOMP). "
        "Allow user namespaces: sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 and "
        "kernel.apparmor_restrict_unprivileged_userns=0 where they exist; in a container, a seccomp profile that "
        "allows unshare, mount and pivot_root. `toolwire doctor` shows each layer. "
        f"{WASM_INSTEAD} "
        'For programs that you trust as you trust your own code, ask for less by name: min_isolation="process".'
    )


@pytest.fixture(scope="module")
def weak() -> Iterator[Sandbox]:
    with weakened(VOID["seccomp"]) as sandbox:
        yield sandbox


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "toolwire.sandbox"]


def test_a_weak_sandbox_runs_nothing_unasked(weak: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[object] = []
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match="this machine gives 'process'"):
            weak.run(Program(source="1"), lambda call: calls.append(call) or answer(call))
    assert (calls, warnings_of(caplog)) == ([], [])


async def test_a_weak_sandbox_runs_nothing_unasked_under_a_loop(weak: Sandbox) -> None:
    async def awaited(call: object) -> object:
        raise AssertionError("no call can come")

    with pytest.raises(SandboxUnavailable, match="this machine gives 'process'"):
        await weak.run_async(Program(source="1"), awaited)  # type: ignore[arg-type]


def test_asked_for_by_name_it_runs_and_warns_each_time(weak: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        result = weak.run(Program(source="1 + 1", min_isolation="process"), answer)
        assert (result.value, result.isolation.level) == (2, "process")
    assert warnings_of(caplog) == [WARNING, WARNING]


def test_asking_for_less_than_there_is_warns_of_nothing(run: Runner, caplog: pytest.LogCaptureFixture) -> None:
    result = run.sandbox.run(Program(source="1", min_isolation="process"), answer)
    assert result.isolation.level.startswith("kernel")
    assert warnings_of(caplog) == []


def test_below_process_nothing_runs_whatever_is_asked_for() -> None:
    with weakened(VOID["limits"]) as sandbox, pytest.raises(SandboxUnavailable, match="this machine gives 'none'"):
        sandbox.run(Program(source="1", min_isolation="process"), answer)


def test_a_program_that_is_refused_has_the_isolation_it_would_have_had(run: Runner) -> None:
    refused = run("import os")
    assert refused.status == "failed"
    assert refused.isolation == run("1").isolation


async def test_a_program_refused_under_a_loop_has_it_too(run: Runner) -> None:
    async def awaited(call: object) -> object:
        raise AssertionError("no call can come")

    result = await run.sandbox.run_async(Program(source="import os"), awaited)  # type: ignore[arg-type]
    assert result.isolation == run("1").isolation


@pytest.fixture
def weak_registry(weak: Sandbox, monkeypatch: pytest.MonkeyPatch) -> ToolRegistry:
    def shared(_: Runtime) -> Sandbox:
        return weak

    monkeypatch.setattr(facade_programs, "sandbox_of", shared)
    return ToolRegistry()


def test_a_registry_refuses_unless_asked_for_less(weak_registry: ToolRegistry) -> None:
    with pytest.raises(SandboxUnavailable):
        weak_registry.run_program("1")
    assert weak_registry.run_program("1 + 1", min_isolation="process").value == 2
    with pytest.raises(ConfigurationError, match="min_isolation='weak'"):
        weak_registry.run_program("1", min_isolation="weak")  # type: ignore[arg-type]


def test_a_models_program_is_unavailable_unless_less_was_asked_for(weak_registry: ToolRegistry) -> None:
    weak_registry.enable_code_execution()
    failed = weak_registry.invoke("code_execution", {"code": "1"})
    assert failed.failure is not None
    assert failed.failure.kind == "unavailable"
    weak_registry.enable_code_execution(min_isolation="process")
    assert weak_registry.invoke("code_execution", {"code": "1 + 1"}).text == "2"


async def test_a_session_may_ask_for_less(weak_registry: ToolRegistry) -> None:
    outcomes: list[str] = []
    for least in ("kernel", "process"):
        session = Session(weak_registry, min_isolation=least)
        reply = session.protocol.render([ToolCall("code_execution", {"code": "1 + 1"})])
        (result,) = (await session.turn(reply)).results
        outcomes.append(result.text if result.failure is None else result.failure.kind)
    assert outcomes == ["unavailable", "2"]


def test_the_log_says_what_stood_between_each_program_and_the_host() -> None:
    registry = ToolRegistry()

    @registry.register
    def add(a: int, b: int) -> int:
        return a + b

    log = registry.enable_logging()
    registry.enable_code_execution()
    for code in ("add(1, 2)", "1 / 0", "import os"):
        registry.invoke("code_execution", {"code": code})
    expected = registry.run_program("1").isolation
    entries = log.get_entries(tool_name="code_execution")
    assert [entry.isolation for entry in entries] == [{"level": expected.level, "report": expected.report}] * 3
    assert [entry.isolation for entry in log.get_entries(tool_name="add")] == [None]
