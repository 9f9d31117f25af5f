"""Objects as they are sent: one, or a list in pieces."""
import base64
import json

from . import selecting
from .answers import Refusal, bad_request, gone, too_large_version

TOO_OLD = "The provided continue parameter is too old to display a " \
    "consistent list result. You can start a new list without the continue " \
    "parameter, or use the continue token in this response to retrieve the " \
    "remainder of the results. Continuing with the provided token results " \
    "in an inconsistent list."
METADATA_ONLY = "as=PartialObjectMetadata"


def check_version(store, request, is_list):
    """A resourceVersion that was asked for."""
    text = request.param("resourceVersion")
    if not text:
        return
    if not text.isdigit():
        raise bad_request(f'Invalid value: "{text}": must be a number')
    version = int(text)
    if version > store.version:
        raise too_large_version(version, store.version)
    if is_list and request.param("resourceVersionMatch") == "Exact" and \
            version < max(store.forgotten, 1):
        raise gone("The resourceVersion for the provided list is too old.")


def bare(obj):
    """An item of a list does not say what it is."""
    return {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}


def key_of(obj):
    meta = obj["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


def listed(store, request, resource, namespace):
    check_version(store, request, is_list=True)
    chosen = selecting.of_query(resource.plural, request)
    found = [o for o in store.all(resource.plural, namespace) if chosen(o)]
    version, start = store.version, ""
    if request.param("continue"):
        version, start = read_token(request.param("continue"))
        if version < store.forgotten:
            raise gone(TOO_OLD)
    found = [o for o in found if key_of(o) > start]
    limit = int(request.param("limit", "0") or 0)
    metadata = {"resourceVersion": str(version)}
    if 0 < limit < len(found):
        metadata["continue"] = token(version, key_of(found[limit - 1]))
        if not (request.param("labelSelector") or
                request.param("fieldSelector")):
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return {"kind": resource.kind + "List", "apiVersion":
            resource.api_version, "metadata": metadata,
            "items": [bare(o) for o in found]}


def token(version, start):
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_token(text):
    try:
        padded = text + "=" * (-len(text) % 4)
        said = json.loads(base64.urlsafe_b64decode(padded))
        return said["rv"], said["start"]
    except (ValueError, KeyError, TypeError):
        raise bad_request(
            "invalid continue token: continue key is not valid: invalid "
            "character 'i' looking for beginning of value") from None


def check_accept(request):
    accept = request.word("accept")
    if accept and not any(
            word in accept for word in ("json", "yaml", "*/*", "protobuf",
                                        "application/*")):
        raise Refusal(
            406, "NotAcceptable", "406: Not Acceptable\n\nAvailable "
            "representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf", {})


async def send(request, obj):
    check_accept(request)
    if METADATA_ONLY in request.word("accept"):
        obj = metadata_of(obj)
    await request.json(200, obj)


def metadata_of(obj):
    if "items" in obj:
        return obj | {"kind": "PartialObjectMetadataList", "apiVersion":
                      "meta.k8s.io/v1",
                      "items": [metadata_of(i) for i in obj["items"]]}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"]}
