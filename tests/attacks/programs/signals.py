"""Signals to others. Kill-alls run only where the program is process 1 of a namespace: elsewhere they would be real."""

from tests.attacks.attack import Attack, family
from toolwire import Limits

ONLY_INSIDE = "it would signal every process of this machine; it runs only as process 1 of a PID namespace"

ATTACKS = family(
    "signals",
    threat=48,
    attacks=[
        Attack(
            name="kill a process of the host",
            tries="ends a process by the id it was told",
            sign="signal",
            source="os.kill(CANARY, 9)",
        ),
        Attack(
            name="interrupt a process of the host",
            tries="presses Ctrl-C for somebody else",
            sign="signal",
            source="os.kill(CANARY, 2)",
        ),
        Attack(
            name="kill the parent",
            tries="ends the fork server",
            sign="zygote",
            source="os.kill(os.getppid(), 9)",
        ),
        Attack(
            name="kill by a parent's id that is denied",
            tries="calls kill with whatever getppid gives: where getppid fails, that is -1, everybody",
            sign="zygote",
            source="""\
parent = native().CDLL(None).getppid()
if parent > 0 or os.getpid() == 1:
    os.kill(parent, 9)
""",
        ),
        Attack(
            name="kill the group",
            tries="signals every process of its own group, the fork server among them",
            sign="zygote",
            source="os.kill(0, 15)",
        ),
        Attack(
            name="killpg",
            tries="the same by the group's id",
            sign="zygote",
            source="os.killpg(os.getpgid(os.getppid()), 15)",
        ),
        Attack(
            name="kill everybody",
            tries="signals every process it may",
            sign="signal",
            control="none",
            why_no_control=ONLY_INSIDE,
            source="""\
if os.getpid() == 1:
    os.kill(-1, 9)
""",
        ),
        Attack(
            name="tgkill and tkill",
            tries="signals by thread, which simple filters forget",
            sign="signal",
            source="""\
numbers = {'x86_64': (234, 200), 'aarch64': (131, 130)}[os.uname().machine]
system_call(numbers[0], CANARY, CANARY, 10)
system_call(numbers[1], CANARY, 10)
""",
        ),
        Attack(
            name="sigqueue",
            tries="signals with a value attached",
            sign="signal",
            source="native().CDLL(None).sigqueue(CANARY, 10, native().c_void_p(7))",
        ),
        Attack(
            name="pidfd_send_signal",
            tries="signals by a descriptor of the process",
            sign="signal",
            source="""\
handle = system_call(434, CANARY, 0)
system_call(424, handle, 10, 0, 0)
""",
        ),
        Attack(
            name="signals from descriptors",
            tries="lets the kernel signal the owner it names for a socket",
            sign="signal",
            source="""\
fcntl = sys.modules['fcntl']
line, other = sockets().socketpair()
fcntl.fcntl(line, 8, CANARY)
fcntl.fcntl(line, 10, 10)
fcntl.fcntl(line, 4, fcntl.fcntl(line, 3) | os.O_ASYNC)
other.send(b'x')
""",
        ),
        Attack(
            name="deaf to being stopped",
            tries="ignores every signal it can, so that only the kernel can end it",
            sign="over limit",
            control="higher limits",
            limits=Limits(wall_s=0.2, cpu_s=3, deadline_s=20),
            higher_limits=Limits(wall_s=0.6, cpu_s=3, deadline_s=20),
            source="""\
signal = sys.modules['signal']
for number in range(1, 64):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
""",
        ),
    ],
)
