"""Resumable programs for tests, and runs that stop at a call until it is approved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.sandbox.programs import TOOLS, answer
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import PARKED, Answer, Parked, Program, ProgramCall, Recorded, Replay
from toolwire.sandbox.report import ProgramResult

SEED = 20_240_131
STARTED_AT = 1_706_659_200.25


class Approver:
    """Answers calls; those with one of `parked` ordinals, or all, are parked the first time they come."""

    def __init__(self, parked: Iterable[int] = (), *, all_calls: bool = False) -> None:
        self.made: list[tuple[int, str, dict[str, Any]]] = []
        self._parked = set(parked)
        self._all = all_calls
        self._seen: set[int] = set()

    def __call__(self, call: ProgramCall) -> Answer | Parked:
        if (self._all or call.ordinal in self._parked) and call.ordinal not in self._seen:
            self._seen.add(call.ordinal)
            return PARKED
        self.made.append((call.ordinal, call.tool, call.arguments))
        return answer(call)

    async def awaited(self, call: ProgramCall) -> Answer | Parked:
        await asyncio.sleep(0)
        return self(call)


def program(source: str, recorded: tuple[Recorded, ...] = (), **options: Any) -> Program:
    limits = Limits(**options.pop("limits", {}))
    replay = Replay(seed=SEED, started_at=STARTED_AT, recorded=recorded, **options)
    return Program(source=source, tools=TOOLS, limits=limits, replay=replay)


def attempts(sandboxes: tuple[Sandbox, ...], source: str, tools: Approver, *, on_loop: bool) -> list[ProgramResult]:
    """All attempts until the program is not suspended any more, in the processes of one sandbox after the other."""
    found: list[ProgramResult] = []
    while not found or found[-1].status == "suspended":
        sandbox = sandboxes[len(found) % len(sandboxes)]
        again = program(source, found[-1].recorded if found else ())
        if on_loop:
            found.append(asyncio.run(sandbox.run_async(again, tools.awaited)))
        else:
            found.append(sandbox.run(again, tools))
        assert len(found) < 50
    return found


def told(result: ProgramResult) -> tuple[Any, ...]:
    """The parts of a result that a caller can see."""
    return (result.status, result.has_value, repr(result.value), result.stdout, result.error, result.notice)


def by_ordinal(tools: Approver) -> list[tuple[int, str, dict[str, Any]]]:
    return sorted(tools.made, key=lambda call: call[0])


LINES = {
    "one call": "echo(1)",
    "two calls": "a = add(1, 2)\nadd(a, 3)",
    "a loop": "total = 0\nfor n in range(4):\n    total = add(total, n)\ntotal",
    "a while loop": "n = 1\nwhile n < 20:\n    n = add(n, n)\nn",
    "a branch taken": "if add(1, 1) == 2:\n    x = echo('two')\nelse:\n    x = search('never')\nx",
    "a branch not taken": "if add(1, 1) == 3:\n    x = search('never')\nelse:\n    x = echo('else')\nx",
    "a match": "match search('q', 2):\n    case [first, _]:\n        x = echo(first['title'])\nx",
    "rows": "rows = search('q', 3)\n[echo(row['rank']) for row in rows]",
    "a comprehension": "[add(n, n) for n in range(3)]",
    "a dict comprehension": "{str(n): echo(n) for n in range(3)}",
    "a set comprehension": "sorted({echo(word) for word in ('b', 'a', 'c')})",
    "a generator": "def items():\n    for n in range(3):\n        yield echo(n)\nlist(items())",
    "a generator left early": (
        "def items():\n    for n in range(9):\n        yield echo(n)\nfound = []\n"
        "for item in items():\n    found.append(item)\n    if item == 2:\n        break\nfound"
    ),
    "nested functions": "def outer(x):\n    def inner(y): return add(x, y)\n    return inner(1) + inner(2)\nouter(5)",
    "recursion": "def down(n):\n    return 0 if n == 0 else add(n, down(n - 1))\ndown(3)",
    "a lambda": "list(map(lambda n: add(n, 1), [1, 2]))",
    "a class": (
        "class Account:\n    def __init__(self):\n        self.total = 0\n"
        "    def pay(self, n):\n        self.total = add(self.total, n)\n"
        "a = Account()\na.pay(3)\na.pay(4)\na.total"
    ),
    "a dataclass-like repr": "class P:\n    def __repr__(self): return f'P({echo(1)})'\n[repr(P()), repr(P())]",
    "sorted by a tool": "sorted([3, 1, 2], key=lambda n: echo(-n))",
    "prints": "print('a')\nprint(echo('b'))\nprint('c', end='')\nprint(echo('d'))",
    "prints without a result": "for n in range(3):\n    print(n, add(n, n))",
    "no calls": "print('only this')\n1 + 1",
    "random": "[random.random(), echo(1), random.randint(1, 100), echo(2), random.random()]",
    "random decides": "n = random.randint(2, 4)\n[echo(random.random()) for _ in range(n)]",
    "shuffle": "items = list(range(10))\nrandom.shuffle(items)\n[echo(item) for item in items[:3]]",
    "sample and choices": "[echo(x) for x in random.sample('abcdef', 2)] + random.choices([1, 2, 3], k=3)",
    "gauss": "[round(random.gauss(0, 1), 12), echo(1), random.gauss(0, 1)]",
    "an unseeded generator": "r = random.Random()\n[r.random(), echo(1), random.Random().random(), r.randbytes(4)]",
    "a seeded generator": "r = random.Random(5)\n[r.random(), echo(1), r.random()]",
    "seeding anew": "random.seed()\na = random.random()\necho(a)\nrandom.seed(1)\n[a, random.random()]",
    "the system's randomness": "[random.SystemRandom().random(), echo(1), random.SystemRandom().randrange(1000)]",
    "urandom": "[random._os.urandom(8), echo(1), random._os.urandom(8)]",
    "sets of text": "names = {'anna', 'bert', 'carl', 'dora', 'emil'}\n[echo(name) for name in names]",
    "sets of text and numbers": "items = {'x', 1, 2.5, ('t', 3), frozenset('ab')}\n[str(echo(str(i))) for i in items]",
    "a set of bytes": "[echo(b) for b in {b'one', b'two', b'three'}]",
    "hashes": "[hash('toolwire'), echo(hash('x') % 7), hash((1, 'a')), hash(2.5)]",
    "dict order": "d = {}\nfor word in ['z', 'a', 'm']:\n    d[word] = echo(word)\nd['a'] = echo(1)\nlist(d.items())",
    "a dict popped": "d = {n: n for n in range(4)}\n[echo(d.popitem()[0]) for _ in range(3)]",
    "the time it starts at": "[datetime.now().isoformat(), datetime.utcnow().isoformat(), echo(1)]",
    "the day": "day = datetime.date.today()\n[echo(day.isoformat()), str(day)]",
    "the time as argument": "echo(datetime.now(datetime.UTC))",
    "a subclass of datetime": "class D(datetime.datetime): pass\n[echo(type(D.now()).__name__), str(D.now())[:13]]",
    "identities in a dataclass": (
        "import uuid\nfrom dataclasses import dataclass, field\n@dataclass\nclass Row:\n"
        "    id: str = field(default_factory=lambda: str(uuid.uuid4()))\n[Row().id, echo(Row().id), Row().id]"
    ),
    "digests of what is random": (
        "import hashlib\n[hashlib.sha256(random.randbytes(9)).hexdigest(), echo(1), random.SystemRandom().random()]"
    ),
    "sets of names and values": (
        "import enum, collections, decimal, fractions, uuid\nKind = enum.Enum('Kind', 'A B C D E')\n"
        "Point = collections.namedtuple('Point', 'x y')\n"
        "[str({kind.name for kind in Kind}), echo(1), str({Point(n, str(n)) for n in range(5)}), "
        "str(set(map(decimal.Decimal, range(5)))), str({fractions.Fraction(n, 7) for n in range(5)}), "
        "[str(u) for u in {uuid.uuid4() for _ in range(5)}]]"
    ),
    "the clock of time": "t = random._os.sys.modules['time']\n[t.time(), t.monotonic(), t.strftime('%Y'), echo(1)]",
    "sleep of time": "t = random._os.sys.modules['time']\nt.sleep(1000)\n[echo(1), t.time() > 1706660000]",
    "floats": "[f'{echo(0.1) + 0.2}', f'{add(1e16, 1):.3f}', str(add(0.1, 0.2)), math.sqrt(echo(2))]",
    "statistics": "statistics.mean([add(1, 2), add(3, 4.5)])",
    "json": "json.dumps(search('q', 2), sort_keys=True)",
    "regular expressions": "re.sub(r'\\d', lambda m: str(add(int(m[0]), 1)), 'a1b2')",
    "a caught exception": "try:\n    fail('ValueError', 'no')\nexcept ValueError as e:\n    x = echo(str(e))\nx",
    "a tool's own exception": (
        "try:\n    fail('RateLimited', 'slow')\nexcept RateLimited as e:\n    print(type(e).__name__, e)\necho(1)"
    ),
    "denied": "try:\n    fail('x', 'no', 'denied')\nexcept PermissionError as e:\n    print(e)\necho('after')",
    "an exception not caught": "echo(1)\nfail('KeyError', 'gone')\necho('never')",
    "an exception of its own": "rows = search('q', 1)\necho(2)\nrows[5]",
    "finally": "try:\n    echo(1)\n    1 / 0\nfinally:\n    print(echo('finally'))",
    "retries": (
        "for n in range(3):\n    try:\n        fail('TimeoutError', str(n))\n"
        "    except TimeoutError as e:\n        print('again', e)\necho('done')"
    ),
    "a context manager": (
        "class Open:\n    def __enter__(self):\n        return echo('in')\n"
        "    def __exit__(self, *_):\n        print(echo('out'))\nwith Open() as x:\n    print(x)"
    ),
    "kinds of values": "[echo({1, 2}), echo((1, b'x')), echo(datetime.date(2024, 1, 2)), echo({'$t': 'set'})]",
    "a long text": "text = echo('x' * 200_000)\n[len(text), len(echo(text + 'y'))]",
    "many kinds of parameters": "many_kinds(1, 2, 3, 4, flag=True, mode='m', extra=[1])",
    "an exit": "echo(1)\nexit()\necho(2)",
    "no syntax": "echo(1",
    "an unknown name": "echo(1)\nehco(2)",
}
"""Programs of plain code: their calls come one after the other."""

AWAITED = {
    "gather": "await asyncio.gather(echo(1), echo(2), add(3, 4))",
    "gather in gather": "await asyncio.gather(asyncio.gather(echo(1), echo(2)), echo(3))",
    "gather, then more": "a, b = await asyncio.gather(echo(1), echo(2))\nawait add(a, b)",
    "gather of exceptions": (
        "both = await asyncio.gather(echo(1), fail('ValueError', 'x'), return_exceptions=True)\nlist(map(str, both))"
    ),
    "tasks": "tasks = [asyncio.create_task(echo(n)) for n in range(3)]\n[await task for task in tasks]",
    "a task group": (
        "async with asyncio.TaskGroup() as group:\n    tasks = [group.create_task(echo(n)) for n in range(3)]\n"
        "[task.result() for task in tasks]"
    ),
    "a plain call in async code": "a = echo(1)\n[a, *await asyncio.gather(echo(2), echo(3))]",
    "run": "async def main():\n    return await asyncio.gather(echo(1), echo(2))\nasyncio.run(main())",
    "wait_for in time": "await asyncio.wait_for(echo(1), 30)",
    "a timeout in time": "async with asyncio.timeout(30):\n    x = await echo(1)\nx",
    "a semaphore": (
        "gate = asyncio.Semaphore(1)\nasync def one(n):\n    async with gate:\n        return await echo(n)\n"
        "await asyncio.gather(*[one(n) for n in range(3)])"
    ),
    "sleeps in order": (
        "found = []\nasync def one(n):\n    await asyncio.sleep(n / 200)\n    found.append(n)\n"
        "await asyncio.gather(one(3), one(1), one(2))\nfound.append(await echo(4))\nfound"
    ),
    "a sleep and a call": "await asyncio.sleep(0.01)\na = await echo(1)\nawait asyncio.sleep(0.01)\n[a, await echo(2)]",
    "only yields": "task = asyncio.create_task(echo(7))\nwhile not task.done(): await asyncio.sleep(0)\ntask.result()",
    "a timeout that nothing meets": (
        "try:\n    await asyncio.wait_for(asyncio.Event().wait(), 0.01)\nexcept TimeoutError:\n    print('late')\n"
        "await echo(1)"
    ),
    "a deadlock": "await echo(1)\nawait asyncio.Event().wait()",
    "an async generator": (
        "async def items():\n    for n in range(3):\n        yield await echo(n)\n[item async for item in items()]"
    ),
    "a task that is cancelled": (
        "task = asyncio.create_task(asyncio.sleep(100))\nawait echo(1)\ntask.cancel()\n"
        "try:\n    await task\nexcept asyncio.CancelledError:\n    print('cancelled')"
    ),
}
"""Programs of async code whose outcome does not depend on which answer comes first."""

BY_ORDER = {
    "as_completed": (
        "for done in asyncio.as_completed([echo(n) for n in range(4)]):\n    print(x := await done)\n    add(x, 1)"
    ),
    "wait for the first": (
        "done, rest = await asyncio.wait([asyncio.create_task(echo(n)) for n in range(3)],"
        " return_when=asyncio.FIRST_COMPLETED)\nprint(len(done), len(rest))\n"
        "await asyncio.gather(*rest)\nawait echo('end')"
    ),
    "gather that fails": "await asyncio.gather(echo(1), fail('ValueError', 'x'))",
    "sets of tasks": (
        "tasks = [asyncio.create_task(echo(n), name=f't{n}') for n in range(6)]\n"
        "done, _ = await asyncio.wait(tasks)\nfor task in done:\n    print(task.get_name(), echo(task.result()))"
    ),
    "cancelled together": (
        "async def one(n):\n    try:\n        await asyncio.Event().wait()\n    finally:\n        print(n, echo(n))\n"
        "async def broken():\n    await echo('x')\n    raise ValueError\n"
        "try:\n    async with asyncio.TaskGroup() as group:\n"
        "        for n in range(5): group.create_task(one(n))\n        group.create_task(broken())\n"
        "except* ValueError:\n    print('broken')"
    ),
    "chains side by side": (
        "async def chain(name):\n    for n in range(3):\n        print(name, await echo(n))\n"
        "await asyncio.gather(chain('a'), chain('b'), chain('c'))"
    ),
    "a queue": (
        "queue = asyncio.Queue()\nasync def work(name):\n    while True:\n        n = await queue.get()\n"
        "        print(name, await echo(n))\n        queue.task_done()\n"
        "for n in range(5):\n    queue.put_nowait(n)\n"
        "workers = [asyncio.create_task(work(n)) for n in range(2)]\nawait queue.join()\n"
        "for worker in workers:\n    worker.cancel()\nlen(await asyncio.gather(*workers, return_exceptions=True))"
    ),
    "timers beside calls": (
        "async def tick():\n    for n in range(4):\n        await asyncio.sleep(0.004)\n        print(await echo(n))\n"
        "async def work():\n    for n in range(4):\n        print('work', await add(n, 1))\n"
        "await asyncio.gather(tick(), work())"
    ),
    "all clocks of time": (
        "import time\nfrom time import time as now, monotonic, perf_counter, process_time, thread_time, gmtime\n"
        "def look(): return [now(), time.time_ns(), monotonic(), perf_counter(), process_time(), thread_time(), "
        "time.clock_gettime(time.CLOCK_REALTIME), tuple(gmtime()), time.ctime(), time.strftime('%c'), time.asctime(), "
        "time.localtime().tm_sec, time.monotonic_ns(), time.perf_counter_ns(), time.process_time_ns()]\n"
        "[look(), echo(1), look(), echo(2), look()]"
    ),
    "a wait by time.sleep": (
        "import time\nbefore = time.time()\ntime.sleep(7)\n[time.time() - before, echo(1), time.time()]"
    ),
    "identities": (
        "import uuid\ndef look(): return [str(uuid.uuid4()), str(uuid.uuid1()), uuid.getnode(), uuid.uuid1().int]\n"
        "[look(), echo(str(uuid.uuid4())), look(), echo(uuid.uuid1().hex), look()]"
    ),
    "the time elsewhere": (
        "from zoneinfo import ZoneInfo, available_timezones\n"
        "[str(datetime.now(ZoneInfo('Asia/Tokyo'))), echo(1), list(available_timezones())[:20], "
        "datetime.now().astimezone(ZoneInfo('America/Lima')).isoformat()]"
    ),
    "the time after each call": "for n in range(3):\n    echo(n)\n    print(datetime.now())",
    "loop time": (
        "loop = asyncio.get_running_loop()\nstarted = loop.time()\nawait echo(1)\nawait asyncio.sleep(0.01)\n"
        "print(loop.time() - started)\nawait echo(loop.time())"
    ),
    "the time as an argument after a call": "echo(1)\necho(datetime.now())\necho(str(datetime.now()))",
    "a short timeout": (
        "try:\n    async with asyncio.timeout(0.002):\n        for n in range(50):\n            await echo(n)\n"
        "            await asyncio.sleep(0.0001)\n"
        "except TimeoutError:\n    print('late')\nawait echo('end')"
    ),
}
"""Programs whose outcome depends on the order of answers, or on the time: one record has one outcome."""
