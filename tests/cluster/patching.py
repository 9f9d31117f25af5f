"""Patches and updates: what they make of an object, and what they may."""
import copy
import json

from . import schema
from .answers import (
    Refusal, bad_request, conflict, invalid, unsupported_media)

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATCHES = ("application/json-patch+json", MERGE, STRATEGIC)
# Lists of which a patch names the one it means.
KEYS = {"containers": "name", "initContainers": "name", "volumes": "name",
        "env": "name", "volumeMounts": "mountPath", "ports": "containerPort",
        "conditions": "type", "tolerations": None}
MAY_CHANGE = "spec: Forbidden: pod updates may not change fields other than " \
    "`spec.containers[*].image`,`spec.initContainers[*].image`," \
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to " \
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it " \
    "to be set to 1 if it was previously negative)"

CLAIM_MAY_CHANGE = "Forbidden: spec is immutable after creation except " \
    "resources.requests and volumeAttributesClassName for bound claims"


def patched(request, resource, old):
    kind = request.word("content-type").partition(";")[0].strip()
    if kind not in PATCHES:
        raise unsupported_media(PATCHES)
    try:
        patch = json.loads(request.body)
    except ValueError:
        raise bad_request("error decoding patch: unexpected end of JSON "
                          "input") from None
    new = copy.deepcopy(old)
    if kind == PATCHES[0]:
        by_operations(new, patch)
    else:
        merge(new, patch, kind == STRATEGIC)
    return schema.known(request, resource, new)


def merge(into, patch, is_strategic):
    for key, value in patch.items():
        if key == "$setElementOrder" or key.startswith("$setElementOrder/"):
            continue
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value, is_strategic)
        elif isinstance(value, list) and is_strategic and KEYS.get(key):
            into[key] = merged_list(into.get(key) or [], value, KEYS[key])
        else:
            into[key] = value


def merged_list(old, patch, key):
    out = copy.deepcopy(old)
    for item in patch:
        at = next((i for i, one in enumerate(out)
                   if one.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del out[at]
        elif at is None:
            out.append(item)
        else:
            merge(out[at], item, True)
    return out


def by_operations(obj, operations):
    for one in operations:
        words = [w.replace("~1", "/").replace("~0", "~")
                 for w in one["path"].split("/")[1:]]
        at = obj
        for word in words[:-1]:
            at = at[int(word)] if isinstance(at, list) else \
                at.setdefault(word, {})
        word = words[-1]
        if one["op"] == "remove":
            if word not in at:
                raise Refusal(422, "Invalid", "the server rejected our "
                              "request due to an error in our request", {})
            del at[word]
        elif one["op"] == "test":
            if at.get(word) != one["value"]:
                raise Refusal(422, "Invalid", "the server rejected our "
                              "request due to an error in our request", {})
        elif isinstance(at, list):
            at.insert(len(at) if word == "-" else int(word), one["value"])
        else:
            at[word] = one["value"]


def check(resource, old, new):
    """That it may become this."""
    was, wanted = old["metadata"], new["metadata"]
    if wanted.get("resourceVersion") not in (None, "",
                                             was["resourceVersion"]):
        raise conflict(resource.qualified, was["name"],
                       "the object has been modified; please apply your "
                       "changes to the latest version and try again")
    if wanted.get("uid") not in (None, "", was["uid"]):
        raise conflict(resource.qualified, was["name"], "Precondition failed: "
                       f"UID in precondition: {wanted['uid']}, UID in object "
                       f"meta: {was['uid']}")
    if wanted.get("name") != was["name"]:
        raise bad_request(f"the name of the object ({wanted.get('name')}) "
                          f"does not match the name on the URL "
                          f"({was['name']})")
    if resource.plural == "persistentvolumeclaims" and \
            fixed(old["spec"]) != fixed(new["spec"]):
        raise invalid(resource, was["name"], [
            ("spec", "FieldValueForbidden", CLAIM_MAY_CHANGE)])
    if resource.plural == "pods" and \
            unchangeable(old["spec"]) != unchangeable(new["spec"]):
        raise invalid(resource, was["name"], [
            ("spec", "FieldValueForbidden", MAY_CHANGE.partition(": ")[2])])


def fixed(claim_spec):
    """What a claim keeps; its size may grow."""
    rest = {k: v for k, v in claim_spec.items()
            if k != "volumeAttributesClassName"}
    resources = rest.pop("resources", {})
    return rest | {"limits": resources.get("limits")}


def unchangeable(spec):
    out = {k: v for k, v in spec.items() if k not in (
        "activeDeadlineSeconds", "tolerations",
        "terminationGracePeriodSeconds")}
    for key in ("containers", "initContainers"):
        if key in out:
            out[key] = [{k: v for k, v in c.items() if k != "image"}
                        for c in out[key]]
    return out
