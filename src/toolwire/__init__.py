"""The tool layer between a language model and the tools it may use.

The first three things to do:

1. Write files that run as they are, from a shell: `toolwire init my_agent`, or `python -m toolwire init my_agent`.
2. Give your functions to a model: `session = Session([function], protocol="openai")`, then `session.run_turn(response)`
   for each answer of the provider's SDK. `help(toolwire.Session)` has the loop.
3. Call a tool yourself, down the same path: `registry = ToolRegistry()`, `registry.register(function)` and
   `registry.invoke("name", {"argument": 1})`. `help(toolwire.ToolRegistry)` says what else it does.

Everything public can be imported from here; each name is loaded when it is first used.
"""

from importlib import import_module

_MOVED = {
    "ConsoleApprover": "approvals",
    "Decider": "approvals",
    "Diagnosis": "doctor",
    "LogCheck": "log",
    "LogFilter": "log",
    "LogRow": "log",
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
"""Names with a module of their own. The root finds them too, with a DeprecationWarning, until 0.3."""


def __getattr__(name: str) -> object:
    if name in _MOVED:
        return _moved(name)
    if name == "__version__":
        from importlib.metadata import version

        return version("toolwire")
    from toolwire._lazy_names import load_name

    return load_name(__name__, name)


def _moved(name: str) -> object:
    import warnings

    home = f"toolwire.{_MOVED[name]}"
    # The frame above this one is __getattr__, and the one above that is the user's.
    warnings.warn(f"toolwire.{name} is now {home}.{name}", DeprecationWarning, stacklevel=3)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    from toolwire._lazy_names import list_names

    return list_names(__name__)
