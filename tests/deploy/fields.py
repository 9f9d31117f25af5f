"""Whether objects have only fields that the API has, and those of the right
shape: as the models of Debian's python3-kubernetes know them, which are made
from the API's own description."""
import re

from kubernetes import client

MODELS = {
    "ConfigMap": "V1ConfigMap", "Deployment": "V1Deployment",
    "Namespace": "V1Namespace", "NetworkPolicy": "V1NetworkPolicy",
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "PodDisruptionBudget": "V1PodDisruptionBudget", "Role": "V1Role",
    "RoleBinding": "V1RoleBinding", "Service": "V1Service",
    "ServiceAccount": "V1ServiceAccount"}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float)}
# Newer than the models: kind of the model, field.
NEWER = {("V1Container", "restartPolicy"): "str"}


def faults(obj):
    """What is wrong with it, in words; []: nothing."""
    return list(of_type(MODELS[obj["kind"]], obj, obj["kind"]))


def of_type(kind, value, where):
    if match := re.fullmatch(r"list\[(.*)\]", kind):
        if not isinstance(value, list):
            yield f"{where}: no list"
            return
        for i, item in enumerate(value):
            yield from of_type(match[1], item, f"{where}[{i}]")
    elif match := re.fullmatch(r"dict\((.*), (.*)\)", kind):
        if not isinstance(value, dict):
            yield f"{where}: no map"
            return
        for key, item in value.items():
            yield from of_type(match[2], item, f"{where}.{key}")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (
                isinstance(value, bool) and kind != "bool"):
            yield f"{where}: {value!r} is no {kind}"
    elif hasattr(client, kind):
        yield from of_model(kind, value, where)
    else:  # object: such as a port, by number or name
        assert kind in ("object", "datetime"), kind


def of_model(kind, value, where):
    model = getattr(client, kind)
    if not isinstance(value, dict):
        yield f"{where}: {value!r} is no {kind}"
        return
    known = {name: model.openapi_types[own]
             for own, name in model.attribute_map.items()}
    for key, item in value.items():
        place = f"{where}.{key}"
        if (kind, key) in NEWER:
            yield from of_type(NEWER[kind, key], item, place)
        elif key not in known:
            yield f"{place}: no such field"
        else:
            yield from of_type(known[key], item, place)
