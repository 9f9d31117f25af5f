"""Watches: changes as they come, a line of JSON each."""
import asyncio
import random

from . import selecting, web
from .objects import Watch
from .waiting import first_of

DEFAULT_S = (1800, 3600)
BOOKMARK_S = 60
BOOKMARK_BEFORE_END_S = 1.6
INITIAL_END = "k8s.io/initial-events-end"


class Watching:
    """One of them, as long as it lasts."""

    def __init__(self, cluster, request, resource, namespace):
        self.cluster = cluster
        self.store = cluster.store
        self.request = request
        self.resource = resource
        self.namespace = namespace
        self.chosen = selecting.of_query(resource.plural, request)
        self.wants_bookmarks = request.is_set("allowWatchBookmarks")
        self.version = 0  # of the last change that was looked at
        self.stream = None

    def is_mine(self, obj):
        return obj is not None and self.chosen(obj) and \
            self.namespace in (None, obj["metadata"].get("namespace"))

    async def line(self, kind, obj):
        line = web.dumps({"type": kind, "object": obj})
        size = self.cluster.faults.piece_bytes or len(line)
        for at in range(0, len(line), size):
            await self.stream.write(line[at:at + size])

    async def tell(self, change):
        """As who selects sees it: what comes into their sight is new.  What
        happened while the past was told is in the queue once more."""
        if change.version <= self.version:
            return
        self.version = change.version
        was, is_now = self.is_mine(change.old), self.is_mine(change.new)
        if change.type == "DELETED":
            is_now = False
        if is_now:
            await self.line("MODIFIED" if was else "ADDED", change.new)
        elif was:
            await self.line("DELETED", change.new)

    async def bookmark(self, is_initial_end=False):
        meta = {"resourceVersion": str(self.version),
                "creationTimestamp": None}
        if is_initial_end:
            meta["annotations"] = {INITIAL_END: "true"}
        obj = {"kind": self.resource.kind, "apiVersion":
               self.resource.api_version, "metadata": meta}
        if self.resource.plural == "pods":
            obj |= {"spec": {"containers": None}, "status": {}}
        await self.line("BOOKMARK", obj)

    async def error(self, status):
        await self.line("ERROR", status)

    async def begin(self):
        """What was before; False where that is not known any more."""
        text = self.request.param("resourceVersion") or "0"
        asked = int(text) if text.isdigit() else 0
        wants_all = self.request.is_set("sendInitialEvents")
        self.version = self.store.version
        if asked == 0 or wants_all:
            if self.request.param("sendInitialEvents") != "false":
                for obj in self.store.all(self.resource.plural,
                                          self.namespace):
                    if self.is_mine(obj):
                        await self.line("ADDED", obj)
            if wants_all and self.wants_bookmarks:
                await self.bookmark(is_initial_end=True)
            return True
        if asked < self.store.forgotten or \
                self.cluster.faults.is_too_old():
            await self.error({
                "kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "message": "too old resource version: "
                f"{asked} ({self.store.forgotten})", "reason": "Expired",
                "code": 410})
            return False
        self.version = asked
        for change in list(self.store.changes):
            if change.plural == self.resource.plural:
                await self.tell(change)
        return True

    async def follow(self, watch):
        loop = asyncio.get_running_loop()
        seconds = float(self.request.param("timeoutSeconds") or
                        random.uniform(*DEFAULT_S))
        end = loop.time() + seconds
        marks = [end - BOOKMARK_BEFORE_END_S] \
            if self.wants_bookmarks and seconds > BOOKMARK_BEFORE_END_S else []
        while True:
            now = loop.time()
            until = min([end, *marks, now + BOOKMARK_S])
            try:
                await self.tell(await asyncio.wait_for(
                    watch.queue.get(), max(0, until - now)))
            except asyncio.TimeoutError:
                if loop.time() >= end:
                    return
                if self.wants_bookmarks:
                    marks = [m for m in marks if m > loop.time()]
                    if watch.queue.empty():
                        self.version = max(self.version, self.store.version)
                    await self.bookmark()


async def send_watch(cluster, request, resource, namespace):
    one = Watching(cluster, request, resource, namespace)
    with Watch(cluster.store, resource.plural) as watch:
        one.stream = await request.stream(
            200, Content_Type="application/json")
        cluster.watchings[one] = request.link
        try:
            done = await first_of(link_end(request.link),
                                  tell_all(one, watch))
        finally:
            del cluster.watchings[one]
        if not done[1]:
            raise web.Ended
        await one.stream.end()


async def tell_all(one, watch):
    if await one.begin():
        await one.follow(watch)


async def link_end(link):
    """Nothing is said by who watches, but that they go."""
    try:
        while True:
            await link.more()
    except web.Ended:
        pass
