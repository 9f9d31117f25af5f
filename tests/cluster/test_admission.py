"""What is refused when an object is made, in the words of the real server."""
import json

import pytest

from .bodies import PROFILE, container, pod

LABEL = "pod-security.kubernetes.io/enforce"
NUMBER = {"n": 0}


@pytest.fixture(autouse=True)
def held(cluster):
    cluster.faults.hold_pods()


@pytest.fixture
def space(cluster):
    """A namespace of the test's own."""
    NUMBER["n"] += 1
    name = f"space-{NUMBER['n']}"
    status, said = cluster.ask("POST", "/api/v1/namespaces", {
        "metadata": {"name": name}})
    assert status == 201, said
    yield Space(cluster, name)
    cluster.ask("DELETE", f"/api/v1/namespaces/{name}")


class Space:
    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name

    def make(self, plural, body, group="/api/v1", query=""):
        return self.cluster.ask(
            "POST", f"{group}/namespaces/{self.name}/{plural}{query}", body)

    def made(self, plural, body, group="/api/v1"):
        status, said = self.make(plural, body, group)
        assert status == 201, said
        return said


def sized(image, **resources):
    return container(image, resources=resources)


def test_an_unknown_field_is_refused_warned_of_or_dropped(cluster, pods):
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    body = pod("unknown", container("x", bogus=1, securityContext={
        "readonlyRootFilesystem": True}))
    status, said = pods.ask("POST", "?fieldValidation=Strict", body)
    assert (status, said["reason"]) == (400, "BadRequest")
    assert said["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding '
        'error: unknown field "spec.containers[0].bogus", unknown field '
        '"spec.containers[0].securityContext.readonlyRootFilesystem"')
    for mode in ("Warn", "Ignore"):
        status, headers, data = cluster.exchange(
            "POST", f"{path}?dryRun=All&fieldValidation={mode}", body)
        assert status == 201
        assert "bogus" not in json.loads(data)["spec"]["containers"][0]
        assert ('299 - "unknown field \\"spec.containers[0].bogus\\""' in
                headers.get("Warning", "")) == (mode == "Warn")
    assert pods.ask("GET", "/unknown")[0] == 404


@pytest.mark.parametrize("body, status, words", [
    ('{"apiVersion":"v1","kind":"Pod",', 400,
     "the object provided is unrecognized (must be of type Pod): couldn't get "
     "version/kind; json parse error: unexpected end of JSON input "
     '({"apiVersion":"v1","kind":"Pod ...)'),
    ({"metadata": {"name": "a"}, "spec": {"containers": "x"}}, 400,
     'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal '
     "string into Go struct field PodSpec.spec.containers of type"),
    (pod("Bad_Name", container("")), 422, 'Pod "Bad_Name" is invalid: ['
     'metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 '
     "subdomain must consist of"),
    (pod("a", container("x"), labels={"app": "a" * 64}), 422,
     'Pod "a" is invalid: metadata.labels: Invalid value: "' + "a" * 64 +
     '": must be no more than 63 bytes'),
    (pod("a", container("x", name="a" * 64)), 422,
     'Pod "a" is invalid: spec.containers[0].name: Invalid value: '),
    (pod("a", container("x", volumeMounts=[
        {"name": "v", "mountPath": "/v"}])), 422, 'Pod "a" is invalid: '
     'spec.containers[0].volumeMounts[0].name: Not found: "v"')])
def test_what_is_no_pod_is_said_to_be_none(pods, body, status, words):
    code, said = pods.ask("POST", "", body)
    assert (code, said["code"]) == (status, status), said
    assert said["message"].startswith(words)


def test_all_that_is_wrong_is_said_at_once(pods):
    status, said = pods.ask("POST", "", pod("a", container(
        "", resources={"limits": {"memory": "1Mi"}, "requests": {
            "memory": "2Mi"}}), restartPolicy="Sometimes"))
    assert (status, said["reason"]) == (422, "Invalid")
    assert [(c["field"], c["reason"]) for c in said["details"]["causes"]] == [
        ("spec.containers[0].image", "FieldValueRequired"),
        ("spec.containers[0].resources.requests", "FieldValueInvalid"),
        ("spec.restartPolicy", "FieldValueNotSupported")]
    assert "spec.containers[0].resources.requests: Invalid value: \"2Mi\": " \
        "must be less than or equal to memory limit of 1Mi" in said["message"]


