"""The status of a Pod, as the kubelet reports it."""

RUNTIME = "docker"
OF_NODE = ("PodReadyToStartContainers", "Initialized", "Ready",
           "ContainersReady", "PodScheduled")


def waiting(reason, message=None):
    out = {"reason": reason}
    if message:
        out["message"] = message
    return {"waiting": out}


def running(started):
    return {"running": {"startedAt": started}}


def terminated(code, reason, started, finished, container_id, message=None):
    out = {"exitCode": code, "reason": reason}
    if message:
        out["message"] = message
    return {"terminated": out | {
        "startedAt": started, "finishedAt": finished,
        "containerID": f"{RUNTIME}://{container_id}"}}


def condition(old, kind, is_true, reason, message, stamp):
    """The time is that of the last change from true to false or back."""
    word = {True: "True", False: "False", None: "Unknown"}[is_true]
    before = next((c for c in old if c["type"] == kind), None)
    out = {"type": kind, "observedGeneration": 1, "status": word,
           "lastProbeTime": None, "lastTransitionTime": stamp}
    if before is not None and before["status"] == word:
        out["lastTransitionTime"] = before["lastTransitionTime"]
    if reason:
        out["reason"] = reason
    if message:
        out["message"] = message
    return out


def set_condition(status, new):
    """In the place of the one of its type."""
    kept = status.setdefault("conditions", [])
    for at, one in enumerate(kept):
        if one["type"] == new["type"]:
            kept[at] = new
            return
    kept.append(new)


class Container:
    """What is known of a container of a Pod."""

    def __init__(self, spec, is_init):
        self.spec = spec
        self.name = spec["name"]
        self.is_init = is_init
        self.state = waiting("PodInitializing")
        self.last_state = {}
        self.is_ready = False
        self.restarts = 0
        self.is_oom_killed = False
        self.process = None  # its first, as the engine's host counts
        self.streams = set()  # of the engine, by exec and attach
        self.id = None
        self.image_id = ""
        self.started_at = None

    @property
    def is_running(self):
        return "running" in self.state

    @property
    def end(self):
        """How it ended, or None."""
        return self.state.get("terminated")

    def let_go(self):
        """Of its streams: the engine does not end a container while somebody
        has one and does not read it."""
        for stream in list(self.streams):
            stream.close()

    def status(self):
        out = {"name": self.name, "state": self.state,
               "lastState": self.last_state, "ready": self.is_ready,
               "restartCount": self.restarts, "image": self.spec["image"],
               "imageID": self.image_id}
        if self.id:
            out["containerID"] = f"{RUNTIME}://{self.id}"
        out["started"] = self.is_running
        asked = self.spec.get("resources") or {}
        if self.is_running and asked:
            if asked.get("requests"):
                out["allocatedResources"] = asked["requests"]
            out["resources"] = asked
        if self.spec.get("volumeMounts"):
            out["volumeMounts"] = self.spec["volumeMounts"]
        return out


def phase_of(containers):
    """Of a Pod whose init containers have done their part."""
    ends = [c.end for c in containers]
    if all(ends):
        return "Failed" if any(e["exitCode"] for e in ends) else "Succeeded"
    return "Running" if any(c.is_running or c.end for c in containers) \
        else "Pending"


def conditions(old, stamp, init, containers, has_sandbox, phase):
    """The five that the kubelet keeps."""
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    undone = [c.name for c in init if not (c.end and not c.end["exitCode"])]
    unready = [c.name for c in containers if not c.is_ready]
    not_done = ("ContainersNotInitialized",
                f"containers with incomplete status: [{' '.join(undone)}]")
    not_ready = ("ContainersNotReady",
                 f"containers with unready status: [{' '.join(unready)}]")
    if ended:
        not_ready = (ended, None)
    said = {
        "PodReadyToStartContainers": (has_sandbox and not ended, None, None),
        "Initialized": (not undone, *(not_done if undone else (None, None))),
        "Ready": (not unready, *(not_ready if unready else (None, None))),
        "ContainersReady": (not unready,
                            *(not_ready if unready else (None, None))),
        "PodScheduled": (True, None, None),
    }
    return [condition(old, kind, *said[kind], stamp) for kind in OF_NODE]


def quality(spec):
    """The class of service: Guaranteed, Burstable or BestEffort."""
    asked = [c.get("resources") or {} for c in
             [*spec["containers"], *spec.get("initContainers", ())]]
    if not any(a.get("limits") or a.get("requests") for a in asked):
        return "BestEffort"
    exact = all(a.get("limits", {}).get(k) is not None and
                a["limits"][k] == a.get("requests", {}).get(k)
                for a in asked for k in ("cpu", "memory"))
    return "Guaranteed" if exact else "Burstable"
