"""Tools for the honest programs: small, deterministic, of every type that a tool may give. `TOOLS` lists them.

Sandbox and reference call the same functions. Their state lasts for one program: `reset()` clears it.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


class ToolError(Exception):
    """Stands here for the class that programs know by this name, above every exception that is not Python's own."""


class RateLimited(ToolError):
    """Too many requests; the same request works later."""


class HostDown(ToolError):
    """The host does not answer."""


@dataclass(frozen=True)
class Address:
    """Where somebody lives."""

    city: str
    postcode: str


@dataclass(frozen=True)
class Profile:
    """A user."""

    name: str
    email: str
    born: datetime.date
    address: Address
    roles: set[str] = field(default_factory=set)


_WEATHER = {
    "Beijing": {"city": "Beijing", "celsius": 31.5, "humidity": 40, "conditions": ["sunny", "dusty"]},
    "Berlin": {"city": "Berlin", "celsius": 18.0, "humidity": 65, "conditions": ["cloudy"]},
    "Lima": {"city": "Lima", "celsius": 16.4, "humidity": 88, "conditions": ["fog"]},
    "Oslo": {"city": "Oslo", "celsius": -3.5, "humidity": 71, "conditions": ["snow", "wind"]},
    "上海": {"city": "上海", "celsius": 27.0, "humidity": 80, "conditions": ["小雨"]},
}
_RATES = {"EUR": "1", "USD": "1.0850", "GBP": "0.8550", "JPY": "163.20", "CNY": "7.8400"}
_ARTICLES = (
    ("a1", "Growing tomatoes on a balcony", "garden", {"tomato", "balcony", "summer"}, "2023-04-02"),
    ("a2", "A short history of bread", "food", {"bread", "history"}, "2023-11-17"),
    ("a3", "Sourdough for beginners", "food", {"bread", "beginner", "yeast"}, "2024-01-05"),
    ("a4", "Pruning roses in winter", "garden", {"rose", "winter"}, "2024-02-11"),
    ("a5", "Cycling across the Alps", "travel", {"bicycle", "mountain", "summer"}, "2024-06-30"),
    ("a6", "Night trains of Europe", "travel", {"train", "history"}, "2024-09-09"),
)
_NOTES = {
    "groceries": "milk\neggs\nbread\ncoffee\n",
    "ideas": "A clock that runs backwards.\nA map of smells.\n",
    "log": "2024-03-01 INFO start\n2024-03-01 WARN disk 91%\n2024-03-02 ERROR disk full\n2024-03-02 INFO stop\n",
    "meeting": "Attendees: Ana, Bo, Chen\nDecision: ship on Friday\nTODO: Bo writes the announcement\n",
    "poem": "床前明月光，\n疑是地上霜。\n举头望明月，\n低头思故乡。\n",
    "scores": "name,math,art\nAna,90,75\nBo,62,88\nChen,,91\n",
    "todo": "[x] call Ana\n[ ] pay rent\n[ ] water plants\n",
}
_FILES = {
    "logo.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "hello.txt": "héllo, 世界\n".encode(),
    "empty.bin": b"",
    "counts.bin": bytes(range(0, 250, 7)),
}
_EMPLOYEES = (
    ("Ana", "sales", 5200, "2019-05-01", None),
    ("Bo", "sales", 4100, "2021-02-15", "Ana"),
    ("Chen", "tech", 6800, "2018-09-10", None),
    ("Dina", "tech", 6100, "2020-01-07", "Chen"),
    ("Emil", "tech", 4700, "2023-03-20", "Dina"),
    ("Fay", "legal", 5900, "2022-11-30", None),
)
_ORDERS = (
    (101, "Ana", "19.90", 2, "2024-01-15T09:30:00+00:00", ("book", "pen")),
    (102, "Bo", "5.05", 1, "2024-01-15T18:05:10+00:00", ("pen",)),
    (103, "Ana", "120.00", 3, "2024-02-02T07:00:00+00:00", ("lamp", "book", "rug")),
    (104, "Chen", "64.35", 1, "2024-02-28T23:59:59+00:00", ("lamp",)),
    (105, "Bo", "33.30", 4, "2024-03-10T12:00:00+00:00", ("cup", "cup", "plate", "pen")),
)
_WORDS = {"hello": "你好", "world": "世界", "tea": "茶", "moon": "月亮", "thank you": "谢谢"}
_PAGES = 4

