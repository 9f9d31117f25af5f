"""Bodies that tests send, and what is asked of a Pod all the time."""
from .peer import Watch, wait_for

PROFILE = {
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True, "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"}}


def container(image, /, *command, name="main", **fields):
    return {"name": name, "image": image, "imagePullPolicy": "Never",
            "command": list(command) or ["sleep", "600"], **fields}


def pod(name, *containers, labels=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {"app": "sbx"}},
            "spec": {"restartPolicy": "Never", "containers":
                     list(containers), **spec}}


class Pods:
    """Of the namespace of the tests, as the account of its Role has them."""

    def __init__(self, cluster, image):
        self.cluster = cluster
        self.image = image
        self.path = f"/api/v1/namespaces/{cluster.namespace}/pods"

    def ask(self, method, path="", body=None, **kwargs):
        with open(self.cluster.token, encoding="utf-8") as f:
            kwargs.setdefault("token", f.read())
        return self.cluster.ask(method, self.path + path, body, **kwargs)

    def create(self, name, *command, query="", labels=None, **spec):
        """(status, answer) of one with a container that is mostly the
        usual; container= has what is not."""
        fields = spec.pop("container", {})
        return self.ask("POST", query, pod(
            name, container(self.image, *command, **fields), labels=labels,
            **spec))

    def made(self, name, *command, **spec):
        status, said = self.create(name, *command, **spec)
        assert status == 201, said
        return said

    def get(self, name):
        return self.ask("GET", f"/{name}")[1]

    def phase(self, name):
        return self.get(name)["status"].get("phase")

    def state(self, name):
        """Of its first container."""
        found = self.get(name)["status"].get("containerStatuses")
        return found[0]["state"] if found else {}

    def running(self, name, *command, **spec):
        """The Pod, when it runs."""
        made = self.made(name, *command, **spec)
        version = made["metadata"]["resourceVersion"]
        with Watch(
                self.cluster, fieldSelector=f"metadata.name={name}",
                resourceVersion=version) as watch:
            event = watch.until(lambda kind, o: o["status"]["phase"] !=
                                "Pending")
        assert event["object"]["status"]["phase"] == "Running", event
        return event["object"]

    def ended(self, name):
        """Its status, when its phase is that of an end."""
        wait_for(lambda: self.phase(name) in ("Succeeded", "Failed"),
                 f"the end of {name}")
        return self.get(name)["status"]

    def waiting(self, name):
        """The state of its first container, when it has a reason that is no
        beginning."""
        def reason():
            state = self.state(name).get("waiting")
            return state if state and state["reason"] not in (
                "ContainerCreating", "PodInitializing") else None

        return wait_for(reason, f"a reason of {name}")

    def events(self, name):
        """[(type, reason, message)] of what was told of it."""
        status, said = self.cluster.ask(
            "GET", f"/api/v1/namespaces/{self.cluster.namespace}/events?"
            f"fieldSelector=involvedObject.name%3D{name}")
        assert status == 200, said
        return [(e["type"], e["reason"], e["message"]) for e in said["items"]]
