"""The objects of the cluster, and what happened to them.

Each change has a number, the resourceVersion, which counts for all kinds of
objects together.  The changes of the past are kept for watches that begin at
one of these numbers; those that were forgotten are "too old".  An object is
never changed in place: whoever has one has it as it was.
"""
import asyncio
import collections
import copy
import datetime
import uuid

KEPT_CHANGES = 20000


class Clock:
    """The cluster's, which a test can set wrong."""

    def __init__(self):
        self.offset_s = 0

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + \
            datetime.timedelta(seconds=self.offset_s)

    def stamp(self):
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def header(self):
        return self.now().strftime("%a, %d %b %Y %H:%M:%S GMT")


Change = collections.namedtuple("Change", "version plural type old new")


class Store:
    def __init__(self, clock):
        self.clock = clock
        self.version = 100
        self.forgotten = 0  # changes up to this one
        self.kept = {}  # {plural: {(namespace, name): object}}
        self.changes = collections.deque()
        self.watches = set()
        self.on_change = lambda plural, namespace: None

    def of(self, plural):
        return self.kept.setdefault(plural, {})

    def get(self, plural, namespace, name):
        return self.of(plural).get((namespace or "", name))

    def all(self, plural, namespace=None):
        """In the order of their keys, as they are listed."""
        return [o for (ns, _), o in sorted(self.of(plural).items())
                if namespace is None or ns == namespace]

    def new_metadata(self, metadata, namespace):
        out = {"name": metadata["name"]}
        if "generateName" in metadata:
            out["generateName"] = metadata["generateName"]
        if namespace:
            out["namespace"] = namespace
        out |= {"uid": str(uuid.uuid4()), "resourceVersion": "",
                "generation": 1, "creationTimestamp": self.clock.stamp()}
        for key in ("labels", "annotations", "ownerReferences", "finalizers"):
            if metadata.get(key):
                out[key] = metadata[key]
        return out

    def add(self, plural, obj):
        return self._change(plural, "ADDED", None, copy.deepcopy(obj))

    def update(self, plural, obj, change):
        """change(copy) alters it; None if it was not there any more, or is
        another of the same name.  Nothing happens where nothing changed."""
        meta = obj["metadata"]
        old = self.get(plural, meta.get("namespace"), meta["name"])
        if old is None or old["metadata"]["uid"] != meta["uid"]:
            return None
        new = copy.deepcopy(old)
        change(new)
        if new == old:
            return old
        return self._change(plural, "MODIFIED", old, new)

    def remove(self, plural, obj):
        meta = obj["metadata"]
        old = self.get(plural, meta.get("namespace"), meta["name"])
        if old is None or old["metadata"]["uid"] != meta["uid"]:
            return None
        return self._change(plural, "DELETED", old, copy.deepcopy(old))

    def _change(self, plural, kind, old, new):
        self.version += 1
        meta = new["metadata"]
        meta["resourceVersion"] = str(self.version)
        key = (meta.get("namespace", ""), meta["name"])
        if kind == "DELETED":
            del self.of(plural)[key]
        else:
            self.of(plural)[key] = new
        change = Change(self.version, plural, kind, old, new)
        self.changes.append(change)
        if len(self.changes) > KEPT_CHANGES:
            self.forgotten = self.changes.popleft().version
        for watch in self.watches:
            if watch.plural == plural:
                watch.queue.put_nowait(change)
        self.on_change(plural, meta.get("namespace"))
        return new

    def compact(self):
        """Forget all changes: whoever asks for one is told that it is too
        old."""
        self.version += 1
        self.changes.clear()
        self.forgotten = self.version


class Watch:
    """Who is told of changes, from now on."""

    def __init__(self, store, plural):
        self.store = store
        self.plural = plural
        self.queue = asyncio.Queue()

    def __enter__(self):
        self.store.watches.add(self)
        return self

    def __exit__(self, *exc):
        self.store.watches.discard(self)
