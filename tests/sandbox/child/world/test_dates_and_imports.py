"""`datetime` as module and class at once, and the effect of import statements."""

from __future__ import annotations

import pytest

from tests.sandbox.programs import Runner
from toolwire.vocabulary.calls import PROGRAM_MODULES

TRUE = [
    "isinstance(datetime.now(), datetime) and isinstance(datetime.datetime.now(), datetime.datetime)",
    "type(datetime.now()) is datetime.datetime and type(datetime.now()) == datetime",
    "datetime(2024, 1, 31) == datetime.datetime(2024, 1, 31)",
    "datetime.date(2024, 1, 31) == datetime(2024, 1, 31).date()",
    "datetime.time(12) == datetime(2024, 1, 31, 12).time()",
    "datetime(2024, 1, 31) + datetime.timedelta(days=1) == datetime(2024, 2, 1)",
    "datetime.UTC is datetime.timezone.utc and datetime.now(datetime.UTC).tzinfo is datetime.UTC",
    "datetime.parse('2024-01-31T10:00:00Z') == datetime(2024, 1, 31, 10, tzinfo=datetime.UTC)",
    "datetime.parse(' 20240131 ') == datetime(2024, 1, 31)",
    "datetime.strptime('31.01.2024', '%d.%m.%Y') == datetime(2024, 1, 31)",
    "datetime.fromisoformat('2024-01-31') == datetime(2024, 1, 31) and datetime.min.year == datetime.MINYEAR",
    "not isinstance(datetime.date(2024, 1, 31), datetime) and not isinstance('2024', datetime)",
    "issubclass(datetime, datetime.date) and datetime.__name__ == 'datetime'",
    "{datetime: 1}[type(datetime.now())] == 1",
    "(lambda: 'now' in dir(datetime) and 'timedelta' in dir(datetime))()",
]


@pytest.mark.parametrize("expression", TRUE)
def test_datetime_serves_both_ways(run: Runner, expression: str) -> None:
    assert run(expression).value is True


def test_datetime_works_in_patterns_annotations_and_as_a_base(run: Runner) -> None:
    source = """
class Moment(datetime):
    def label(self) -> str:
        return self.strftime("%Y")
def year(value: datetime | None) -> int:
    match value:
        case datetime(year=found):
            return found
        case None:
            return 0
__result__ = [Moment(2024, 1, 1).label(), year(datetime(2023, 1, 1)), year(None), type(Moment(2024, 1, 1)).__name__]
"""
    assert run(source).value == ["2024", 2023, 0, "Moment"]


def test_a_text_that_is_not_a_date_names_the_accepted_form(run: Runner) -> None:
    error = run("datetime.parse('31.01.2024')").error
    assert error is not None
    assert error.message == ("datetime.parse: '31.01.2024' is not ISO 8601, such as 2024-01-31 or 2024-01-31T12:30:00Z")


IMPORTS = {
    "import math, json": "math.pi > 3 and json.dumps(1) == '1'",
    "import datetime": "datetime.now() > datetime.datetime(2024, 1, 1)",
    "import datetime as dt": "dt.datetime.now() - dt.timedelta(days=1) < dt.now()",
    "from datetime import datetime, timedelta": "datetime.now() - timedelta(1) < datetime.now()",
    "from datetime import datetime, date": "datetime.datetime.now().date() >= date(2024, 1, 1)",
    "from datetime import *": "timedelta(days=1).days == 1",
    "from math import sqrt as root": "root(4) == 2",
    "from statistics import mean": "mean([1, 3]) == 2",
    "from json.decoder import JSONDecodeError": "issubclass(JSONDecodeError, ValueError)",
    "import asyncio": "callable(asyncio.gather)",
    "from __future__ import annotations": "True",
}


@pytest.mark.parametrize(("statement", "expression"), IMPORTS.items())
def test_an_import_of_what_is_there_is_accepted(run: Runner, statement: str, expression: str) -> None:
    assert run(f"{statement}\n{expression}").value is True


def test_an_import_that_escaped_the_checks_is_refused_by_name(run: Runner) -> None:
    error = run("globals()['__builtins__']['__import__']('os')").error
    assert error is not None
    assert (error.type, error.message) == (
        "ImportError",
        f"a program cannot import 'os'; it has {', '.join(PROGRAM_MODULES)} without import",
    )


def test_modules_are_there_without_import(run: Runner) -> None:
    assert run("[math.floor(1.5), json.loads('1'), re.sub('a', 'b', 'a'), statistics.median([3, 1, 2])]").value == [
        1,
        1,
        "b",
        2,
    ]
