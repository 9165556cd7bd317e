"""Types that public signatures name, for annotations in your own code.

You need not create these objects yourself. Each name is loaded when it is first used.
"""

from toolwire._lazy_names import list_names, load_name


def __getattr__(name: str) -> object:
    return load_name(__name__, name)


def __dir__() -> list[str]:
    return list_names(__name__)
