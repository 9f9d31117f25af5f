"""Events: what was told of a Pod, counted where it is told again."""
import secrets

from . import scheduling


class Events:
    def __init__(self, store):
        self.store = store
        self.known = {}  # {(uid, reason, message): event}

    def tell(self, pod, kind, reason, message, container=None, is_init=False):
        meta = pod["metadata"]
        key = (meta["uid"], reason, message)
        stamp = self.store.clock.stamp()
        old = self.known.get(key)
        if old is not None:
            def again(event):
                event["count"] += 1
                event["lastTimestamp"] = stamp

            if self.store.update("events", old, again):
                return
        about = {"kind": "Pod", "namespace": meta["namespace"],
                 "name": meta["name"], "uid": meta["uid"],
                 "apiVersion": "v1",
                 "resourceVersion": meta["resourceVersion"]}
        if container:
            part = "initContainers" if is_init else "containers"
            about["fieldPath"] = f"spec.{part}{{{container}}}"
        by_scheduler = reason in ("Scheduled", "FailedScheduling")
        source = {"component": "default-scheduler"} if by_scheduler else \
            {"component": "kubelet", "host": scheduling.NODE}
        self.known[key] = self.store.add("events", {
            "kind": "Event", "apiVersion": "v1",
            "metadata": self.store.new_metadata(
                {"name": f"{meta['name']}.{secrets.token_hex(8)}"},
                meta["namespace"]),
            "involvedObject": about, "reason": reason, "message": message,
            "source": source, "firstTimestamp": stamp, "lastTimestamp": stamp,
            "count": 1, "type": kind, "eventTime": None,
            "reportingComponent": source["component"],
            "reportingInstance": source.get("host", "")})
