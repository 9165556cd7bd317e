"""Types that public signatures name, for annotations in your own code.

You need not create these objects yourself. Each name is loaded when it is first used.
"""

from toolwire._lazy_names import list_names, load_name

_MOVED = frozenset({"Described", "KeptText", "RunLedger", "RunStart", "RunStore", "Seen", "Spill", "Standing"})
"""Names that are in `toolwire.testing` now. They are found here too, with a warning, until 0.3."""


def __getattr__(name: str) -> object:
    if name in _MOVED:
        from toolwire.facade.deprecation import moved_name

        return moved_name(__name__, name, to="toolwire.testing", since="0.1")
    return load_name(__name__, name)


def __dir__() -> list[str]:
    return list_names(__name__)
