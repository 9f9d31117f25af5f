"""Pods, which are containers: what they get, how they begin and how they
end."""
import json

import pytest

from .bodies import PROFILE, container
from .peer import executing, wait_for


def inspected(engine, cluster, pod, name=None):
    found = cluster.faults.container(pod=pod, name=name)
    status, said = engine.request("GET", f"/containers/{found}/json")
    assert status == 200, said
    return json.loads(said)


def output(cluster, pod, *command, **kwargs):
    """Of a command there, and its status."""
    with executing(cluster, pod, *command, **kwargs) as peer:
        frames = peer.frames()
    text = b"".join(d[1:] for _, d in frames if d[:1] in (b"\x01", b"\x02"))
    return text.decode(), json.loads(frames[-2][1][1:])["status"]


def test_init_containers_run_first_and_share_what_they_leave(
        cluster, pods, image):
    """In a tmpfs with its size, which nobody else holds between them, and in
    a directory."""
    mounts = [{"name": n, "mountPath": f"/{n}"} for n in ("memory", "disk")]
    pod = pods.running("init", initContainers=[
        container(image, "sh", "-c", f"echo {n} >/{n}/left", name=n,
                  volumeMounts=mounts) for n in ("memory", "disk")],
        container={"volumeMounts": mounts}, volumes=[
            {"name": "memory", "emptyDir": {"medium": "Memory",
                                            "sizeLimit": "1Mi"}},
            {"name": "disk", "emptyDir": {}}])
    text, status = output(cluster, "init", "cat", "/memory/left",
                          "/disk/left")
    assert text == "memory\ndisk\n"
    text, status = output(cluster, "init", "dd", "if=/dev/zero",
                          "of=/memory/large", "bs=1M", "count=2")
    assert "No space left on device" in text and status == "Failure"
    ends = [s["state"]["terminated"] for s in
            pod["status"]["initContainerStatuses"]]
    assert [(e["exitCode"], e["reason"]) for e in ends] == \
        [(0, "Completed")] * 2
    assert [s["ready"] for s in pod["status"]["initContainerStatuses"]] == \
        [True, True]


def test_an_init_container_that_fails_fails_the_pod(pods, image):
    pods.made("bad-init", initContainers=[
        container(image, "sh", "-c", "exit 1", name="first")])
    status = pods.ended("bad-init")
    assert status["phase"] == "Failed"
    assert status["initContainerStatuses"][0]["state"]["terminated"][
        "exitCode"] == 1
    assert status["containerStatuses"][0]["state"] == {
        "waiting": {"reason": "PodInitializing"}}
    assert [c["reason"] for c in status["conditions"]
            if c["type"] == "Initialized"] == ["ContainersNotInitialized"]


def test_containers_of_a_pod_share_network_and_address(
        cluster, pods, image, engine):
    body = pods.running("two", "sh", "-c", "sleep 600")
    assert body["status"]["podIP"]
    status, said = pods.ask("POST", "", {
        "metadata": {"name": "pair"}, "spec": {
            "restartPolicy": "Never", "containers": [
                container(image, name="main"),
                container(image, name="other")]}})
    assert status == 201, said
    wait_for(lambda: pods.phase("pair") == "Running", "the pair")
    modes = {inspected(engine, cluster, "pair", n)["HostConfig"]["NetworkMode"]
             for n in ("main", "other")}
    assert len(modes) == 1 and modes.pop().startswith("container:")
    with executing(cluster, "pair", "true", container="") as peer:
        assert peer.status == 400
        assert b"a container name must be specified for pod pair, choose " \
            b"one of: [main other]" in peer.body


