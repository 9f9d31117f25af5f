"""What is no object: version, health, and which resources there are."""
import json
import platform

from . import resources

MINOR = 36
OPENAPI = "/openapi/v3"
VALIDATION = {"name": "fieldValidation", "in": "query",
              "schema": {"type": "string"}}


def version(minor):
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(
        platform.machine(), platform.machine())
    return {
        "major": "1", "minor": str(minor), "emulationMajor": "1",
        "emulationMinor": str(minor), "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(minor - 1),
        "gitVersion": f"v1.{minor}.2",
        "gitCommit": "98b35193b2ac7a23a673325f5e9b830ecd5ba406",
        "gitTreeState": "clean", "buildDate": "2026-08-21T00:00:00Z",
        "goVersion": "go1.26.10", "compiler": "gc",
        "platform": f"linux/{arch}"}


def openapi_index():
    return {"paths": {
        path: {"serverRelativeURL": f"{OPENAPI}/{path}?hash=1"}
        for path in ["api/v1", *(f"apis/{g}/{v}" for g, versions in
                                 resources.groups().items()
                                 for v in versions)]}}


def openapi(group, group_version):
    """As much as kubectl looks for: that fields are validated here."""
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes",
                                         "version": "v1"}, "paths": {
        f"/{r.plural}/{{name}}": {"patch": {
            "parameters": [VALIDATION],
            "x-kubernetes-group-version-kind": {
                "group": r.group, "version": r.version, "kind": r.kind}}}
        for r in resources.TABLE if (r.group, r.version) ==
        (group, group_version)}}


def described(path):
    """Of paths of API groups; None where there is none."""
    words = path.strip("/").split("/")
    if words == ["api"]:
        return resources.versions_of_core()
    if words == ["apis"]:
        return resources.group_list()
    if words[0] == "api" and len(words) == 2:
        return resources.resource_list("", words[1])
    if words[0] == "apis" and len(words) == 3:
        return resources.resource_list(*words[1:])
    if path == OPENAPI:
        return openapi_index()
    if path == f"{OPENAPI}/api/v1":
        return openapi("", "v1")
    if path.startswith(f"{OPENAPI}/apis/") and len(words) == 5:
        return openapi(*words[3:])
    return None


def answer(cluster, request):
    """An awaitable, or None for a path that is not served."""
    path = request.path.rstrip("/")
    if path in ("/healthz", "/livez", "/readyz"):
        return request.text(200, "ok")
    if path == "/version":
        text = json.dumps(version(cluster.minor), indent=2)
        return request.answer(200, text.encode())
    found = described(path)
    return None if found is None else request.json(200, found)
