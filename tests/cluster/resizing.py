"""pods/resize: more or less of memory and processors while a Pod runs."""
import copy

from . import containers, quantity, scheduling, statuses
from .answers import forbidden, invalid
from .engine import EngineError
from .resources import PODS


def unsized(spec):
    out = copy.deepcopy(spec)
    for c in out["containers"] + out.get("initContainers", []):
        c.pop("resources", None)
        c.pop("resizePolicy", None)
    return out


async def resize(cluster, old, new):
    """The Pod as it is then."""
    meta = old["metadata"]
    if unsized(old["spec"]) != unsized(new["spec"]):
        raise invalid(PODS, meta["name"], [
            ("spec", "FieldValueForbidden",
             "only cpu and memory resources are mutable")])
    check_room(cluster, meta["name"], new)
    cluster.quota.check(new, but=old)

    def change(pod):
        pod["spec"]["containers"] = new["spec"]["containers"]
        if pod["spec"] != old["spec"]:
            pod["metadata"]["generation"] += 1

    pod = cluster.store.update("pods", old, change)
    life = cluster.node.life_of(pod)
    if life is not None:
        life.pod = pod
        for container, spec in zip(life.containers,
                                   pod["spec"]["containers"], strict=True):
            await apply(cluster, life, container, spec)
        life.publish()
    return cluster.store.get("pods", meta["namespace"], meta["name"]) or pod


def check_room(cluster, name, pod):
    room = cluster.store.get("nodes", None, scheduling.NODE)["status"][
        "allocatable"]
    for key in ("cpu", "memory"):
        asked = quantity.asked_of_node(pod["spec"], "requests", key)
        if asked > quantity.number(room[key]):
            raise forbidden(
                PODS, name, "Node didn't have enough capacity: "
                f"{key}, requested: {int(asked)}, capacity: "
                f"{int(quantity.number(room[key]))}")


async def apply(cluster, life, container, spec):
    """What the engine does not take now stays in progress."""
    asked = containers.resources(spec.get("resources") or {})
    if container.is_running and asked:
        try:
            await cluster.engine.ask(
                "POST", f"/containers/{container.id}/update", asked)
        except EngineError as e:
            in_progress(cluster, life, str(e))
            return
    container.spec = spec


def in_progress(cluster, life, why):
    def change(pod):
        statuses.set_condition(pod["status"], statuses.condition(
            pod["status"].get("conditions", []), "PodResizeInProgress", True,
            "Error", why, cluster.clock.stamp()))

    life.pod = cluster.store.update("pods", life.pod, change) or life.pod