def test_a_security_context_is_that_of_the_container(cluster, pods, engine):
    pods.running("secure", container={
        "securityContext": PROFILE | {
            "readOnlyRootFilesystem": True, "runAsGroup": 1001,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
        "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}},
        securityContext={"fsGroup": 2000, "supplementalGroups": [2001]})
    host = inspected(engine, cluster, "secure")["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["CapDrop"], host["CapAdd"]) == (
        ["ALL"], ["NET_BIND_SERVICE"])
    assert (host["Memory"], host["CpuQuota"], host["CpuPeriod"]) == (
        64 << 20, 50000, 100000)
    text, _ = output(cluster, "secure", "grep", "-E",
                     "^(Uid|Gid|Groups|NoNewPrivs|Seccomp):",
                     "/proc/self/status")
    said = dict(line.split(":", 1) for line in text.splitlines())
    assert said["Uid"].split()[0] == "1000"
    assert said["Gid"].split()[0] == "1001"
    assert set(said["Groups"].split()) >= {"2000", "2001"}
    assert (said["NoNewPrivs"].strip(), said["Seccomp"].strip()) == ("1", "2")


def test_without_a_word_a_container_has_no_filter(cluster, pods):
    pods.running("open")
    text, _ = output(cluster, "open", "grep", "Seccomp:", "/proc/self/status")
    assert text.split() == ["Seccomp:", "0"]


def test_an_environment_and_a_place(cluster, pods):
    pods.running("env", container={
        "args": ["600"], "command": ["sleep"], "workingDir": "/tmp", "env": [
            {"name": "A", "value": "b"}, {"name": "C", "value": "$(A)-$$(A)"},
            {"name": "ME", "valueFrom": {"fieldRef": {
                "fieldPath": "metadata.name"}}}]})
    text, _ = output(cluster, "env", "sh", "-c",
                     'echo "$A $C $ME $PWD $HOSTNAME" '
                     '"${KUBERNETES_SERVICE_HOST:-nobody}"')
    assert text == "b b-$(A) env /tmp env 127.0.0.1\n"


def test_all_may_write_to_an_empty_directory(cluster, pods):
    pods.running("write", container={
        "securityContext": PROFILE, "volumeMounts": [
            {"name": "work", "mountPath": "/kept"}]},
        volumes=[{"name": "work", "emptyDir": {}}])
    assert output(cluster, "write", "sh", "-c",
                  "echo here >/kept/it && cat /kept/it") == \
        ("here\n", "Success")


# ---- ends

@pytest.mark.parametrize("command, phase, code, reason", [
    ("exit 0", "Succeeded", 0, "Completed"), ("exit 3", "Failed", 3, "Error")])
def test_an_end_is_told_in_the_status(pods, command, phase, code, reason):
    pods.made("end", "sh", "-c", command)
    status = pods.ended("end")
    end = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], end["exitCode"], end["reason"]) == \
        (phase, code, reason)
    word = "PodCompleted" if code == 0 else "PodFailed"
    assert {c["type"]: c.get("reason") for c in status["conditions"]
            if c["status"] == "False"} == {
        "PodReadyToStartContainers": None, "Ready": word,
        "ContainersReady": word}


def test_a_program_that_is_not_there_is_a_start_error(pods):
    pods.made("startless", "/no/such")
    status = pods.ended("startless")
    end = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], end["exitCode"], end["reason"]) == \
        ("Failed", 128, "StartError")
    assert "no such file or directory" in end["message"]


def test_what_takes_too_much_memory_is_killed(pods):
    pods.made("greedy", "sh", "-c", "dd if=/dev/zero of=/dev/null bs=256M",
              container={"resources": {"limits": {"memory": "16Mi"}}})
    end = pods.ended("greedy")["containerStatuses"][0]["state"]["terminated"]
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)


def test_a_deadline_ends_a_pod(pods):
    pods.made("deadline", activeDeadlineSeconds=1)
    status = pods.ended("deadline")
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed", "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline")


def test_a_container_that_is_to_go_on_begins_again(pods):
    pods.made("again", "sh", "-c", "exit 1", restartPolicy="OnFailure")
    wait_for(lambda: pods.state("again").get("waiting", {}).get("reason") ==
             "CrashLoopBackOff", "a crash loop")
    said = pods.get("again")["status"]["containerStatuses"][0]
    assert said["restartCount"] >= 2
    assert said["lastState"]["terminated"]["exitCode"] == 1