_notes: dict[str, str] = {}
_attempts: dict[str, int] = {}


def reset() -> None:
    """Forgets what programs before this one wrote or tried."""
    _notes.clear()
    _notes.update(_NOTES)
    _attempts.clear()


def search(query: str, limit: int = 5) -> list[dict[str, Any]]:
    """Articles whose title or topic has the text, as `{"id", "title", "topic"}`."""
    found = [article for article in _ARTICLES if query.lower() in f"{article[1]} {article[2]}".lower()]
    return [{"id": article[0], "title": article[1], "topic": article[2]} for article in found[:limit]]


def tags_of(article: str) -> set[str]:
    """The tags of an article. Raises LookupError for one that there is not."""
    return set(_article(article)[3])


def published(article: str) -> datetime.date:
    """The day an article came out. Raises LookupError for one that there is not."""
    return datetime.date.fromisoformat(_article(article)[4])


def _article(name: str) -> Any:
    for article in _ARTICLES:
        if article[0] == name:
            return article
    raise LookupError(f"no article {name!r}")


def weather(city: str) -> dict[str, Any]:
    """The weather now: `{"city", "celsius", "humidity", "conditions"}`. Raises LookupError for unknown cities."""
    if city not in _WEATHER:
        raise LookupError(f"no weather for {city!r}")
    return {**_WEATHER[city], "conditions": list(_WEATHER[city]["conditions"])}  # type: ignore[call-overload]


def position(city: str) -> tuple[float, float]:
    """Latitude and longitude in degrees; (0, 0) for unknown cities."""
    known = {"Beijing": (39.9, 116.4), "Berlin": (52.52, 13.4), "Lima": (-12.05, -77.05), "Oslo": (59.91, 10.75)}
    return known.get(city, (0.0, 0.0))


def convert(amount: float, source: str, target: str = "EUR") -> float:
    """An amount in another currency, to the cent. Raises ValueError for unknown currencies."""
    for currency in (source, target):
        if currency not in _RATES:
            raise ValueError(f"unknown currency {currency!r}")
    return round(float(amount) / float(_RATES[source]) * float(_RATES[target]), 2)


def exchange_rate(currency: str) -> Decimal:
    """The price of one euro. Raises ValueError for unknown currencies."""
    if currency not in _RATES:
        raise ValueError(f"unknown currency {currency!r}")
    return Decimal(_RATES[currency])


def list_notes(page: int = 1, size: int = 3) -> dict[str, Any]:
    """A page of note names: `{"items", "next_page", "total"}`; `next_page` is None on the last."""
    names = sorted(_notes)
    start = (page - 1) * size
    more = start + size < len(names)
    return {"items": names[start : start + size], "next_page": page + 1 if more else None, "total": len(names)}


def read_note(name: str) -> str:
    """The text of a note. Raises FileNotFoundError when there is none of that name."""
    if name not in _notes:
        raise FileNotFoundError(f"there is no note {name!r}")
    return _notes[name]


def write_note(name: str, text: str, *, overwrite: bool = False) -> int:
    """Writes a note and gives its length. Raises FileExistsError rather than replace one unasked."""
    if name in _notes and not overwrite:
        raise FileExistsError(f"note {name!r} is there already")
    _notes[name] = text
    return len(text)


def download(name: str) -> bytes:
    """The bytes of a file. Raises FileNotFoundError."""
    if name not in _FILES:
        raise FileNotFoundError(f"there is no file {name!r}")
    return _FILES[name]


def employees(department: str | None = None) -> list[dict[str, Any]]:
    """People as `{"name", "department", "salary", "since", "manager"}`; `since` is ISO text, `manager` may be None."""
    keys = ("name", "department", "salary", "since", "manager")
    rows = [dict(zip(keys, row, strict=True)) for row in _EMPLOYEES]
    return [row for row in rows if department is None or row["department"] == department]


def orders(customer: str | None = None) -> list[dict[str, Any]]:
    """Orders as `{"id", "customer", "amount": Decimal, "count", "at": datetime in UTC, "items": tuple}`."""
    return [
        {
            "id": number,
            "customer": who,
            "amount": Decimal(amount),
            "count": count,
            "at": datetime.datetime.fromisoformat(at),
            "items": items,
        }
        for number, who, amount, count, at, items in _ORDERS
        if customer in (None, who)
    ]


