"""New processes and threads, one or many. Every bomb here is bounded: at most 200 tries, each child ends at once."""

from tests.attacks.attack import Attack, family
from toolwire import Limits

ATTACKS = family(
    "processes",
    threat=49,
    attacks=[
        Attack(
            name="fork",
            tries="goes on as two",
            sign="got through",
            source="""\
process = os.fork()
if process == 0:
    got_through()
    os._exit(0)
os.waitpid(process, 0)
""",
        ),
        Attack(
            name="fork of the C library",
            tries="the same around Python, by fork of the C library and by the system call that does the work",
            sign="got through",
            source="""\
libc = native().PyDLL(None)
process = libc.fork()
if process == 0:
    got_through()
    os._exit(0)
if process > 0:
    os.waitpid(process, 0)
""",
        ),
        Attack(
            name="clone3",
            tries="forks by the newest call, which a filter cannot look into",
            sign="got through",
            source="""\
ctypes = native()
wanted = (ctypes.c_uint64 * 8)()
wanted[4] = 17
call = ctypes.PyDLL(None, use_errno=True).syscall
process = call(ctypes.c_long(435), wanted, ctypes.c_long(64))
if process == 0:
    got_through()
    os._exit(0)
if process > 0:
    os.waitpid(process, 0)
""",
        ),
        Attack(
            name="a program of the system",
            tries="starts a shell command with subprocess",
            sign="file created",
            source="sys.modules['subprocess'].run(['/bin/sh', '-c', 'echo made > ' + NEW_FILE])",
        ),
        Attack(
            name="posix_spawn",
            tries="starts a program by the call that needs no fork of Python's",
            sign="file created",
            source="""\
process = os.posix_spawn('/bin/sh', ['sh', '-c', 'echo made > ' + NEW_FILE], {})
os.waitpid(process, 0)
""",
        ),
        Attack(
            name="exec",
            tries="becomes another program, which no Python module restrains",
            sign="file created",
            source="os.execve('/bin/sh', ['sh', '-c', 'echo made > ' + NEW_FILE], {})",
        ),
        Attack(
            name="os.system by a walk",
            tries="the oldest way to a shell",
            sign="file created",
            source="random._os.system('echo made > ' + NEW_FILE)",
        ),
        Attack(
            name="vfork by subprocess's own C module",
            tries="uses _posixsubprocess.fork_exec, which is in memory already",
            sign="file created",
            source="""\
module = sys.modules['subprocess']
module._USE_VFORK = module._USE_POSIX_SPAWN = True
module.Popen('echo made > ' + NEW_FILE, shell=True, close_fds=False).wait()
""",
        ),
        Attack(
            name="thread",
            tries="starts a thread, for a race with whatever watches the first one",
            sign="got through",
            source="""\
thread = sys.modules['threading'].Thread(target=got_through)
thread.start()
thread.join()
""",
        ),
        Attack(
            name="thread bomb",
            tries="starts threads until it fails, 200 at most",
            sign="got through",
            source="""\
lock = sys.modules['_thread'].allocate_lock()
lock.acquire()
made = 0
for _ in range(200):
    try:
        sys.modules['_thread'].start_new_thread(lock.acquire, (True, 0.2))
        made += 1
    except (RuntimeError, MemoryError):
        break
if made > 1:
    got_through()
""",
        ),
        Attack(
            name="fork bomb",
            tries="forks again and again, 200 at most, and counts",
            sign="got through",
            limits=Limits(wall_s=40, cpu_s=20, deadline_s=50, memory_mb=64),
            source="""\
made = []
for _ in range(200):
    try:
        process = os.fork()
    except OSError:
        continue
    if process == 0:
        os._exit(0)
    made.append(process)
    os.waitpid(process, 0)
if made:
    got_through()
""",
        ),
        Attack(
            name="a process that stays",
            tries="leaves a process of a session of its own behind, which outlives the program",
            sign="process",
            source="""\
if os.fork() == 0:
    os.setsid()
    os.close(3)
    sys.modules['time'].sleep(20)
    os._exit(0)
""",
        ),
        Attack(
            name="a process that stays, twice removed",
            tries="the same by a double fork, so that its parent is nobody who knows of it",
            sign="process",
            source="""\
process = os.fork()
if process == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(3)
        sys.modules['time'].sleep(20)
    os._exit(0)
os.waitpid(process, 0)
""",
        ),
        Attack(
            name="pool of executors",
            tries="lets concurrent.futures start the thread",
            sign="got through",
            source="""\
sys.path[:] = [os.path.dirname(os.__file__)]
thread = sys.modules['importlib'].import_module('concurrent.futures.thread')
with thread.ThreadPoolExecutor(1) as pool:
    pool.submit(got_through).result()
""",
        ),
    ],
)