def test_a_deleted_pod_goes_when_its_container_has_stopped(
        cluster, pods, engine):
    pods.running("slow", "sh", "-c", "trap 'sleep 0.3; exit 4' TERM; "
                 "while :; do sleep 0.05; done")
    container = cluster.faults.container(pod="slow")
    status, said = pods.ask("DELETE", "/slow", {"gracePeriodSeconds": 30})
    assert status == 200
    assert said["metadata"]["deletionGracePeriodSeconds"] == 30
    assert output(cluster, "slow", "true")[1] == "Success"
    wait_for(lambda: pods.ask("GET", "/slow")[0] == 404, "its end")
    assert engine.request("GET", f"/containers/{container}/json")[0] == 404


def test_less_grace_is_heard_the_second_time(pods):
    pods.running("stubborn")
    assert pods.ask("DELETE", "/stubborn", {
        "gracePeriodSeconds": 600})[0] == 200
    assert pods.get("stubborn")["status"]["phase"] == "Running"
    assert pods.ask("DELETE", "/stubborn", {"gracePeriodSeconds": 1})[0] == \
        200
    wait_for(lambda: pods.ask("GET", "/stubborn")[0] == 404, "its end")


def test_without_grace_the_object_goes_before_the_container(
        cluster, pods, engine):
    pods.running("at-once")
    container = cluster.faults.container(pod="at-once")
    assert pods.ask("DELETE", "/at-once", {"gracePeriodSeconds": 0})[0] == 200
    assert pods.ask("GET", "/at-once")[0] == 404
    assert engine.request("GET", f"/containers/{container}/json")[0] == 200
    wait_for(lambda: engine.request(
        "GET", f"/containers/{container}/json")[0] == 404, "its end")


# ---- what never begins

@pytest.mark.parametrize("missing, policy, reasons, words", [
    ("localhost/nope:1", "Never", ["ErrImageNeverPull"],
     'Container image "localhost/nope:1" is not present with pull policy of '
     "Never"),
    ("localhost/nope:1", "IfNotPresent", ["ErrImagePull", "ImagePullBackOff"],
     'failed to pull and unpack image "localhost/nope:1": '),
    ("UPPER::bad", "Never", ["InvalidImageName"],
     'Failed to apply default image tag "UPPER::bad": couldn\'t parse image '
     'name "UPPER::bad": invalid reference format: repository name '
     "(library/UPPER) must be lowercase")])
def test_without_its_image_a_pod_waits(pods, missing, policy, reasons, words):
    pods.made("imageless", container={"image": missing,
                                      "imagePullPolicy": policy})
    for reason in reasons:
        state = wait_for(lambda r=reason: (
            s := pods.state("imageless").get("waiting", {})).get(
                "reason") == r and s, reason)
        if reason == reasons[0]:
            assert state["message"].startswith(words)
    assert pods.phase("imageless") == "Pending"
    told = pods.events("imageless")
    assert ("Warning", "Failed", f"Error: {reasons[-1]}") in told


def test_root_where_it_must_not_be_waits(pods):
    pods.made("rootless", container={"securityContext": {
        "runAsNonRoot": True}})
    state = pods.waiting("rootless")
    assert state["reason"] == "CreateContainerConfigError"
    assert state["message"].startswith(
        "container has runAsNonRoot and image will run as root (pod: "
        '"rootless_sbx(')


@pytest.mark.parametrize("field, why", [
    ({"nodeSelector": {"disk": "fast"}},
     "1 node(s) didn't match Pod's node affinity/selector"),
    ({"container": {"resources": {"requests": {"cpu": "1000"}}}},
     "1 Insufficient cpu")])
def test_without_room_a_pod_is_not_placed(cluster, pods, field, why):
    pods.made("placeless", **field)
    words = f"0/1 nodes are available: {why}. no new claims to deallocate, " \
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful " \
        "for scheduling."
    wait_for(lambda: ("Warning", "FailedScheduling", words) in
             pods.events("placeless"), "the event")
    status = pods.get("placeless")["status"]
    assert [(c["type"], c["status"], c["reason"], c["message"])
            for c in status["conditions"]] == [
        ("PodScheduled", "False", "Unschedulable", words)]
    with executing(cluster, "placeless", "true") as peer:
        assert peer.status == 400
        assert b"pod placeless does not have a host assigned" in peer.body
    assert pods.ask("GET", "/placeless/log") == (204, "")
    assert pods.ask("DELETE", "/placeless")[0] == 200
    assert pods.ask("GET", "/placeless")[0] == 404


