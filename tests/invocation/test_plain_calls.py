"""A plain blocking call costs no event loop and no thread."""

from __future__ import annotations

from tests.runtime.subprocesses import output_of

SETUP = """
    import sys, threading
    from toolwire.catalogue.catalogue import Catalogue
    from toolwire.catalogue.entry import Entry
    from toolwire.definition.from_function import from_function
    from toolwire.invocation.batch import invoke_all, needs_loop
    from toolwire.invocation.ports.blocking import BlockingPorts
    from toolwire.invocation.scope import Scope
    from toolwire.journal.log.memory_log import ExecutionLog
    from toolwire.permission.policy import Policy, Rule
    from toolwire.runtime.runtime import default_runtime
    from toolwire.runtime.step import step
    from toolwire.vocabulary.calls import ToolCall

    def add(a: int, b: int = 2) -> int:
        '''Adds.'''
        return a + b

    tools, log = Catalogue(), ExecutionLog()
    tools.add(Entry(name="add", tool=from_function(add), handle=add))
    scope = Scope(
        catalogue=tools,
        policy=Policy([Rule(effect="confirm", tool="pay")]),
        ports=BlockingPorts(default_runtime()),
        observers=(log,),
    )
    calls = [ToolCall("add", {"a": 1}), ToolCall("add", {"a": "x"}), ToolCall("ad", {})]
    if needs_loop(calls, scope):
        raise SystemExit("these calls need no loop")
"""


def test_a_blocking_call_imports_no_asyncio_and_starts_no_thread() -> None:
    script = (
        SETUP
        + """
    results = [step(invoke_all([call], scope))[0] for call in calls]
    print(*(result.failure.kind if result.failure else result.data for result in results), len(log))
    print("asyncio" in sys.modules, threading.active_count())
    """
    )
    assert output_of(script) == "3 invalid_arguments unknown_tool 3\nFalse 1\n"


def test_a_blocking_batch_starts_threads_and_imports_no_asyncio() -> None:
    script = (
        SETUP
        + """
    results = step(invoke_all(calls, scope))
    print(len(results), "asyncio" in sys.modules, threading.active_count() > 1)
    """
    )
    assert output_of(script) == "3 False True\n"
