"""What deploy/kubernetes makes: objects of the API, by kustomize and helm."""
import functools
import os

import yaml

from pages import TOP
from programs import output_of

ROOM = os.path.join(TOP, "deploy/kubernetes")
CHART = os.path.join(ROOM, "chart")
NAMESPACE = "mcp-sandboxd"
BOXES = "mcp-sandboxes"


@functools.cache
def text_of(*command):
    return output_of(*command)


def parsed(text):
    return [o for o in yaml.safe_load_all(text) if o]


def kustomized(name):
    return parsed(text_of("kubectl", "kustomize", os.path.join(ROOM, name)))


def with_components(directory, *components, resources=(), literals=()):
    """An overlay of the base with those of them, and with more."""
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [relative(directory, "base"), *resources],
        "configMapGenerator": [{
            "name": NAMESPACE, "namespace": NAMESPACE, "behavior": "merge",
            "literals": list(literals)}] if literals else [],
        "components": [relative(directory, f"components/{c}")
                       for c in components]}
    path = os.path.join(directory, "kustomization.yaml")
    with open(path, "w", encoding="utf-8") as f:
        yaml.safe_dump(overlay, f)
    return parsed(output_of("kubectl", "kustomize", str(directory)))


def relative(directory, name):
    return os.path.relpath(os.path.join(ROOM, name), os.path.realpath(
        directory))


def charted(*values):
    """values: KEY=VALUE, as helm's --set has them"""
    args = [a for v in values for a in ("--set", v)]
    return parsed(text_of("helm", "template", NAMESPACE, CHART, "--namespace",
                          NAMESPACE, *args))


def find(objects, kind, name=NAMESPACE, namespace=None):
    found = [o for o in objects if o["kind"] == kind
             and o["metadata"]["name"].startswith(name)
             and namespace in (None, o["metadata"].get("namespace"))]
    assert len(found) == 1, [o["metadata"] for o in found]
    return found[0]


def pod_of(objects):
    return find(objects, "Deployment")["spec"]["template"]


def settings_of(objects):
    """What the server's container is told."""
    container = pod_of(objects)["spec"]["containers"][0]
    told = {e["name"]: e["value"] for e in container.get("env", [])}
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            told.update(find(objects, "ConfigMap",
                             source["configMapRef"]["name"])["data"])
    return told
