"""PersistentVolumeClaims, by kubectl: bound at once, protected while a Pod has
them, and changed with the version that was seen."""
import json

import pytest

from .bodies import PROFILE
from .peer import wait_for

CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
         "metadata": {"name": "one", "labels": {"app": "sbx"}},
         "spec": {"accessModes": ["ReadWriteOnce"],
                  "storageClassName": "standard",
                  "resources": {"requests": {"storage": "5242880"}}}}
VOLUME = {"container": {"volumeMounts": [
    {"name": "kept", "mountPath": "/kept"}], "securityContext": PROFILE},
    "volumes": [{"name": "kept", "persistentVolumeClaim": {
        "claimName": "one"}}]}


def is_gone(kubectl):
    return kubectl("get", "pvc", "-o", "name") == ""


@pytest.fixture
def claim(kubectl):
    """What kubectl shows of the only one."""
    kubectl("create", "-f", "-", input=json.dumps(CLAIM))
    yield lambda: json.loads(kubectl("get", "pvc", "one", "-o", "json"))
    kubectl("delete", "pod/user", "pvc/one", "--ignore-not-found",
            "--wait=false", "--grace-period=1")
    wait_for(lambda: is_gone(kubectl), "the claim's end")


def test_one_is_bound_and_protected_at_once(kubectl, claim):
    kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/one",
            "--timeout=60s")
    found = claim()
    assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert found["spec"]["volumeName"] == f"pvc-{found['metadata']['uid']}"
    assert kubectl("get", "pvc", "-l", "app=sbx", "-o", "name") == \
        "persistentvolumeclaim/one\n"


def test_a_name_that_is_taken_says_whether_it_goes(kubectl, claim, pods):
    again = kubectl.run("create", "-f", "-", input=json.dumps(CLAIM))
    assert '(AlreadyExists): ' in again.stderr
    assert 'persistentvolumeclaims "one" already exists' in again.stderr
    pods.running("user", **VOLUME)
    kubectl("delete", "pvc", "one", "--wait=false")
    again = kubectl.run("create", "-f", "-", input=json.dumps(CLAIM))
    assert "object is being deleted: persistentvolumeclaims" in again.stderr


def test_one_that_a_pod_has_goes_with_the_pod(kubectl, claim, pods):
    pods.running("user", **VOLUME)
    kubectl("delete", "pvc", "one", "--wait=false")
    assert "deletionTimestamp" in claim()["metadata"]
    kubectl("delete", "pod", "user", "--grace-period=1")
    wait_for(lambda: is_gone(kubectl), "the claim's end")


def test_a_patch_changes_what_was_seen_and_nothing_later(kubectl, claim):
    old = claim()["metadata"]["resourceVersion"]

    def patch(**metadata):
        return kubectl.run("patch", "pvc", "one", "--type=merge", "-p",
                           json.dumps({"metadata": metadata}))

    assert patch(annotations={"since": "1"}).returncode == 0
    late = patch(annotations={"since": "2"}, resourceVersion=old)
    assert "the object has been modified" in late.stderr
    assert claim()["metadata"]["annotations"] == {"since": "1"}
    assert patch(annotations={"since": None}).returncode == 0
    assert "annotations" not in claim()["metadata"]


def test_its_spec_stays(kubectl, claim):
    said = kubectl.run("patch", "pvc", "one", "--type=merge", "-p",
                       '{"spec": {"storageClassName": "other"}}')
    assert "spec is immutable after creation except" in said.stderr
    assert claim()["spec"]["storageClassName"] == "standard"


def test_a_removal_that_names_another_version_is_refused(cluster, claim):
    status, said = cluster.ask(
        "DELETE", f"/api/v1/namespaces/{cluster.namespace}"
        "/persistentvolumeclaims/one", {
            "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {
                "uid": claim()["metadata"]["uid"], "resourceVersion": "1"}})
    assert (status, said["reason"]) == (409, "Conflict")
    assert "deletionTimestamp" not in claim()["metadata"]


@pytest.mark.parametrize("hard", [{"persistentvolumeclaims": "0"},
                                  {"requests.storage": "1Mi"}])
def test_a_quota_of_claims_is_kept(cluster, kubectl, hard):
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    assert cluster.ask("POST", path, {
        "metadata": {"name": "few"}, "spec": {"hard": hard}})[0] == 201
    try:
        said = kubectl.run("create", "-f", "-", input=json.dumps(CLAIM))
        assert "exceeded quota: few, requested: " in said.stderr
    finally:
        cluster.ask("DELETE", f"{path}/few")