def test_a_name_is_taken_until_its_pod_is_gone(cluster, pods):
    cluster.faults.release_pods()
    pods.running("taken")
    status, said = pods.create("taken")
    assert (status, said["reason"], said["message"]) == (
        409, "AlreadyExists", 'pods "taken" already exists')
    assert pods.ask("DELETE", "/taken", {
        "gracePeriodSeconds": 600})[0] == 200
    status, said = pods.create("taken")
    assert (status, said["reason"], said["message"]) == (
        409, "AlreadyExists",
        'object is being deleted: pods "taken" already exists')


def test_a_generated_name_has_five_letters_and_a_given_one_wins(pods):
    body = pod("given", container("x"))
    body["metadata"]["generateName"] = "sbx-"
    assert pods.ask("POST", "", body)[1]["metadata"]["name"] == "given"
    del body["metadata"]["name"]
    name = pods.ask("POST", "", body)[1]["metadata"]["name"]
    assert name.startswith("sbx-") and len(name) == 9


def test_a_long_name_is_warned_of(cluster):
    path = f"/api/v1/namespaces/{cluster.namespace}/pods?dryRun=All"
    status, headers, _ = cluster.exchange("POST", path, pod(
        "a" * 64, container("x")))
    assert status == 201
    assert "metadata.name: this is used in the Pod's hostname" in \
        headers["Warning"]
    assert cluster.ask("POST", path, pod("a" * 254, container("x")))[0] == 422


def test_what_is_not_said_is_filled_in(pods):
    made = pods.made("filled", container={"resources": {
        "limits": {"cpu": "500m", "memory": "128Mi"}}})
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    spec = made["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {
        "cpu": "500m", "memory": "128Mi"}
    assert [t["key"] for t in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    assert (spec["serviceAccount"], spec["dnsPolicy"], spec["priority"]) == \
        ("default", "ClusterFirst", 0)


@pytest.mark.parametrize("field, words", [
    ({"runtimeClassName": "gvisor"},
     'pod rejected: RuntimeClass "gvisor" not found'),
    ({"priorityClassName": "nope"},
     "no PriorityClass with name nope was found"),
    ({"serviceAccountName": "nope"}, "error looking up service account "
     'sbx/nope: serviceaccount "nope" not found')])
def test_what_is_named_has_to_be_there(pods, field, words):
    status, said = pods.create("named", **field)
    assert (status, said["reason"]) == (403, "Forbidden")
    assert said["message"] == f'pods "named" is forbidden: {words}'


def test_a_runtime_class_that_is_there_is_taken(cluster, pods):
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    assert cluster.ask("POST", path, {
        "metadata": {"name": "gvisor"}, "handler": "runsc"})[0] == 201
    pods.made("classy", runtimeClassName="gvisor")
    assert cluster.ask("DELETE", f"{path}/gvisor")[0] == 200


@pytest.mark.parametrize("level, spec, words", [
    ("restricted", {}, 'allowPrivilegeEscalation != false (container "main" '
     "must set securityContext.allowPrivilegeEscalation=false), unrestricted "
     'capabilities (container "main" must set securityContext.capabilities.'
     'drop=["ALL"]), runAsNonRoot != true (pod or container "main" must set '
     "securityContext.runAsNonRoot=true), seccompProfile (pod or container "
     '"main" must set securityContext.seccompProfile.type to '
     '"RuntimeDefault" or "Localhost")'),
    ("restricted", {"securityContext": PROFILE | {"runAsUser": 0}},
     'runAsUser=0 (container "main" must not set runAsUser=0)'),
    ("baseline", {"securityContext": {"privileged": True}},
     'privileged (container "main" must not set '
     "securityContext.privileged=true)"),
    ("baseline", {"securityContext": {"capabilities": {"add": [
        "SYS_ADMIN"]}}}, 'non-default capabilities (container "main" must '
     'not include "SYS_ADMIN" in securityContext.capabilities.add)'),
    ("restricted", {"securityContext": PROFILE}, None),
    ("baseline", {}, None)])
def test_the_label_of_a_namespace_is_enforced(space, level, spec, words):
    space.cluster.ask(
        "PATCH", f"/api/v1/namespaces/{space.name}",
        {"metadata": {"labels": {LABEL: level}}},
        Content_Type="application/merge-patch+json")
    status, said = space.make("pods", pod("a", container("x", **spec)))
    assert status == (403 if words else 201), said
    if words:
        assert said["message"] == 'pods "a" is forbidden: violates ' \
            f'PodSecurity "{level}:latest": {words}'


# ---- quota

def test_a_quota_counts_pods_and_wants_limits_said(space, image):
    space.made("resourcequotas", {"metadata": {"name": "q"}, "spec": {
        "hard": {"pods": "1", "limits.memory": "256Mi"}}})
    status, said = space.make("pods", pod("c", container("x")))
    assert (status, said["message"]) == (
        403, 'pods "c" is forbidden: failed quota: q: must specify '
        "limits.memory for: main")
    space.made("pods", pod("a", sized("x", limits={"memory": "128Mi"})))
    status, said = space.make("pods", pod("b", sized("x", limits={
        "memory": "192Mi"})))
    assert (status, said["message"]) == (
        403, 'pods "b" is forbidden: exceeded quota: q, requested: '
        "limits.memory=192Mi,pods=1, used: limits.memory=128Mi,pods=1, "
        "limited: limits.memory=256Mi,pods=1")
    status, said = space.cluster.ask(
        "GET", f"/api/v1/namespaces/{space.name}/resourcequotas/q")
    assert said["status"]["used"] == {"pods": "1", "limits.memory": "128Mi"}


def test_a_range_fills_and_bounds(space):
    space.made("limitranges", {"metadata": {"name": "r"}, "spec": {
        "limits": [{"type": "Container", "default": {"memory": "64Mi"},
                    "max": {"memory": "128Mi"}, "min": {"memory": "8Mi"}}]}})
    made = space.made("pods", pod("filled", container("x")))
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"memory": "64Mi"}, "requests": {"memory": "64Mi"}}
    status, said = space.make("pods", pod("large", sized("x", limits={
        "memory": "1Gi"})))
    assert (status, said["message"]) == (
        403, 'pods "large" is forbidden: maximum memory usage per Container '
        "is 128Mi, but limit is 1Gi")


