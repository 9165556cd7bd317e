"""Names that code for an older system needs. `docs/seeds` has a page for each of these systems.

`toolwire` gives these names as well, without listing them. Each is loaded when it is first used.
"""

from toolwire._lazy_names import list_names, load_name


def __getattr__(name: str) -> object:
    return load_name(__name__, name)


def __dir__() -> list[str]:
    return list_names(__name__)
