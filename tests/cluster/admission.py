"""What becomes of a new object before it is stored."""
import secrets

from . import checks, defaults, security, statuses
from .answers import bad_request, forbidden, not_found
from .quota import CLAIMS
from .resources import BY_PLURAL, PODS

LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def admit(cluster, request, place, obj):
    """The object with all that it did not say; Refusal where it may not
    be."""
    meta = obj["metadata"]
    if meta.get("namespace", place.namespace) != place.namespace:
        raise bad_request("the namespace of the provided object does not "
                          "match the namespace sent on the request")
    if place.resource.is_namespaced:
        check_namespace(cluster, place, meta.get("name"))
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + "".join(
            secrets.choice(LETTERS) for _ in range(5))
    if place.resource is PODS:
        return admit_pod(cluster, request, place, obj)
    checks.check_metadata(place.resource, meta)
    check = checks.OF_KIND.get(place.resource.plural)
    if check:
        check(place.resource, obj)
    if place.resource is CLAIMS and not request.param("dryRun"):
        meta["namespace"] = place.namespace
        cluster.quota.check_claim(obj)
    return cluster.completed(place.resource.plural, obj)


def check_namespace(cluster, place, name):
    found = cluster.store.get("namespaces", None, place.namespace)
    if found is None:
        raise not_found(BY_PLURAL["namespaces"], place.namespace)
    if "deletionTimestamp" in found["metadata"]:
        raise forbidden(place.resource, name, "unable to create new content "
                        f"in namespace {place.namespace} because it is being "
                        "terminated")


def admit_pod(cluster, request, place, pod):
    spec, name = pod.setdefault("spec", {}), pod["metadata"].get("name", "")
    defaults.fill(spec)
    check_classes(cluster, place, name, spec)
    cluster.quota.fill(place.namespace, spec)
    checks.check_pod(request, pod)
    labels = cluster.store.get("namespaces", None, place.namespace)[
        "metadata"].get("labels", {})
    security.check(request, labels, pod)
    pod["status"] = {"phase": "Pending", "qosClass": statuses.quality(spec)}
    pod["metadata"]["namespace"] = place.namespace
    cluster.quota.check_ranges(pod)
    if not request.param("dryRun"):
        cluster.quota.check(pod)
    return pod


def check_classes(cluster, place, name, spec):
    account = spec["serviceAccountName"]
    if cluster.store.get("serviceaccounts", place.namespace, account) is None:
        raise forbidden(
            PODS, name, "error looking up service account "
            f'{place.namespace}/{account}: serviceaccount "{account}" not '
            "found")
    runtime = spec.get("runtimeClassName")
    if runtime and cluster.store.get("runtimeclasses", None, runtime) is None:
        raise forbidden(PODS, name, "pod rejected: RuntimeClass "
                        f'"{runtime}" not found')
    priority = spec.get("priorityClassName")
    if priority:
        found = cluster.store.get("priorityclasses", None, priority)
        if found is None:
            raise forbidden(PODS, name, "no PriorityClass with name "
                            f"{priority} was found")
        spec["priority"] = found["value"]