def sales(year: int) -> list[float]:
    """The twelve months' sales of a year, in thousands."""
    return [round(50 + (year % 7) * 3 + month * 2.5 - (month % 4) * 6.25, 2) for month in range(12)]


def profile(user: str) -> Profile:
    """A user's profile. Raises KeyError for an unknown user."""
    people = {
        "ana": Profile("Ana Ito", "ana@example.org", datetime.date(1990, 2, 28), Address("Lima", "15001"), {"admin"}),
        "bo": Profile("Bo Li", "bo@example.org", datetime.date(2000, 2, 29), Address("上海", "200000")),
    }
    return people[user]


def next_meeting(person: str) -> datetime.datetime:
    """When somebody's next meeting starts, with its time zone. Raises LookupError for those who have none."""
    zone = datetime.timezone(datetime.timedelta(hours=2))
    found = {
        "Ana": datetime.datetime(2024, 5, 17, 15, 30, tzinfo=datetime.UTC),
        "Bo": datetime.datetime(2024, 5, 17, 9, 0, tzinfo=zone),
    }
    if person not in found:
        raise LookupError(f"{person} has no meeting")
    return found[person]


def opening_hours(day: str) -> tuple[datetime.time, datetime.time] | None:
    """When the shop opens and closes on a day such as "mon"; None when it stays closed."""
    if day == "sun":
        return None
    return datetime.time(9, 0), datetime.time(13 if day == "sat" else 18, 30)


def travel_time(start: str, end: str) -> datetime.timedelta:
    """How long the way takes."""
    return datetime.timedelta(minutes=37 * abs(len(start) - len(end)) + 25)


def translate(text: str, to: str = "zh") -> str:
    """A word in Chinese. Raises ValueError for any other language, gives the word itself when it is not known."""
    if to != "zh":
        raise ValueError(f"cannot translate to {to!r}")
    return _WORDS.get(text.lower(), text)


def divide(a: float, b: float) -> float:
    """a / b, with Python's own error for zero."""
    return float(a) / float(b)


def total(*amounts: float, label: str = "total") -> str:
    """The sum of all amounts, with a label before it."""
    return f"{label}: {sum(amounts):.2f}"


def echo(value: Any) -> Any:
    """Gives back what it gets."""
    return value


def flaky(key: str) -> str:
    """Works from the third call with the same key on.

    Raises:
        RateLimited: it was called fewer times before.
    """
    _attempts[key] = _attempts.get(key, 0) + 1
    if _attempts[key] < 3:
        raise RateLimited(f"{key}: attempt {_attempts[key]} was too early")
    return f"{key} done after {_attempts[key]} attempts"


async def fetch_page(number: int, delay: float = 0.0) -> dict[str, Any]:
    """A page of rows: `{"page", "rows", "next"}`; `next` is None on the last of 4. Raises IndexError beyond it."""
    await asyncio.sleep(delay)
    if not 1 <= number <= _PAGES:
        raise IndexError(f"there is no page {number}")
    rows = [{"id": number * 10 + place, "value": (number * 37 + place * 11) % 23} for place in range(3)]
    return {"page": number, "rows": rows, "next": number + 1 if number < _PAGES else None}


async def ping(host: str) -> int:
    """Milliseconds to a host.

    Raises:
        HostDown: the host's name starts with "down".
    """
    await asyncio.sleep(0)
    if host.startswith("down"):
        raise HostDown(f"{host} does not answer")
    return len(host) * 3


async def slow_answer(seconds: float, answer: str = "late") -> str:
    """Gives the answer after so many seconds."""
    await asyncio.sleep(seconds)
    return answer


TOOLS: tuple[Callable[..., Any], ...] = (
    search, tags_of, published, weather, position, convert, exchange_rate, list_notes, read_note, write_note,
    download, employees, orders, sales, profile, next_meeting, opening_hours, travel_time, translate, divide, total,
    echo, flaky, fetch_page, ping, slow_answer,
)  # fmt: skip
EXCEPTIONS = (ToolError, RateLimited, HostDown)
"""Those that are not Python's own; a program catches them by name."""

reset()
