"""Frames, generators and coroutines: each holds the globals, locals and builtins of code that is not the program's."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "frames",
    threat=48,
    attacks=[
        Attack(
            name="frame of a traceback",
            tries="walks from its own exception's frame out to the frames that started the program",
            sign="file secret",
            source="""\
try:
    1 / 0
except ZeroDivisionError as error:
    frame = error.__traceback__.tb_frame
while frame.f_back:
    frame = frame.f_back
__result__ = frame.f_builtins['open'](SECRET_FILE).read()
""",
        ),
        Attack(
            name="sys._getframe",
            tries="asks for the frame below the program and uses the builtins it finds there",
            sign="file secret",
            source="__result__ = sys._getframe(1).f_builtins['open'](SECRET_FILE).read()",
        ),
        Attack(
            name="gi_frame",
            tries="reads the builtins of a suspended generator of the standard library",
            sign="file secret",
            source="""\
generator = os.walk('/')
__result__ = generator.gi_frame.f_builtins['open'](SECRET_FILE).read() if generator.gi_frame else None
""",
        ),
        Attack(
            name="cr_frame",
            tries="the same with a coroutine that was never awaited",
            sign="file secret",
            source="""\
coroutine = asyncio.sleep(0)
frame = coroutine.cr_frame
coroutine.close()
__result__ = frame.f_builtins['open'](SECRET_FILE).read()
""",
        ),
        Attack(
            name="ag_frame",
            tries="the same with an asynchronous generator",
            sign="file secret",
            source="""\
async def some():
    yield 1
generator = some()
builtin = generator.ag_frame.f_back or sys._getframe().f_back
__result__ = builtin.f_builtins['open'](SECRET_FILE).read()
""",
        ),
        Attack(
            name="every thread's frame",
            tries="looks at the frames of all threads, as a debugger does",
            sign="file secret",
            source="""\
for frame in sys._current_frames().values():
    while frame.f_back:
        frame = frame.f_back
__result__ = frame.f_builtins['open'](SECRET_FILE).read()
""",
        ),
        Attack(
            name="trace function",
            tries="sets a trace function that catches the globals of the code that runs after the program",
            sign="file secret",
            source="""\
def trace(frame, event, argument):
    opener = frame.f_builtins.get('open')
    if opener:
        sys.settrace(None)
        print(opener(SECRET_FILE).read())
sys.settrace(trace)
json.dumps([object], default=str)
""",
        ),
        Attack(
            name="locals of the runner",
            tries="finds the object that runs it among the locals of outer frames and asks it for other tools",
            sign="tool",
            control="naive host",
            source="""\
frame = sys._getframe()
while frame:
    for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
        if callable(getattr(value, 'get', None)) and isinstance(value, dict) and 'forbidden' in value:
            value['forbidden']('from a frame')
        described = getattr(getattr(value, '_tools', None), '_described', None)
        if described:
            calls = value._calls
            for number in range(-3, 9):
                try:
                    calls.now(number, {'text': 'from a frame'})
                except Exception:
                    pass
    frame = frame.f_back
""",
        ),
        Attack(
            name="a generator that keeps running",
            tries="reads a file in the finally of a generator that the interpreter closes at the program's end",
            sign="file secret",
            source="""\
def late():
    try:
        yield 1
    finally:
        print(os.read(os.open(SECRET_FILE, 0), 100))
kept = late()
next(kept)
del kept
""",
        ),
    ],
)
