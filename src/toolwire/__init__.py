"""The tool layer between a language model and the tools it may use.

The first three things to do:

1. Write files that run as they are, from a shell: `toolwire init my_agent`, or `python -m toolwire init my_agent`.
2. Give your functions to a model: `session = Session([function], protocol="openai")`, then `session.run_turn(response)`
   for each answer of the provider's SDK. `help(toolwire.Session)` has the loop.
3. Call a tool yourself, down the same path: `registry = ToolRegistry()`, `registry.register(function)` and
   `registry.invoke("name", {"argument": 1})`. `help(toolwire.ToolRegistry)` says what else it does.

Each name is loaded when it is first used. `toolwire.tools` has the tools that toolwire brings, `toolwire.types` the
types for annotations, and `toolwire.seeds` the names of older systems.
"""

from importlib import import_module

_MOVED = {
    "AgentEvent": "types",
    "AgentResult": "types",
    "ConsoleApprover": "approvals",
    "Decider": "approvals",
    "Diagnosis": "doctor",
    "Failure": "types",
    "FunctionTool": "types",
    "LogCheck": "log",
    "LogFilter": "log",
    "LogRow": "log",
    "McpPins": "types",
    "Observation": "types",
    "PermissionDecided": "types",
    "PermissionRequested": "types",
    "Problem": "types",
    "SuspendedRun": "types",
    "ToolChunk": "types",
    "ToolCompleted": "types",
    "ToolStarted": "types",
    "check_edit": "approvals",
    "console_approver": "approvals",
    "decisions_to_json": "approvals",
    "diagnose": "doctor",
    "later": "approvals",
    "read_decisions": "approvals",
    "read_edit": "approvals",
    "read_suspended": "approvals",
    "render_request": "approvals",
    "rule_for": "approvals",
    "suspended_to_json": "approvals",
    "visible_text": "approvals",
}
"""Names that are in another module now. The root gives them with a warning, until 0.3."""


_UNLISTED = ("toolwire.tools", "toolwire.seeds")
"""Modules whose names the root gives as well, without listing them."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("toolwire")
    if name in _MOVED:
        from toolwire.facade.deprecation import moved_name

        return moved_name(__name__, name, to=f"toolwire.{_MOVED[name]}", since="0.1")
    from toolwire._lazy_names import load_name

    if name not in ("__all__", *__dir__()):
        for module in map(import_module, _UNLISTED):
            if name in module.__all__:
                globals()[name] = getattr(module, name)
                return globals()[name]
    return load_name(__name__, name)


def __dir__() -> list[str]:
    from toolwire._lazy_names import list_names

    return list_names(__name__)
