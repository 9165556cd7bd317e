"""Twenty FastAPI apps: eight that are written by hand, and twelve that hypothesis invents."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Body, Cookie, FastAPI, Form, Header, Path, Query, UploadFile
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Part(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=20)]
    parts: list[Part] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)] = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    breed: str | None = None


class Order(BaseModel):
    id: UUID
    size: Size
    price: float
    day: date | None = None
    parts: list[Part]
    labels: dict[str, int] = {}


def shop() -> FastAPI:
    app = FastAPI()

    @app.get("/items/{item_id}")
    def read_item(item_id: int, q: str | None = None, short: bool = False) -> dict[str, Any]:
        return {"id": item_id, "q": q, "short": short}

    @app.put("/items/{item_id}")
    def write_item(item_id: Annotated[int, Path(ge=0)], order: Order) -> Order:
        return order

    @app.delete("/items/{item_id}", status_code=204)
    def delete_item(item_id: int) -> None:
        return None

    return app


def queries() -> FastAPI:
    app = FastAPI()

    @app.get("/search")
    def search(
        q: Annotated[str, Query(min_length=1)],
        tags: Annotated[list[str], Query()] = [],  # noqa: B006
        sizes: Annotated[list[Size] | None, Query()] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
        since: datetime | None = None,
        ratio: float | None = None,
    ) -> list[Any]:
        return [q, tags, sizes, limit, since, ratio]

    return app


def headers() -> FastAPI:
    app = FastAPI()

    @app.get("/h")
    def read(x_number: Annotated[int, Header()], x_text: Annotated[str | None, Header()] = None) -> list[Any]:
        return [x_number, x_text]

    @app.get("/c")
    def cookie(session: Annotated[int | None, Cookie()] = None) -> int | None:
        return session

    return app


def bodies() -> FastAPI:
    app = FastAPI()

    @app.post("/list")
    def take_list(items: list[Part]) -> int:
        return len(items)

    @app.post("/map")
    def take_map(items: dict[str, int]) -> int:
        return len(items)

    @app.post("/number")
    def take_number(number: Annotated[int, Body()]) -> int:
        return number

    @app.patch("/two/{name}")
    def take_two(name: str, part: Part, cat: Cat, urgent: Annotated[bool, Body()] = False) -> str:
        return name

    return app


def unions() -> FastAPI:
    app = FastAPI()

    @app.post("/animal")
    def take(animal: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
        return animal.kind

    @app.post("/either")
    def either(value: Annotated[int | str | None, Body(embed=True)]) -> Any:
        return value

    return app


def forms() -> FastAPI:
    app = FastAPI()

    @app.post("/form")
    def form(a: Annotated[int, Form()], b: Annotated[str | None, Form()] = None) -> list[Any]:
        return [a, b]

    @app.post("/parts")
    def parts(
        a: Annotated[bool, Form()], c: Annotated[list[int], Form(min_length=1)], f: UploadFile | None = None
    ) -> list[Any]:
        return [a, c, f is None]

    @app.post("/upload")
    def upload(f: UploadFile) -> int:
        return 1

    return app


def recursive() -> FastAPI:
    app = FastAPI()

    @app.post("/tree")
    def tree(part: Part) -> Part:
        return part

    return app


def paths() -> FastAPI:
    app = FastAPI()

    @app.get("/{size}/{key}")
    def read(size: Size, key: UUID, on: date | None = None) -> list[Any]:
        return [size, key, on]

    @app.head("/{size}")
    def head(size: Size) -> None:
        return None

    return app


WRITTEN: list[Callable[[], FastAPI]] = [shop, queries, headers, bodies, unions, forms, recursive, paths]

_TYPES = st.sampled_from(
    [
        *(int, float, bool, str, date, UUID, Size, Literal["x", "y"], int | None, str | None),
        *(Annotated[str, Field(min_length=2, max_length=5)], Annotated[int, Field(gt=3, multiple_of=2)]),
    ]
)
_PLACES = st.sampled_from([Query, Header, Query, Body])


@st.composite
def _endpoints(draw: Any) -> FastAPI:
    app = FastAPI()
    for number in range(draw(st.integers(1, 3))):
        method = draw(st.sampled_from(["get", "post", "put", "patch", "delete"]))
        parameters = [
            inspect.Parameter(
                "key", inspect.Parameter.KEYWORD_ONLY, annotation=draw(st.sampled_from([int, Size, UUID]))
            )
        ]
        for index in range(draw(st.integers(1, 5))):
            kind, place = draw(_TYPES), draw(_PLACES)
            if place is Body and method in ("get", "delete"):
                place = Query
            if place is Query and kind in (int, str, UUID, Size) and draw(st.booleans()):
                kind = list[kind]
            info = Body(embed=True) if place is Body else place()
            # Only a body can say null, so no other place requires a value that may be null.
            is_needed = draw(st.booleans()) and (place is Body or kind not in (int | None, str | None))
            default = inspect.Parameter.empty if is_needed else None
            annotation = Annotated[kind if default is inspect.Parameter.empty else kind | None, info]
            kind_of = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(f"p{index}", kind_of, annotation=annotation, default=default))

        def endpoint(**values: Any) -> int:
            return len(values)

        endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        endpoint.__name__ = f"endpoint_{number}"
        app.add_api_route(f"/e{number}/{{key}}", endpoint, methods=[method.upper()])
    return app


def invented(count: int) -> list[FastAPI]:
    """Returns apps that hypothesis makes, the same in each run."""
    found: list[FastAPI] = []

    @seed(7)
    @settings(max_examples=count, phases=[Phase.generate], database=None, suppress_health_check=[*HealthCheck])
    @given(_endpoints())
    def collect(app: FastAPI) -> None:
        found.append(app)

    collect()
    return found[:count]
