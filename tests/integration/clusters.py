"""A cluster for servers: tests/cluster, the image that it takes the agent's
program from, and what a server's environment says of both."""
import contextlib
import io
import os
import re
import sys
import tarfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from cluster import Remote, Running  # noqa: E402

# worker/kubernetes/pod_body.h
PROGRAM = "usr/local/libexec/mcp-sandboxd/sandbox-agent"
PREFIX = "mcp-sandboxd"


def import_agent(engine, build, name):
    """The server's image, as far as a Pod uses it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(os.path.join(build, "sandbox-agent"), PROGRAM)
    status, data = engine.request(
        "POST", f"/images/create?fromSrc=-&repo={name}&tag=1", out.getvalue(),
        {"Content-Type": "application/x-tar"})
    assert status == 200 and b'"error"' not in data, data
    return f"{name}:1"


class PodCluster:
    """A running cluster, and what tests ask of its Pods."""

    def __init__(self, running, agent, **settings):
        self.running = running
        self.agent = agent
        self.more = settings

    @property
    def faults(self):
        return self.running.faults

    def settings(self, **more):
        """Of a server whose sandboxes are its Pods."""
        return {"SANDBOX_BACKEND": "kubernetes", "CARRIER": "bridge",
                "KUBECONFIG": self.running.kubeconfig,
                "KUBERNETES_AGENT_IMAGE": self.agent,
                # test_pod_network.py has it tried
                "KUBERNETES_ALLOW_UNENFORCED_NETWORK": "true",
                "KUBERNETES_PULL_POLICY": "Never"} | self.more | more

    def path(self, *parts, namespace=None):
        return "/".join((
            f"/api/v1/namespaces/{namespace or self.running.namespace}",
            *parts))

    def ask(self, method, *parts, body=None, want=(200, 201), namespace=None):
        status, said = self.running.ask(
            method, self.path(*parts, namespace=namespace), body)
        assert status in want, (status, said)
        return said

    def rules(self):
        """Of the account that servers have."""
        role, = self.running.ask(
            "GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/"
            f"{self.running.namespace}/roles")[1]["items"]
        return role["rules"]

    def of(self, plural, server, namespace=None):
        """A server's, by name."""
        with open(os.path.join(server.data, "instance"),
                  encoding="ascii") as f:
            mine = re.search(r"^id=(\w+)$", f.read(), re.M)[1]
        selector = urllib.parse.quote(f"{PREFIX}/instance-id={mine}")
        found = self.ask("GET", f"{plural}?labelSelector={selector}",
                         namespace=namespace)["items"]
        return {o["metadata"]["name"]: o for o in found}

    def pods(self, server, namespace=None):
        """Those of a server's sandboxes, by name."""
        return self.of("pods", server, namespace)

    def claims(self, server, namespace=None):
        return self.of("persistentvolumeclaims", server, namespace)

    def make_claim(self, name):
        """By somebody else."""
        self.ask("POST", "persistentvolumeclaims", body={
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name}, "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}}}})

    def remove_pods(self, server):
        """What a server leaves."""
        for name in self.pods(server):
            self.ask("DELETE", "pods", name,
                     body={"gracePeriodSeconds": 0}, want=(200, 404))

    def pod(self, server, namespace=None):
        """The only one."""
        (name, pod), = self.pods(server, namespace).items()
        return name, pod

    def limit_pods(self, most, namespace=None):
        """By a ResourceQuota, until unlimit_pods."""
        self.ask("POST", "resourcequotas", namespace=namespace, body={
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "few"}, "spec": {"hard": {"pods": most}}})

    def unlimit_pods(self, namespace=None):
        self.ask("DELETE", "resourcequotas/few", namespace=namespace)


@contextlib.contextmanager
def remote_cluster(kubeconfig, agent):
    """One that is there, whose nodes have SANDBOX_IMAGE and this one, or pull
    them."""
    remote = Remote(kubeconfig)
    try:
        os.chmod(remote.directory, 0o711)
        os.chmod(remote.kubeconfig, 0o644)
        yield PodCluster(remote, agent, KUBERNETES_PULL_POLICY="IfNotPresent")
    finally:
        remote.clear()


@contextlib.contextmanager
def pod_cluster(engine, build):
    """Its files are for the workers' user, too."""
    agent = import_agent(
        engine, build, f"localhost/mcp-sandboxd-test/agent-{os.getpid()}")
    cluster = Running()
    try:
        cluster.start()
        os.chmod(cluster.directory, 0o711)
        for path in (cluster.kubeconfig, cluster.token, cluster.ca):
            os.chmod(path, 0o644)
        yield PodCluster(cluster, agent)
        left = cluster.faults.take_violations()
        assert not left, f"what the real server mishandles: {left}"
    finally:
        if cluster.process is not None:
            cluster.stop()
        cluster.clear()
        engine.request("DELETE", f"/images/{agent}?force=1")


# ---- runs that a bad day meets

def waiting_run(client, name="a"):
    """One that said something and goes on; its id."""
    run = client.start(name, "echo on; sleep 600")["run_id"]
    client.wait_output(run)
    return run


def lost(client, run):
    """Why it ended with its sandbox."""
    view = client.wait_end(run)
    assert view["end_reason"] == "sandbox_lost", view
    return view["error"]
