"""What the API server writes into a Pod that does not say it."""
ALWAYS = {
    "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
    "serviceAccount": "default", "securityContext": {},
    "schedulerName": "default-scheduler", "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30, "enableServiceLinks": True,
    "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATED_S = 300
OF_CONTAINER = {"terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File"}


def fill(spec):
    """Changes the spec of a Pod."""
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    for key, value in ALWAYS.items():
        spec.setdefault(key, value)
    for container in spec.get("containers", []) + \
            spec.get("initContainers", []):
        fill_container(container)
    for volume in spec.get("volumes", []):
        if len(volume) == 1:  # a name alone
            volume["emptyDir"] = {}
    kept = spec.setdefault("tolerations", [])
    for key in TOLERATED:
        if not any(t.get("key", key) == key for t in kept):
            kept.append({"key": key, "operator": "Exists",
                         "effect": "NoExecute",
                         "tolerationSeconds": TOLERATED_S})


def fill_container(container):
    for key, value in OF_CONTAINER.items():
        container.setdefault(key, value)
    container.setdefault("resources", {})
    fill_requests(container["resources"])
    if "imagePullPolicy" not in container:
        tag = container.get("image", "").rpartition("/")[2]
        is_latest = tag.endswith(":latest") or \
            ":" not in tag and "@" not in tag
        container["imagePullPolicy"] = "Always" if is_latest \
            else "IfNotPresent"


def fill_requests(resources):
    """A limit without a request is one, too."""
    for key, value in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(key, value)
