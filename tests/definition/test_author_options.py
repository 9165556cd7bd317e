"""The options that type checkers know are the options that the constructors take."""

from __future__ import annotations

from typing import get_type_hints

from toolwire.definition.author_options import FunctionOptions, McpOptions, SchemaOptions
from toolwire.definition.from_function import OPTIONS, from_function
from toolwire.definition.from_schema import from_schema


def test_checkers_know_exactly_the_options_of_a_function() -> None:
    assert set(get_type_hints(FunctionOptions)) == set(OPTIONS)


def test_each_option_has_the_type_that_its_constructor_declares() -> None:
    taken = get_type_hints(from_function)
    assert {name: taken[name] for name in OPTIONS} == get_type_hints(FunctionOptions)
    declared = get_type_hints(from_schema)
    known = get_type_hints(SchemaOptions)
    assert {name: declared[name] for name in known if name in declared} == {
        name: kind for name, kind in known.items() if name in declared
    }
    assert set(known) - set(declared) == {"meta", "icons", "version"}
    assert set(get_type_hints(McpOptions)) < set(known)
