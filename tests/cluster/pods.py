"""The life of Pods, which are containers of the engine.

A Pod is placed on the one node, its init containers run one after the other,
its containers run together, and each step is told in its status, as the
kubelet does.  One coroutine is one life: begin(), attend() until all has
ended, and tear_down() when somebody has deleted the Pod.  What would share a
network or a tmpfs between containers has a container more, which holds them.
"""
import asyncio
import contextlib
import traceback

from . import containers as making
from . import images, scheduling, statuses, volumes
from .engine import EngineError
from .waiting import end_of, first_of

RETRY_S = 0.5
KILL_LAG_S = 1  # a Pod deleted without grace lives on so long
AGAIN_S = 1  # until a container that ended is started again
POLICIES = {"Always": lambda code: True, "OnFailure": lambda code: code != 0,
            "Never": lambda code: False}


class Ending(Exception):
    """Somebody deleted the Pod."""


class Node:
    """The one node, and the lives of its Pods."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.lives = {}  # {uid: Life}
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.released = asyncio.Event()  # Pods begin
        self.released.set()
        self.delay_s = 0

    def begin(self, pod):
        life = Life(self, pod)
        self.lives[life.uid] = life
        life.task = asyncio.ensure_future(life.run())

    @property
    def is_lost(self):
        return not self.reachable.is_set()

    async def burn(self):
        """All Pods are gone at once, and their objects with them."""
        for life in list(self.lives.values()):
            self.cluster.store.remove("pods", life.pod)
            life.gone.set()
            life.end_now()
        await self.idle()

    def life_of(self, pod):
        return self.lives.get(pod["metadata"]["uid"])

    async def clear(self):
        """No life goes on, whatever grace it had."""
        for life in self.lives.values():
            life.end_now()
        await self.idle()

    async def idle(self):
        """Wait for the end of all lives."""
        await asyncio.gather(*(life.task for life in self.lives.values()),
                             return_exceptions=True)

    async def close(self):
        for life in self.lives.values():
            life.task.cancel()
            for container in life.init + life.containers:
                container.let_go()
        await self.idle()


class Life:
    def __init__(self, node, pod):
        self.node = node
        self.cluster = node.cluster
        self.engine = node.cluster.engine
        self.pod = pod
        self.uid = pod["metadata"]["uid"]
        spec = pod["spec"]
        self.init = [statuses.Container(c, True)
                     for c in spec.get("initContainers") or ()]
        self.containers = [statuses.Container(c, False)
                           for c in spec["containers"]]
        self.has_sandbox = False
        self.ip = None
        self.holder = None
        self.made = []  # volumes that go with the Pod
        self.started_at = None
        self.verdict = None  # (reason, message) of who ended all of it
        self.ending = asyncio.Event()
        self.gone = asyncio.Event()  # with its node
        self.kill_at = None
        self.task = None

    # ---- what is told

    @property
    def labels(self):
        meta = self.pod["metadata"]
        return self.cluster.run.labels | {
            "pod.name": meta["name"], "pod.namespace": meta["namespace"],
            "pod.uid": self.uid}

    def stamp(self):
        return self.cluster.clock.stamp()

    def event(self, kind, reason, message, container=None):
        self.cluster.events.tell(self.pod, kind, reason, message,
                                 container and container.spec["name"],
                                 container is not None and container.is_init)

    def phase(self):
        if self.verdict:
            return "Failed"
        failed = any(c.end and c.end["exitCode"] for c in self.init)
        if failed and self.policy == "Never":
            return "Failed"
        if not all(c.end for c in self.init):
            return "Pending"
        return statuses.phase_of(self.containers)

    @property
    def policy(self):
        return self.pod["spec"]["restartPolicy"]

    def publish_again(self):
        if self.started_at:
            self.publish()

    def publish(self):
        if self.node.is_lost:
            return

        def change(pod):
            status = pod["status"]
            phase = self.phase()
            status["observedGeneration"] = pod["metadata"]["generation"]
            status["phase"] = phase
            if self.verdict:
                status["reason"], status["message"] = self.verdict
            kept = [c for c in status.get("conditions", ())
                    if c["type"] not in statuses.OF_NODE]
            status["conditions"] = kept + statuses.conditions(
                status.get("conditions", []), self.stamp(), self.init,
                self.containers, self.has_sandbox, phase)
            status["hostIP"] = scheduling.NODE_IP
            status["hostIPs"] = [{"ip": scheduling.NODE_IP}]
            if self.ip:
                status["podIP"] = self.ip
                status["podIPs"] = [{"ip": self.ip}]
            status["startTime"] = self.started_at
            if self.init:
                status["initContainerStatuses"] = [
                    c.status() for c in self.init]
            status["containerStatuses"] = [
                c.status() for c in self.containers]

        self.pod = self.cluster.store.update("pods", self.pod, change) or \
            self.pod

    # ---- its life

    async def run(self):
        try:
            with contextlib.suppress(Ending):
                await self.place()
                await self.begin()
                await self.attend()
            await self.ending.wait()
            await self.tear_down()
        except Exception:
            traceback.print_exc()  # a test's cluster may not say a word
            raise
        finally:
            self.node.lives.pop(self.uid, None)

    async def going_on(self, awaitable):
        """Its result, but for a Pod that is to end; what was asked of the
        engine comes to its end all the same."""
        result = await awaitable
        if self.ending.is_set():
            raise Ending
        return result

    async def pause(self, seconds):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.ending.wait(), seconds)
        if self.ending.is_set():
            raise Ending

    async def place(self):
        """On the node, as soon as there is room."""
        while (why := scheduling.obstacle(self.cluster, self.pod)):
            self.unplaced(why)
            await self.pause(RETRY_S)

        def change(pod):
            pod["spec"]["nodeName"] = scheduling.NODE
            statuses.set_condition(pod["status"], {
                "type": "PodScheduled", "status": "True",
                "lastProbeTime": None, "lastTransitionTime": self.stamp()})

        self.pod = self.cluster.store.update("pods", self.pod, change) or \
            self.pod
        meta = self.pod["metadata"]
        self.event("Normal", "Scheduled", "Successfully assigned "
                   f"{meta['namespace']}/{meta['name']} to {scheduling.NODE}")

    def unplaced(self, why):
        def change(pod):
            statuses.set_condition(pod["status"], {
                "type": "PodScheduled", "status": "False",
                "lastProbeTime": None, "lastTransitionTime": self.stamp(),
                "reason": "Unschedulable", "message": why})

        old = {c["type"]: c.get("message")
               for c in self.pod["status"].get("conditions", ())}
        if old.get("PodScheduled") != why:
            self.pod = self.cluster.store.update("pods", self.pod, change) or \
                self.pod
            self.event("Warning", "FailedScheduling", why)

    async def begin(self):
        first = "PodInitializing" if self.init else "ContainerCreating"
        for c in self.init + self.containers:
            c.state = statuses.waiting(first)
        self.started_at = self.stamp()
        self.publish()
        while not self.node.released.is_set() or self.node.is_lost:
            await self.pause(RETRY_S / 5)
        await self.pause(self.node.delay_s)
        await self.make_volumes()
        if self.wants_holder() or self.volumes():
            await self.hold()
        self.has_sandbox = True
        self.publish()
        for c in self.init:
            await self.run_first(c)
        for c in self.containers:
            c.state = statuses.waiting("PodInitializing" if self.init else
                                       "ContainerCreating")
        for c in self.containers:
            await self.start(c)
        self.publish()

    async def run_first(self, container):
        """An init container, to its good end."""
        while True:
            await self.start(container)
            self.publish()
            await self.until_end(container)
            self.publish()
            if not container.end["exitCode"]:
                return
            if self.policy == "Never":
                await self.ending.wait()
                raise Ending
            await self.again(container)

    async def attend(self):
        """Until all containers have ended, or one has to begin again."""
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        done = await first_of(
            asyncio.gather(*(self.attend_one(c) for c in self.containers)),
            self.ending.wait(), timeout=deadline)
        if not any(done):
            await self.fail("DeadlineExceeded", "Pod was active on the node "
                            "longer than the specified deadline")
        if self.ending.is_set():
            raise Ending

    async def attend_one(self, container):
        while True:
            if not container.end:
                await self.until_end(container)
            again = self.verdict is None and \
                POLICIES[self.policy](container.end["exitCode"])
            if not again:
                self.publish()
                return
            await self.again(container)
            await self.start(container)
            self.publish()

    async def again(self, container):
        container.last_state = container.state
        container.restarts += 1
        if container.restarts > 1:
            meta = self.pod["metadata"]
            container.state = statuses.waiting(
                "CrashLoopBackOff", "back-off 10s restarting failed container="
                f"{container.name} pod={meta['name']}_{meta['namespace']}"
                f"({meta['uid']})")
            self.publish()
            await self.pause(AGAIN_S)
        with contextlib.suppress(EngineError):
            await self.engine.ask("DELETE", f"/containers/{container.id}",
                                  force=1)

    # ---- one container

    async def start(self, container):
        """It runs, or its state says why it could not."""
        if self.verdict:
            await self.ending.wait()
            raise Ending
        container.is_oom_killed = False
        image = await self.image_of(container)
        while True:
            try:
                await self.create(container, image)
                break
            except making.BadConfig as e:
                await self.wait_with(container, e.reason, str(e))
            except EngineError as e:
                await self.wait_with(container, "CreateContainerError",
                                     f"Error response from daemon: {e}")
        self.event("Normal", "Created", "Container created", container)
        try:
            await self.engine.ask("POST", f"/containers/{container.id}/start")
        except EngineError as e:
            self.not_started(container, str(e))
            return
        container.started_at = self.stamp()
        container.state = statuses.running(container.started_at)
        container.is_ready = not container.is_init
        self.event("Normal", "Started", "Container started", container)
        said = await self.look(container.id)
        container.process = said["State"]["Pid"]
        if self.ending.is_set():
            raise Ending

    async def wait_with(self, container, reason, message):
        """For better times."""
        old = container.state
        container.state = statuses.waiting(reason, message)
        if container.state != old:
            self.event("Warning", "Failed", f"Error: {message}", container)
            self.publish()
        await self.pause(RETRY_S)

    def not_started(self, container, said):
        why = "failed to create containerd task: failed to create shim " \
            f"task: {said}"
        container.state = statuses.terminated(
            128, "StartError", "1970-01-01T00:00:00Z", self.stamp(),
            container.id, why)
        self.event("Warning", "Failed", f"Error: {why}", container)

    async def image_of(self, container):
        finding = images.Finding(self.engine, container.spec)
        while True:
            try:
                image = await self.going_on(finding.find())
            except images.Missing as e:
                for kind, reason, message in e.events:
                    self.event(kind, reason, message, container)
                container.state = statuses.waiting(e.reason, e.message)
                self.publish()
                await self.pause(RETRY_S)
            else:
                self.event("Normal", "Pulled", "Container image "
                           f'"{container.spec["image"]}" already present on '
                           "machine and can be accessed by the pod", container)
                container.image_id = image["Id"]
                return image

    async def create(self, container, image):
        mounts = self.mounts_of(container.spec)
        asked = making.body(self.pod, container.spec, image, mounts,
                            self.network(container), self.labels,
                            self.cluster)
        made = await self.engine.ask(
            "POST", "/containers/create", asked,
            name=f"{self.cluster.run.prefix}-{self.uid[:8]}-{container.name}-"
            f"{container.restarts}")
        container.id = made["Id"]

    def network(self, container):
        """One for all containers of the Pod."""
        if self.holder:
            return f"container:{self.holder}"
        return self.network_of_pod()

    def network_of_pod(self):
        return "none" if self.cluster.policies.deny_egress(self.pod) \
            else "bridge"

    async def look(self, container_id):
        """What the engine says of it; the first one has the address."""
        said = await self.engine.ask("GET", f"/containers/{container_id}/json")
        if not self.ip:
            networks = said["NetworkSettings"]["Networks"]
            self.ip = next((n["IPAddress"] for n in networks.values()
                            if n["IPAddress"]), scheduling.ADDRESS_OF_NONE)
        return said

    async def until_end(self, container):
        """Its state is that of its end then."""
        if container.end:
            return
        await first_of(self.after_end(container), self.ending.wait())
        if self.ending.is_set():
            raise Ending
        await self.learn_end(container)

    async def after_end(self, container):
        await end_of(container.process)
        container.let_go()
        with contextlib.suppress(EngineError):  # somebody took it away
            await self.engine.ask("POST", f"/containers/{container.id}/wait")

    async def learn_end(self, container):
        if container.end or container.id is None:
            return
        try:
            state = (await self.engine.ask(
                "GET", f"/containers/{container.id}/json"))["State"]
        except EngineError:  # somebody took it away
            state = {"ExitCode": 137}
        code = state["ExitCode"]
        is_oom = state.get("OOMKilled") or container.is_oom_killed
        reason = "OOMKilled" if is_oom else "Error" if code else "Completed"
        container.state = statuses.terminated(
            code, reason, container.started_at, self.stamp(), container.id)
        container.is_ready = container.is_init and code == 0

    # ---- volumes, and what holds what containers share

    def volumes(self):
        """{name in the Pod: name in the engine}"""
        claims = {c["metadata"]["name"]: c for c in self.cluster.store.all(
            "persistentvolumeclaims", self.pod["metadata"]["namespace"])}
        named = {v["name"]: volumes.engine_name(
            self.cluster.run, self.pod, v, claims)
            for v in self.pod["spec"].get("volumes") or ()}
        return {k: name for k, name in named.items() if name}

    async def make_volumes(self):
        for volume in self.pod["spec"].get("volumes") or ():
            if "emptyDir" in volume:
                name = volumes.name_of(self.cluster.run, self.uid,
                                       volume["name"])
                self.made.append(name)
                await self.going_on(volumes.make(
                    self.engine, self.cluster.run, name,
                    volumes.options(self.pod, volume)))

    def mounts_of(self, spec):
        named = self.volumes()
        return [volumes.mount(named[wanted["name"]], wanted)
                for wanted in spec.get("volumeMounts") or ()
                if wanted["name"] in named]

    def wants_holder(self):
        """To be there as long as the Pod."""
        several = len(self.containers) > 1 or bool(self.init)
        memory = any(map(volumes.is_memory,
                         self.pod["spec"].get("volumes") or ()))
        return len(self.containers) > 1 or (several and memory)

    async def hold(self):
        """A container that has all volumes; it is only started where others
        need it."""
        named = self.volumes()
        made = await self.engine.ask(
            "POST", "/containers/create", {
                "Image": await self.cluster.pause_image(),
                "Cmd": ["/busybox", "tail", "-f", "/dev/null"],
                "Hostname": self.pod["metadata"]["name"][:63].rstrip("-."),
                "Labels": self.labels, "HostConfig": {
                    "NetworkMode": self.network_of_pod(),
                    "Mounts": [volumes.mount(name, {
                        "mountPath": f"{volumes.HELD}/{at}"})
                        for at, name in named.items()]}},
            name=f"{self.cluster.run.prefix}-{self.uid[:8]}-holder")
        fresh = [at for at, name in named.items()
                 if name not in self.cluster.opened and not self.is_memory(at)]
        if fresh:
            self.cluster.opened |= {named[at] for at in fresh}
            await volumes.open_to_all(self.engine, made["Id"], fresh,
                                      volumes.fs_group(self.pod))
        if self.wants_holder():
            await self.engine.ask("POST", f"/containers/{made['Id']}/start")
            self.holder = made["Id"]
            await self.look(self.holder)

    def is_memory(self, name):
        return any(v["name"] == name and volumes.is_memory(v)
                   for v in self.pod["spec"]["volumes"])

    # ---- its end

    def end(self, grace_s):
        """Somebody deleted it; a second time with less grace is heard."""
        loop = asyncio.get_running_loop()
        at = loop.time() + (grace_s or KILL_LAG_S)
        if self.kill_at is None or at < self.kill_at:
            self.kill_at = at
        self.ending.set()

    def end_now(self):
        self.end(0)
        self.kill_at = 0

    async def fail(self, reason, message):
        """All of it is killed, and the Pod stays as failed."""
        self.verdict = (reason, message)
        self.event("Normal" if reason == "DeadlineExceeded" else "Warning",
                   reason, message)
        for c in self.init + self.containers:
            if c.is_running:
                self.event("Normal", "Killing",
                           f"Stopping container {c.name}", c)
                await self.signal(c, "KILL")
                await self.after_end(c)
                await self.learn_end(c)
        self.publish()

    async def kill_of_memory(self):
        for c in self.containers:
            if c.is_running:
                c.is_oom_killed = True
                await self.signal(c, "KILL")
        await asyncio.gather(*(self.after_end(c) for c in self.containers
                               if c.is_running))

    async def signal(self, container, name):
        with contextlib.suppress(EngineError):  # it has ended
            await self.engine.ask(
                "POST", f"/containers/{container.id}/kill", signal=name)

    async def stop(self, container):
        """TERM, and KILL when the grace is over."""
        self.event("Normal", "Killing",
                   f"Stopping container {container.name}", container)
        await self.signal(container, "TERM")
        ended = asyncio.ensure_future(self.after_end(container))
        loop = asyncio.get_running_loop()
        while not ended.done() and loop.time() < self.kill_at:
            await asyncio.wait([ended], timeout=min(
                0.2, max(0, self.kill_at - loop.time())))
        if not ended.done():
            await self.signal(container, "KILL")
        await ended
        await self.learn_end(container)

    async def tear_down(self):
        await first_of(self.node.reachable.wait(), self.gone.wait())
        await asyncio.gather(*(self.stop(c) for c in
                               self.init + self.containers if c.is_running))
        self.has_sandbox = False
        if self.started_at:
            self.publish()
        await self.remove_containers()
        self.cluster.finish(self.pod)
        for name in self.made:
            with contextlib.suppress(EngineError):
                await volumes.remove(self.engine, name)

    async def remove_containers(self):
        found = await self.engine.ask(
            "GET", "/containers/json", all=1,
            filters={"label": [f"pod.uid={self.uid}"]})
        for c in found:
            with contextlib.suppress(EngineError):
                await self.engine.ask("DELETE", f"/containers/{c['Id']}",
                                      force=1)