def test_a_waiting_container_has_no_log_and_no_exec(cluster, pods):
    pods.made("waits", container={"image": "localhost/nope:1"})
    pods.waiting("waits")
    with executing(cluster, "waits", "true") as peer:
        assert (peer.status, peer.body) == (
            500, b'container not found ("main")')
        assert peer.headers["content-type"].startswith("text/plain")
    status, said = pods.ask("GET", "/waits/log")
    assert (status, said["message"]) == (
        400, 'container "main" in pod "waits" is waiting to start: '
        "ErrImageNeverPull")


# ---- volumes, networks and sizes

def test_a_claim_keeps_what_pods_leave(cluster, pods):
    path = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    volume = {"container": {"volumeMounts": [
        {"name": "kept", "mountPath": "/kept"}],
        "securityContext": PROFILE}, "volumes": [
        {"name": "kept", "persistentVolumeClaim": {"claimName": "keep"}}]}
    pods.made("before", "sh", "-c", "echo kept >/kept/it", **volume)
    wait_for(lambda: [e for e in pods.events("before")
                      if 'persistentvolumeclaim "keep" not found' in e[2]],
             "the event")
    assert cluster.ask("POST", path, {
        "metadata": {"name": "keep"}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}})[0] == 201
    assert pods.ended("before")["phase"] == "Succeeded"
    cluster.faults.delete_pod(pod="before")
    pods.running("after", **volume)
    assert output(cluster, "after", "cat", "/kept/it")[0] == "kept\n"
    status, said = cluster.ask("DELETE", f"{path}/keep")
    assert "deletionTimestamp" in said["metadata"]
    assert cluster.ask("GET", f"{path}/keep")[0] == 200
    cluster.faults.delete_pod(pod="after")
    wait_for(lambda: cluster.ask("GET", f"{path}/keep")[0] == 404,
             "the claim's end")


def test_a_policy_that_denies_egress_takes_the_network(
        cluster, pods, engine):
    path = "/apis/networking.k8s.io/v1/namespaces/" \
        f"{cluster.namespace}/networkpolicies"
    assert cluster.ask("POST", path, {
        "metadata": {"name": "deny"}, "spec": {
            "podSelector": {"matchLabels": {"app": "shut"}},
            "policyTypes": ["Ingress", "Egress"]}})[0] == 201
    try:
        pods.running("shut", labels={"app": "shut"})
        pods.running("free", labels={"app": "free"})
        cluster.faults.enforce_policies(on=False)
        pods.running("unenforced", labels={"app": "shut"})
        cluster.faults.enforce_policies(on=True, namespace=cluster.namespace)
        pods.running("here", labels={"app": "shut"})
        modes = [inspected(engine, cluster, p)["HostConfig"]["NetworkMode"]
                 for p in ("shut", "free", "unenforced", "here")]
        assert modes == ["none", "bridge", "bridge", "none"]
    finally:
        cluster.ask("DELETE", f"{path}/deny")


def test_a_pod_is_resized_in_place(cluster, pods, engine):
    resize = "application/strategic-merge-patch+json"
    pods.running("size", container={"resources": {"limits": {
        "cpu": "500m", "memory": "64Mi"}}})

    def sized(memory):
        return pods.ask("PATCH", "/size/resize", {"spec": {"containers": [
            {"name": "main", "resources": {
                "limits": {"memory": memory},
                "requests": {"memory": memory}}}]}}, Content_Type=resize)

    status, said = sized("128Mi")
    assert status == 200, said
    told = said["status"]["containerStatuses"][0]
    assert (told["resources"]["limits"]["memory"], told["restartCount"]) == \
        ("128Mi", 0)
    assert inspected(engine, cluster, "size")["HostConfig"]["Memory"] == \
        128 << 20
    status, said = sized("512Gi")
    assert status == 403
    assert "Node didn't have enough capacity: memory" in said["message"]
