"""The process of a cluster: its files, its two sockets, and its end."""
import asyncio
import json
import os
import shutil


from certificates import Authority

from . import rights
from .cluster import Cluster
from .control import Control

ADMIN = rights.Identity("kubernetes-admin", [rights.MASTERS])
ACCOUNT = "runner"
RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": [
        "create", "get", "list", "watch", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/exec", "pods/attach"],
     "verbs": ["get", "create"]},
    {"apiGroups": [""], "resources": ["pods/log", "events"],
     "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["persistentvolumeclaims"],
     "verbs": ["create", "get", "list", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["resourcequotas", "limitranges"],
     "verbs": ["get", "list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"],
     "verbs": ["create", "get", "list", "delete"]},
]


def write(path, text):
    """As whoever renews does: never half of a file."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path + ".new", 0o644)  # servers have users of their own
    os.rename(path + ".new", path)


def kubeconfig(url, authority, namespace, user):
    """JSON is YAML, too."""
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": url, "certificate-authority": authority}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {
            "cluster": "test", "user": "test", "namespace": namespace}}],
    }, indent=2)


class Files:
    """Of a directory, for clients."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = self.path("ca.crt")
        self.token = self.path("token")
        self.kubeconfig = self.path("kubeconfig")
        self.admin_kubeconfig = self.path("admin.kubeconfig")
        self.control = self.path("control.sock")
        self.issuer = Authority(self.path("authority"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def write_token(self, token):
        write(self.token, token)


async def serve(host, directory, options):
    os.chmod(directory, 0o711)
    files = Files(directory)
    certificate, key = files.issuer.issue(
        "kube-apiserver", alt="IP:127.0.0.1,DNS:localhost,DNS:kubernetes")
    shutil.copy(files.issuer.certificate, files.authority)
    cluster = Cluster(host, options.namespace)
    try:
        await cluster.open(certificate, key, files.authority, options.port)
        cluster.faults.account = cluster.give_rights(ACCOUNT, RULES)
        said = write_files(cluster, files, options)
        async with Control(cluster, files):
            print(json.dumps(said), flush=True)
            await asyncio.Event().wait()
    finally:
        await cluster.close()


def write_files(cluster, files, options):
    """What a client needs, and where it is."""
    url = f"https://127.0.0.1:{cluster.listener.port}"
    files.write_token(cluster.new_token(cluster.faults.account))
    write(files.kubeconfig, kubeconfig(
        url, files.authority, cluster.namespace, {"tokenFile": files.token}))
    write(files.admin_kubeconfig, kubeconfig(
        url, files.authority, cluster.namespace,
        {"token": cluster.new_token(ADMIN)}))
    if options.kubeconfig:
        shutil.copy(files.kubeconfig, options.kubeconfig)
    return {"url": url, "namespace": cluster.namespace,
            "ca": files.authority, "token": files.token,
            "kubeconfig": files.kubeconfig,
            "admin_kubeconfig": files.admin_kubeconfig,
            "control": files.control}
