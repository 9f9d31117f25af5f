"""Whether the one node has a place for a Pod."""
from . import quantity, selecting

NODE = "vm"
NODE_IP = "10.0.0.2"
LABELS = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux",
          "kubernetes.io/arch": "amd64"}
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "1000",
            "ephemeral-storage": "1Ti"}
ADDRESS_OF_NONE = "10.244.0.2"  # of a Pod whose network reaches nobody
AFTER = " no new claims to deallocate, preemption: 0/1 nodes are available: " \
    "1 Preemption is not helpful for scheduling."


def status(clock):
    """Of the node."""
    stamp = clock.stamp()
    return {
        "capacity": dict(CAPACITY), "allocatable": dict(CAPACITY),
        "conditions": [{
            "type": "Ready", "status": "True", "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp, "reason": "KubeletReady",
            "message": "kubelet is posting ready status"}],
        "addresses": [{"type": "InternalIP", "address": NODE_IP},
                      {"type": "Hostname", "address": NODE}],
        "nodeInfo": {"kubeletVersion": "v1.36.2",
                     "operatingSystem": "linux", "architecture": "amd64"}}


def obstacle(cluster, pod):
    """What the scheduler says where there is none, else nothing."""
    why = claims_obstacle(cluster, pod)
    if why:
        return f"0/1 nodes are available: {why}.{AFTER}" \
            if not why.startswith("persistentvolumeclaim") else why
    found = cluster.store.get("nodes", None, NODE)
    if found is None:
        return "no nodes available to schedule pods"
    why = node_obstacle(found, pod) or room_obstacle(cluster, found, pod)
    return f"0/1 nodes are available: {why}.{AFTER}" if why else None


def claims_obstacle(cluster, pod):
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" not in volume:
            continue
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = cluster.store.get("persistentvolumeclaims",
                                  pod["metadata"]["namespace"], name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim["metadata"].get("deletionTimestamp"):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim["status"]["phase"] != "Bound":
            return "pod has unbound immediate PersistentVolumeClaims"
    return None


def node_obstacle(found, pod):
    wanted = pod["spec"].get("nodeSelector") or {}
    if not selecting.matches_labels(wanted, found["metadata"]["labels"]):
        return "1 node(s) didn't match Pod's node affinity/selector"
    for taint in found["spec"].get("taints", ()):
        if taint["effect"] != "PreferNoSchedule" and \
                not tolerates(pod, taint):
            return "1 node(s) had untolerated taint(s)"
    if found["spec"].get("unschedulable"):
        return "1 node(s) were unschedulable"
    return None


def tolerates(pod, taint):
    return any(
        t.get("effect", taint["effect"]) == taint["effect"] and
        t.get("key", taint["key"]) == taint["key"] and
        (t.get("operator") == "Exists" or
         t.get("value", "") == taint.get("value", ""))
        for t in pod["spec"].get("tolerations") or ())


def room_obstacle(cluster, found, pod):
    there = [p for p in cluster.store.all("pods")
             if p["spec"].get("nodeName") and
             p["status"]["phase"] not in ("Succeeded", "Failed")]
    room = found["status"]["allocatable"]
    if len(there) >= int(room["pods"]):
        return "1 Too many pods"
    for name in ("cpu", "memory"):
        used = sum(quantity.asked_of_node(p["spec"], "requests", name)
                   for p in there)
        if used + quantity.asked_of_node(pod["spec"], "requests", name) > \
                quantity.number(room[name]):
            return f"1 Insufficient {name}"
    return None