# ---- the request itself

def test_types_of_bodies_and_methods(cluster, pods):
    status, said = pods.ask("POST", "", "hello", Content_Type="text/plain")
    assert (status, said["reason"]) == (415, "UnsupportedMediaType")
    status, said = pods.ask("POST", "/x", pod("x", container("x")))
    assert (status, said["reason"]) == (405, "MethodNotAllowed")
    status, said = cluster.ask("GET", "/apis/nonesuch/v1/things")
    assert (status, said) == (404, "404 page not found\n")


def test_no_namespace_no_pod(cluster):
    status, said = cluster.ask("POST", "/api/v1/namespaces/nonesuch/pods",
                               pod("a", container("x")))
    assert (status, said["message"]) == (
        404, 'namespaces "nonesuch" not found')


def test_a_patch_changes_metadata_and_no_spec(pods):
    made = pods.made("patched")
    status, said = pods.ask(
        "PATCH", "/patched", {"metadata": {"annotations": {"a": "b"},
                                           "labels": {"app": None}}},
        Content_Type="application/strategic-merge-patch+json")
    assert status == 200
    assert said["metadata"]["annotations"] == {"a": "b"}
    assert "labels" not in said["metadata"]
    assert said["metadata"]["resourceVersion"] > \
        made["metadata"]["resourceVersion"]
    status, said = pods.ask(
        "PATCH", "/patched", {"spec": {"containers": [
            {"name": "main", "command": ["x"]}]}},
        Content_Type="application/strategic-merge-patch+json")
    assert (status, said["reason"]) == (422, "Invalid")
    assert "pod updates may not change fields other than" in said["message"]
    status, said = pods.ask(
        "PATCH", "/patched", {"metadata": {"resourceVersion": "1"}},
        Content_Type="application/merge-patch+json")
    assert (status, said["message"]) == (
        409, 'Operation cannot be fulfilled on pods "patched": the object '
        "has been modified; please apply your changes to the latest version "
        "and try again")


def test_pods_of_a_label_are_deleted_together(cluster, pods):
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        pods.made(name, labels={"app": app})
    status, said = pods.ask("DELETE", "?labelSelector=app%3Dx")
    assert (status, said["message"]) == (
        403, 'pods is forbidden: User "system:serviceaccount:sbx:runner" '
        'cannot deletecollection resource "pods" in API group "" in the '
        'namespace "sbx"')
    status, said = pods.ask(
        "DELETE", "?labelSelector=app%3Dx", {"gracePeriodSeconds": 0},
        token=cluster.admin_token())
    assert status == 200
    assert [p["metadata"]["name"] for p in said["items"]] == ["a", "c"]
    left = pods.ask("GET")[1]["items"]
    assert [p["metadata"]["name"] for p in left] == ["b"]
