"""Code mode against policy: a tool that is denied, or needs a person, is called by every way a program has."""

from tests.attacks.attack import Attack, family


def call(name: str, tries: str, source: str) -> Attack:
    """The control is the same registry without rules: there the tool runs."""
    return Attack(name=name, tries=tries, sign="tool", control="no policy", source=source)


ATTACKS = family(
    "policy",
    threat=15,
    attacks=[
        call("by name", "calls a denied tool", "forbidden('plainly')"),
        call("without approval", "calls a tool that needs a person's approval", "ask_first('without asking')"),
        call("by keyword", "calls it with its argument by name", "forbidden(text='by keyword')"),
        call(
            "a thousand times",
            "hopes that one of many calls gets through",
            """\
for number in range(450):
    for tool in ('forbidden', 'ask_first'):
        try:
            globals()[tool](text=str(number))
        except Exception:
            pass
""",
        ),
        call(
            "by another name",
            "keeps the tool in a variable and calls that",
            """\
tools = {'harmless': forbidden}
list(map(tools['harmless'], ['by alias']))
""",
        ),
        call("by globals()", "finds it by a name that is put together", "globals()['for' + 'bidden']('by text')"),
        call(
            "in parallel",
            "calls it amid permitted ones",
            """\
await asyncio.gather(add(1, 2), forbidden('in parallel'), add(3, 4), return_exceptions=True)
""",
        ),
        call(
            "in a task left alone",
            "starts a task with it and does not wait",
            """\
async def alone():
    await forbidden('in a task')
task = asyncio.create_task(alone())
while not task.done():
    await asyncio.sleep(0.01)
""",
        ),
        call(
            "in a destructor",
            "calls it while an object is taken apart",
            """\
class Late:
    def __del__(self): forbidden('at the end')
kept = Late()
del kept
""",
        ),
        call(
            "in a handler",
            "asks again while it handles the refusal",
            """\
try:
    forbidden('first')
except Exception:
    forbidden('again')
""",
        ),
        call(
            "in a comparison",
            "lets C code make the call, as a sort key",
            """\
sorted(['a', 'b'], key=forbidden)
""",
        ),
        call(
            "by a forged frame",
            "writes the frame that the stub would write",
            """\
frame = json.dumps(['call', 1, 2, False, {'text': 'forged'}]).encode()
os.write(3, len(frame).to_bytes(4, 'big') + frame)
os.read(4, 10_000)
""",
        ),
        call(
            "as another caller",
            "claims an approval among the arguments",
            """\
try:
    ask_first(text='approved', approved=True)
except TypeError:
    ask_first(text='approved')
""",
        ),
    ],
)
