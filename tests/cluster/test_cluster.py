"""The cluster, by kubectl, which was not written with it, and what of the
real one is unpleasant."""
import json

import pytest

from .bodies import container, pod
from .peer import V4, V5, Watch, attaching, executing, frame, wait_for

SUCCESS = b'\x03{"metadata":{},"status":"Success"}'
CLOSED = (8, b"\x03\xe8")


# ---- kubectl

def test_a_pod_is_created_is_watched_and_goes(cluster, kubectl, image):
    watch = kubectl.spawn("get", "pods", "-w", "-o", "json",
                          "--output-watch-events")
    wait_for(cluster.faults.watches, "a watch")
    kubectl("create", "-f", "-",
            input=json.dumps(pod("walk", container(image))))
    kubectl("wait", "--for=condition=Ready", "pod/walk", "--timeout=60s")
    kubectl("delete", "pod", "walk", "--grace-period=1")
    assert kubectl("get", "pods", "-o", "name") == ""
    seen = []
    for line in watch.stdout:
        event = json.loads(line)
        one = (event["type"], event["object"]["status"]["phase"])
        if one not in seen:
            seen.append(one)
        if event["type"] == "DELETED":
            break
    watch.kill()
    watch.communicate()
    assert seen == [("ADDED", "Pending"), ("MODIFIED", "Pending"),
                    ("MODIFIED", "Running"), ("MODIFIED", "Failed"),
                    ("DELETED", "Failed")]


def test_commands_have_their_input_output_and_exit_code(kubectl, pods):
    pods.running("commands")
    assert kubectl("exec", "commands", "--", "echo", "a b", "$c") == \
        "a b $c\n"
    assert kubectl("exec", "-i", "commands", "--", "cat",
                   input="in and out") == "in and out"
    done = kubectl.run("exec", "commands", "--", "sh", "-c",
                       "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr == "err\ncommand terminated with exit code 7\n"
    done = kubectl.run("exec", "commands", "--", "/no/such")
    assert done.returncode == 1
    assert "no such file or directory" in done.stderr


def test_what_a_pod_wrote_is_its_log(kubectl, pods):
    pods.made("logs", "sh", "-c", "echo first; echo second; exit 3")
    pods.ended("logs")
    assert kubectl("logs", "logs") == "first\nsecond\n"
    assert kubectl("logs", "-f", "logs", "--limit-bytes=3") == "fir"


def test_who_asks_may_do_what_the_role_says(kubectl):
    said = kubectl("auth", "can-i", "--list")
    rows = {line.split()[0]: line for line in said.splitlines() if line}
    assert "[create get list watch patch delete]" in rows["pods"]
    assert "[get create]" in rows["pods/exec"]
    assert kubectl("auth", "can-i", "create", "pods/exec") == "yes\n"
    done = kubectl.run("auth", "can-i", "list", "secrets")
    assert (done.returncode, done.stdout) == (1, "no\n")
    done = kubectl.run("get", "secrets")
    assert 'cannot list resource "secrets" in API group "" in the namespace ' \
        '"sbx"' in done.stderr


# ---- what is unpleasant

def test_a_watch_of_a_version_that_is_too_old_is_an_error_in_the_stream(
        cluster, pods):
    version = pods.made("old")["metadata"]["resourceVersion"]
    cluster.faults.compact()
    with Watch(cluster, resourceVersion=version, timeoutSeconds=5) as watch:
        event = watch.event()
        assert watch.event() is None
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 410
    assert event["object"]["reason"] == "Expired"
    assert event["object"]["message"].startswith(
        f"too old resource version: {version} (")


def test_a_pod_of_another_uid_is_not_deleted(pods):
    uid = pods.made("other")["metadata"]["uid"]
    wrong = "00000000-0000-0000-0000-000000000000"
    status, said = pods.ask("DELETE", "/other", {
        "preconditions": {"uid": wrong}})
    assert (status, said["reason"], said["details"]["kind"]) == \
        (409, "Conflict", "Pod")
    assert said["message"] == (
        'Operation cannot be fulfilled on Pod "other": the UID in the '
        f"precondition ({wrong}) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated")
    assert pods.get("other")["metadata"]["uid"] == uid


def test_an_unknown_subprotocol_is_a_403_without_a_word(cluster, pods):
    pods.running("unknown")
    with executing(cluster, "unknown", "true",
                   protocols=["v9.channel.k8s.io"]) as peer:
        assert (peer.status, peer.body) == (403, b"")
        assert "content-type" not in peer.headers


@pytest.mark.parametrize("protocols, chosen, said", [
    ([V5, V4], V5, "command terminated with exit code 7"),
    ([V4], V4, "error executing command [sh -c echo out; echo err "
     "\\u003e\\u00262; exit 7], exit code 7")])
def test_frames_of_exec_are_those_of_the_real_server(
        cluster, pods, protocols, chosen, said):
    pods.running("frames")
    with executing(cluster, "frames", "sh", "-c",
                   "echo out; echo err >&2; exit 7",
                   protocols=protocols) as peer:
        assert peer.headers["sec-websocket-protocol"] == chosen
        first, *middle, status, close = peer.frames()
    assert first == (2, b"\x01")
    assert sorted(middle) == [(2, b"\x01out\n"), (2, b"\x02err\n")]
    assert status == (2, b'\x03{"metadata":{},"status":"Failure","message":'
                      b'"command terminated with non-zero exit code: ' +
                      said.encode() + b'","reason":"NonZeroExitCode",'
                      b'"details":{"causes":[{"reason":"ExitCode","message":'
                      b'"7"}]}}')
    assert close == CLOSED


def test_a_fragmented_message_loses_a_byte_and_is_a_violation(cluster, pods):
    pods.running("fragment")
    with executing(cluster, "fragment", "cat", stdin=True) as peer:
        peer.send(frame(b"\x00abc", fin=False) + frame(b"def\n", opcode=0))
        peer.say(255, b"\x00")
        assert peer.frames() == [(2, b"\x01"), (2, b"\x01abc"), (2, SUCCESS),
                                 CLOSED]
    found = cluster.faults.take_violations()
    assert len(found) == 2
    assert all(f.endswith("/pods/fragment/exec: a message in fragments")
               for f in found)


def test_attach_says_success_whatever_the_exit_code(cluster, pods):
    pods.running("attached", "sh", "-c",
                 'read -r a; echo "got:$a"; exit 5', container={
                     "stdin": True})
    with attaching(cluster, "attached", stdin=True, stdout=True,
                   container="main") as peer:
        peer.say(0, b"one\n")
        assert peer.frames() == [(2, b"\x01"), (2, b"\x01got:one\n"),
                                 (2, SUCCESS), CLOSED]
    ended = pods.ended("attached")
    assert ended["phase"] == "Failed"
    assert ended["containerStatuses"][0]["state"]["terminated"][
        "exitCode"] == 5
