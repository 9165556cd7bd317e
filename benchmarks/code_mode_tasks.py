"""The world of `benchmarks.code_mode`, and its ten tasks, each as an ideal model does it in both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Call = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments."""

MONTHS = [f"2026-{month:02}" for month in range(1, 13)]
CUSTOMERS = ["Aster", "Birch", "Cedar", "Dahlia", "Elder", "Fern"]
SERVICES = ["auth", "billing", "cart", "mail", "search", "stock"]
TEAMS = ["Atlas", "Borealis", "Cygnus"]
CITIES = ["New York", "Chicago", "Los Angeles"]
DONE = {2, 5, 7}
"""The notes that are done."""
CHANGED = {"mail", "stock"}
"""The services whose configurations differ."""
SUMS = [(number * 7, number * 11 + 3) for number in range(1, 21)]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One request of a user."""

    question: str
    rounds: Sequence[Sequence[Call]]
    """Direct calls: those of one round do not depend on each other, but on the round before."""
    searches: Sequence[str]
    """Searches for the tools of the program."""
    needs: Sequence[str]
    """Tools that the program calls, which the searches must find."""
    program: str
    """The program that does the task."""
    says: str
    """A text in its output, by which the answer is known to be right."""


def sales(month: str) -> list[tuple[int, str, int]]:
    """Returns order, customer and amount of the orders of a month."""
    first = MONTHS.index(month) * 30
    return [(first + n, CUSTOMERS[(first + n * 5) % 6], 20 + (first + n) * 37 % 400) for n in range(30)]


def log(service: str) -> list[str]:
    """Returns the lines of a service's log."""
    number = SERVICES.index(service)
    return [
        f"2026-11-{1 + n // 3:02}T08:{n % 60:02}:00Z {'ERROR' if n % (7 + number) == 3 else 'INFO'} "
        f"{service} request {1000 + n} took {n * 13 % 90} ms"
        for n in range(60)
    ]


def errors(service: str) -> int:
    """Returns the number of errors in a service's log."""
    return sum(" ERROR " in line for line in log(service))


def people() -> list[dict[str, str]]:
    """Returns the persons of the file."""
    return [
        {"name": f"Person {n}", "team": TEAMS[n % 3], "city": CITIES[n % 2], "since": f"20{10 + n % 15}"}
        for n in range(40)
    ]


def entities() -> list[dict[str, Any]]:
    """Returns the entities of the graph."""
    projects = [
        {
            "name": f"Project {n}",
            "entityType": "project",
            "observations": [
                f"owned by team {TEAMS[n % 3]}",
                f"budget {n * 10 + 40}",
                f"status {['open', 'closed'][n % 2]}",
            ],
        }
        for n in range(12)
    ]
    rest = [
        {"name": name, "entityType": "customer", "observations": [f"buys since 20{15 + n}", "pays within 30 days"]}
        for n, name in enumerate(CUSTOMERS)
    ]
    stray = [{"name": f"Stray {n}", "entityType": "idea", "observations": ["never followed up"]} for n in range(8)]
    return [*projects, *rest, *stray]


def relations() -> list[dict[str, str]]:
    """Returns the relations of the graph: all but the strays have one."""
    return [{"from": f"Project {n}", "to": CUSTOMERS[n % 6], "relationType": "is made for"} for n in range(12)]


def config(service: str, stage: str) -> str:
    """Returns the configuration of a service."""
    workers = 8 if stage == "live" and service in CHANGED else 4
    lines = (f"[{service}]", f"host = {service}.internal", f"port = 80{SERVICES.index(service)}0", "retries = 3")
    return "\n".join([*lines, f"workers = {workers}", ""])


def note(number: int) -> str:
    """Returns a note."""
    lines = [f"- point {n} of note {number}: to be talked about in the next meeting" for n in range(20)]
    return "\n".join([f"# Note {number}", f"Status: {'done' if number in DONE else 'draft'}", *lines, ""])


