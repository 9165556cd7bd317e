"""Files that are windows: /proc, /sys and /dev, and the rest of the file system by every call that takes a path."""

from tests.attacks.attack import Attack, family

ATTACKS = family(
    "files and /proc",
    threat=48,
    attacks=[
        Attack(
            name="/proc/self/environ",
            tries="reads what the zygote's environment was before it was cleared",
            sign="got through",
            source="""\
os.open('/proc/self/environ', 0)
got_through()
""",
        ),
        Attack(
            name="another process's environment",
            tries="reads the environment of a process of the host",
            sign="environment secret",
            source="print(os.read(os.open('/proc/%d/environ' % CANARY, 0), 100_000))",
        ),
        Attack(
            name="/proc/self/mem",
            tries="reads its memory through a file, around protection of pages",
            sign="got through",
            source="""\
handle = os.open('/proc/self/mem', 2)
os.pread(handle, 8, id(handle))
got_through()
""",
        ),
        Attack(
            name="another process's memory",
            tries="reads a secret out of the memory of a process of the host",
            sign="memory secret",
            source="print(os.pread(os.open('/proc/%d/mem' % CANARY, 0), 32, CANARY_ADDRESS))",
        ),
        Attack(
            name="/proc/self/maps",
            tries="learns where everything lies, to aim memory corruption",
            sign="got through",
            source="""\
os.read(os.open('/proc/self/maps', 0), 4096)
got_through()
""",
        ),
        Attack(
            name="all processes",
            tries="lists the machine's processes and their command lines",
            sign="got through",
            source="""\
if str(CANARY) in os.listdir('/proc'):
    got_through()
""",
        ),
        Attack(
            name="/proc/self/root and cwd",
            tries="gets at the file system by links that /proc keeps into it",
            sign="file secret",
            source="print(os.read(os.open('/proc/self/root' + SECRET_FILE, 0), 100))",
        ),
        Attack(
            name="openat2 and open_by_handle_at",
            tries="opens by newer calls that an old filter does not know",
            sign="file secret",
            source="""\
ctypes = native()
how = ctypes.create_string_buffer(24)
handle = system_call(437, -100, ctypes.c_char_p(SECRET_FILE.encode()), how, 24)
print(os.read(handle, 100))
""",
        ),
        Attack(
            name="probing by stat",
            tries="finds out which files exist, and how long they are, without opening one",
            sign="got through",
            source="""\
if os.stat(SECRET_FILE).st_size:
    got_through()
""",
        ),
        Attack(
            name="probing by access, readlink, statx",
            tries="the same by calls that are often forgotten",
            sign="got through",
            source="""\
if os.access(SECRET_FILE, 0):
    got_through()
os.readlink('/proc/self/exe')
got_through()
""",
        ),
        Attack(
            name="a new file",
            tries="leaves a file in a folder that anyone may write to",
            sign="file created",
            source="os.open(NEW_FILE, os.O_CREAT | os.O_WRONLY, 0o777)",
        ),
        Attack(
            name="a changed file",
            tries="writes into a file that anyone may write to",
            sign="file changed",
            source="os.write(os.open(CHANGED_FILE, os.O_WRONLY), b'changed by a program')",
        ),
        Attack(
            name="an emptied file",
            tries="empties a file without writing a byte",
            sign="file changed",
            source="os.truncate(CHANGED_FILE, 0)",
        ),
        Attack(
            name="a link, a folder, a pipe",
            tries="makes names of other kinds than files",
            sign="file created",
            source="""\
for make in (lambda: os.symlink('/', NEW_FILE), lambda: os.mkdir(NEW_FILE), lambda: os.mkfifo(NEW_FILE)):
    try:
        make()
    except OSError:
        pass
""",
        ),
        Attack(
            name="a file renamed and removed",
            tries="takes a file away by its name alone",
            sign="file changed",
            source="""\
try:
    os.rename(CHANGED_FILE, NEW_FILE)
except OSError:
    os.unlink(CHANGED_FILE)
""",
        ),
        Attack(
            name="rights and times",
            tries="changes a file's mode, its owner, and its times",
            sign="file changed",
            source="""\
for change in (lambda: os.utime(CHANGED_FILE, (1, 1)), lambda: os.chmod(CHANGED_FILE, 0o600)):
    try:
        change()
    except OSError:
        pass
""",
        ),
        Attack(
            name="extended attributes",
            tries="hides text beside a file's content",
            sign="file changed",
            source="os.setxattr(CHANGED_FILE, 'user.left', b'behind')",
        ),
        Attack(
            name="devices",
            tries="opens a device file",
            sign="got through",
            source="""\
os.open('/dev/null', os.O_RDWR)
got_through()
""",
        ),
        Attack(
            name="leaving the root folder",
            tries="climbs out of a changed root with the classical chroot",
            sign="file secret",
            source="""\
try:
    os.chroot('/proc')
except OSError:
    pass
for _ in range(32):
    try:
        os.chdir('..')
    except OSError:
        pass
print(os.read(os.open('.' + SECRET_FILE, 0), 100))
""",
        ),
        Attack(
            name="a mount in a namespace of its own",
            tries="mounts /proc anew inside a user namespace, where it is root",
            sign="got through",
            source="""\
libc = native().CDLL(None, use_errno=True)
# Nothing is mounted unless nobody else can see it.
if libc.unshare(0x10000000 | 0x00020000) == 0 and libc.mount(b'none', b'/', None, 0x44000, None) == 0:
    if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0:
        got_through()
""",
        ),
    ],
)
