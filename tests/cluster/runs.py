"""A run's mark on all that it makes in the engine, and its sweeping away.

The mark says which process made it.  A run that starts takes away what
processes left that are gone: of this host alone, for an engine may serve
several.
"""
import asyncio
import contextlib
import os
import uuid

from .engine import EngineError

LABEL = "test-cluster.run"


def started_at(pid):
    """In ticks since the host began; None where no such process is."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


def boot():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return f.read().strip()


def place():
    """Where process numbers mean the same: this host, these processes."""
    return f"{boot()}-{os.stat('/proc/self/ns/pid').st_ino}"


class Run:
    def __init__(self):
        pid = os.getpid()
        self.uid = str(uuid.uuid4())
        self.mark = f"{place()}/{pid}/{started_at(pid)}"
        self.prefix = f"cluster-{self.uid[:8]}"
        self.labels = {LABEL: self.mark, "test-cluster": self.uid}


def is_gone(mark):
    """Whether the process of that mark is known to have ended."""
    where, _, rest = mark.partition("/")
    pid, _, began = rest.partition("/")
    return where == place() and started_at(pid) != began


async def remove_marked(engine, is_mine):
    """All with a mark of which is_mine(mark) says so."""
    filters = {"label": [LABEL]}

    async def remove(method, path):
        with contextlib.suppress(EngineError):
            await engine.ask(method, path)

    found = await engine.ask("GET", "/containers/json", all=1,
                             filters=filters)
    await asyncio.gather(*(
        remove("DELETE", f"/containers/{c['Id']}?force=1&v=1")
        for c in found if is_mine(c["Labels"][LABEL])))
    found = (await engine.ask("GET", "/volumes", filters=filters))["Volumes"]
    for v in found or ():
        if is_mine(v["Labels"][LABEL]):
            await remove("DELETE", f"/volumes/{v['Name']}?force=1")
    for i in await engine.ask("GET", "/images/json", filters=filters):
        if is_mine(i["Labels"][LABEL]):
            await remove("DELETE", f"/images/{i['Id']}?force=1")