def write_world(folder: Path) -> Path:
    """Writes the files into an empty folder, and the graph beside it. Returns the file of the graph."""
    written = {
        **{f"sales/{month}.csv": "\n".join(f"{o},{c},{a}" for o, c, a in sales(month)) for month in MONTHS},
        **{f"logs/{service}.log": "\n".join(log(service)) for service in SERVICES},
        **{f"config/{stage}/{name}.ini": config(name, stage) for stage in ("live", "test") for name in SERVICES},
        **{f"notes/note-{number}.md": note(number) for number in range(10)},
        "people.json": json.dumps(people(), indent=1),
        "pairs.csv": "\n".join(f"{a},{b}" for a, b in SUMS),
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    memory = folder.with_name("graph.jsonl")
    lines = [{"type": "entity", **one} for one in entities()] + [{"type": "relation", **one} for one in relations()]
    memory.write_text("\n".join(json.dumps(line) for line in lines))
    return memory


def tasks(folder: str) -> list[Task]:
    """Returns the ten tasks in the order in which they are done."""
    return [
        *_on_files(folder),
        *_on_the_graph(folder),
        *_on_numbers(folder),
    ]


def _listed(folder: str, name: str) -> Call:
    return "filesystem_list_directory", {"path": f"{folder}/{name}"}


def _read(*paths: str) -> Call:
    return "filesystem_read_multiple_files", {"paths": list(paths)}


def _written(path: str, content: str) -> Call:
    return "filesystem_write_file", {"path": path, "content": content}


_FILES = """names = [line[7:] for line in filesystem_list_directory(path=folder)["content"].splitlines()]
"""


def _on_files(folder: str) -> list[Task]:
    report = "".join(f"{service}: {errors(service)}\n" for service in SERVICES)
    done = [f"note-{number}.md" for number in sorted(DONE)]
    total = sum(amount for month in MONTHS for _, _, amount in sales(month))
    return [
        Task(
            question=f"What were the sales of 2026 in all? The files in {folder}/sales have order, customer, amount.",
            rounds=[[_listed(folder, "sales")], [_read(*(f"{folder}/sales/{month}.csv" for month in MONTHS))]],
            searches=["list the files of a directory", "read a text file"],
            needs=["filesystem_list_directory", "filesystem_read_text_file"],
            program=f'folder = "{folder}/sales"\n{_FILES}'
            'texts = [filesystem_read_text_file(path=f"{folder}/{name}")["content"] for name in names]\n'
            'print(sum(int(line.split(",")[2]) for text in texts for line in text.splitlines()))\n',
            says=str(total),
        ),
        Task(
            question=f"Write the number of ERROR lines of each log in {folder}/logs to {folder}/errors.txt.",
            rounds=[
                [_listed(folder, "logs")],
                [_read(*(f"{folder}/logs/{service}.log" for service in SERVICES))],
                [_written(f"{folder}/errors.txt", report)],
            ],
            searches=["list the files of a directory", "read a text file", "write a file"],
            needs=["filesystem_list_directory", "filesystem_read_text_file", "filesystem_write_file"],
            program=f'folder = "{folder}/logs"\n{_FILES}report = ""\nfor name in names:\n'
            '    text = filesystem_read_text_file(path=f"{folder}/{name}")["content"]\n'
            "    report += f\"{name[:-4]}: {text.count(' ERROR ')}\\n\"\n"
            f'filesystem_write_file(path="{folder}/errors.txt", content=report)\nprint(report)\n',
            says=report,
        ),
        Task(
            question=f"Move the notes in {folder}/notes whose status is done to {folder}/archive.",
            rounds=[
                [_listed(folder, "notes"), ("filesystem_create_directory", {"path": f"{folder}/archive"})],
                [
                    ("filesystem_read_text_file", {"path": f"{folder}/notes/note-{number}.md", "head": 2})
                    for number in range(10)
                ],
                [
                    (
                        "filesystem_move_file",
                        {"source": f"{folder}/notes/{name}", "destination": f"{folder}/archive/{name}"},
                    )
                    for name in done
                ],
            ],
            searches=["list the files of a directory", "read a text file", "create a directory", "move a file"],
            needs=[
                *("filesystem_list_directory", "filesystem_read_text_file"),
                *("filesystem_create_directory", "filesystem_move_file"),
            ],
            program=f'folder = "{folder}/notes"\nto = "{folder}/archive"\n{_FILES}'
            "filesystem_create_directory(path=to)\nfor name in names:\n"
            '    if "Status: done" in filesystem_read_text_file(path=f"{folder}/{name}", head=2)["content"]:\n'
            '        filesystem_move_file(source=f"{folder}/{name}", destination=f"{to}/{name}")\n'
            "        print(name)\n",
            says="\n".join(done),
        ),
        Task(
            question=f"Give each service in {folder}/config/test the workers that it has in {folder}/config/live.",
            rounds=[
                [_listed(folder, "config/test"), _listed(folder, "config/live")],
                [
                    _read(*(f"{folder}/config/{stage}/{service}.ini" for service in SERVICES))
                    for stage in ("test", "live")
                ],
                [
                    (
                        "filesystem_edit_file",
                        {
                            "path": f"{folder}/config/test/{service}.ini",
                            "edits": [{"oldText": "workers = 4", "newText": "workers = 8"}],
                        },
                    )
                    for service in sorted(CHANGED)
                ],
            ],
            searches=["list the files of a directory", "read a text file", "edit a file"],
            needs=["filesystem_list_directory", "filesystem_read_text_file", "filesystem_edit_file"],
            program=f'folder = "{folder}/config/test"\n{_FILES}for name in names:\n'
            '    test, live = (next(line for line in filesystem_read_text_file(path=f"{place}/{name}")["content"]'
            '.splitlines() if line.startswith("workers"))\n'
            f'        for place in (folder, "{folder}/config/live"))\n'
            '    if test != live:\n        edits = [{"oldText": test, "newText": live}]\n'
            '        filesystem_edit_file(path=f"{folder}/{name}", edits=edits)\n        print(name)\n',
            says="mail.ini\nstock.ini",
        ),
    ]


def _on_the_graph(folder: str) -> list[Task]:
    strays = [one["name"] for one in entities() if one["entityType"] == "idea"]
    added = [
        {
            "name": person["name"],
            "entityType": "person",
            "observations": [f"team {person['team']}", f"lives in {person['city']}", f"since {person['since']}"],
        }
        for person in people()
    ]
    spent = {
        name: sum(amount for month in MONTHS for _, customer, amount in sales(month) if customer == name)
        for name in CUSTOMERS
    }
    closed = [one for one in entities() if "status closed" in one["observations"]]
    return [
        Task(
            question="Delete all entities of the knowledge graph that have no relation.",
            rounds=[[("memory_read_graph", {})], [("memory_delete_entities", {"entityNames": strays})]],
            searches=["read the knowledge graph", "delete entities of the knowledge graph"],
            needs=["memory_read_graph", "memory_delete_entities"],
            program="graph = memory_read_graph()\n"
            'used = {one[end] for one in graph["relations"] for end in ("from", "to")}\n'
            'strays = [one["name"] for one in graph["entities"] if one["name"] not in used]\n'
            "memory_delete_entities(entityNames=strays)\nprint(len(strays))\n",
            says="8",
        ),
        Task(
            question=f"Add each person of {folder}/people.json to the knowledge graph: team, city and year.",
            rounds=[
                [("filesystem_read_text_file", {"path": f"{folder}/people.json"})],
                [("memory_create_entities", {"entities": added})],
            ],
            searches=["read a text file", "create entities in the knowledge graph"],
            needs=["filesystem_read_text_file", "memory_create_entities"],
            program="import json\n"
            f'people = json.loads(filesystem_read_text_file(path="{folder}/people.json")["content"])\n'
            'made = memory_create_entities(entities=[{"name": p["name"], "entityType": "person", "observations": '
            "[f\"team {p['team']}\", f\"lives in {p['city']}\", f\"since {p['since']}\"]} for p in people])\n"
            'print(len(made["entities"]))\n',
            says="40",
        ),
        Task(
            question=f"Write a file of its observations for each closed project of the knowledge graph to {folder}.",
            rounds=[
                [("memory_search_nodes", {"query": "status closed"})],
                [_written(f"{folder}/{one['name']}.txt", "\n".join(one["observations"])) for one in closed],
            ],
            searches=["search nodes of the knowledge graph", "write a file"],
            needs=["memory_search_nodes", "filesystem_write_file"],
            program='for one in memory_search_nodes(query="status closed")["entities"]:\n'
            f"    path = f\"{folder}/{{one['name']}}.txt\"\n"
            '    filesystem_write_file(path=path, content="\\n".join(one["observations"]))\n'
            '    print(one["name"])\n',
            says="\n".join(one["name"] for one in closed),
        ),
        Task(
            question=f"Add to each customer in the knowledge graph what it spent, by the files in {folder}/sales.",
            rounds=[
                [_listed(folder, "sales")],
                [_read(*(f"{folder}/sales/{month}.csv" for month in MONTHS))],
                [
                    (
                        "memory_add_observations",
                        {
                            "observations": [
                                {"entityName": name, "contents": [f"spent {spent[name]}"]} for name in CUSTOMERS
                            ]
                        },
                    )
                ],
            ],
            searches=["list the files of a directory", "read a text file", "add observations to entities"],
            needs=["filesystem_list_directory", "filesystem_read_text_file", "memory_add_observations"],
            program=f'folder = "{folder}/sales"\n{_FILES}spent = {{}}\nfor name in names:\n'
            '    for line in filesystem_read_text_file(path=f"{folder}/{name}")["content"].splitlines():\n'
            '        _, customer, amount = line.split(",")\n'
            "        spent[customer] = spent.get(customer, 0) + int(amount)\n"
            'memory_add_observations(observations=[{"entityName": c, "contents": [f"spent {spent[c]}"]} '
            "for c in sorted(spent)])\nprint(spent)\n",
            says=str(spent["Aster"]),
        ),
    ]


def _on_numbers(folder: str) -> list[Task]:
    sums = [("everything_get_sum", {"a": a, "b": b}) for a, b in SUMS]
    report = "\n".join(f"{city}: {WEATHER[city]}" for city in CITIES)
    return [
        Task(
            question=f"Which pair of numbers in {folder}/pairs.csv has the largest sum? Let the server add them.",
            rounds=[[("filesystem_read_text_file", {"path": f"{folder}/pairs.csv"})], sums],
            searches=["read a text file", "sum of two numbers"],
            needs=["filesystem_read_text_file", "everything_get_sum"],
            program=f'lines = filesystem_read_text_file(path="{folder}/pairs.csv")["content"].splitlines()\n'
            'pairs = [tuple(map(int, line.split(","))) for line in lines]\n'
            "told = {pair: everything_get_sum(a=pair[0], b=pair[1]) for pair in pairs}\n"
            'best = max(pairs, key=lambda pair: int(told[pair].split()[-1].rstrip(".")))\nprint(best)\n',
            says=str(max(SUMS, key=sum)),
        ),
        Task(
            question=f"Write the conditions in New York, Chicago and Los Angeles to {folder}/weather.txt.",
            rounds=[
                [("everything_get_structured_content", {"location": city}) for city in CITIES],
                [_written(f"{folder}/weather.txt", report)],
            ],
            searches=["weather of a city as structured content", "write a file"],
            needs=["everything_get_structured_content", "filesystem_write_file"],
            program='cities = ["New York", "Chicago", "Los Angeles"]\n'
            'told = [everything_get_structured_content(location=city)["conditions"] for city in cities]\n'
            'report = "\\n".join(f"{city}: {one}" for city, one in zip(cities, told))\n'
            f'filesystem_write_file(path="{folder}/weather.txt", content=report)\nprint(report)\n',
            says=report,
        ),
    ]


WEATHER = {"New York": "Cloudy", "Chicago": "Light rain / drizzle", "Los Angeles": "Sunny / Clear"}
"""What the server says; it never changes."""
