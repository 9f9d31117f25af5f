"""The worker on the real engine with the real agent."""
import glob
import os
import signal
import subprocess
import time
import uuid

import pytest

import driver
from conftest import FOREIGN, IMAGE
from driver import reason, wait_for


def test_a_command_runs_and_its_output_is_in_the_spool(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "echo hello; exit 3")
    ended = worker.finish(run)
    assert reason(ended) == "exit"
    assert ended.length == os.path.getsize(run.path)
    assert run.stdout() == b"hello\n"
    assert run.files == {} and ended.artifacts_error == ""


def in_two_turns(worker, sandbox):
    """A run that prints its second line when the spool has the first."""
    name = uuid.uuid4().hex
    run = worker.run(
        sandbox, "echo one",
        f"until test -e {name}; do sleep 0.02; done; echo two")
    wait_for(lambda: os.path.getsize(run.path) > 0)
    worker.finish(worker.run(sandbox, f"touch {name}"))
    return run


def test_every_record_is_told_behind_the_bytes_that_have_it(worker):
    sandbox, _, _ = worker.open()
    length, records = 0, 0
    run = in_two_turns(worker, sandbox)
    ended = worker.job.wait("RUN_ENDED", run.number)
    for m in worker.job.waiting:  # as it came
        if m.id == run.number and m.type == "RUN_BYTES":
            assert m.fields[0] > length
            length = m.fields[0]
        elif m.id == run.number and m.type == "RUN_RECORD":
            records += 1
    assert records == 6 and length == ended.fields.length
    assert not ended.fields.log


def test_a_second_command_is_far_from_an_exec(worker):
    sandbox, _, _ = worker.open()
    took = []
    for _ in range(200):
        begin = time.perf_counter()
        run = worker.run(sandbox, "true")
        worker.finish(run)
        took.append(time.perf_counter() - begin)
        worker.forget(run)
    took.sort()
    # A guard against waiting for a timer; what it takes, the bench says.
    assert took[100] < 0.5, f"p50 {took[100] * 1000:.2f} ms"


def test_a_large_specification_comes_in_a_sealed_file(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "echo " + "x" * 100000)
    assert reason(worker.finish(run)) == "exit"
    assert len(run.stdout()) == 100001


def test_much_output_arrives_whole(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "yes 0123456789abcde | head -c 50000000")
    assert reason(worker.finish(run)) == "exit"
    out = run.stdout()
    assert len(out) == 50000000 and out == (b"0123456789abcde\n" * 3125000)


def test_output_beyond_the_limit_ends_the_run(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "yes", limit=1 << 20)
    ended = worker.finish(run)
    assert reason(ended) == "output_limit"
    assert 1 << 20 < ended.length < 4 << 20
    again = worker.run(sandbox, "echo fine")
    assert reason(worker.finish(again)) == "exit"


def test_cancel_ends_a_run_within_a_moment(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "echo begun; sleep 100")
    wait_for(lambda: os.path.getsize(run.path) > 40)
    begin = time.monotonic()
    worker.cancel(run)
    assert reason(worker.finish(run)) == "canceled"
    assert time.monotonic() - begin < 10
    assert run.stdout() == b"begun\n"


def test_a_run_canceled_before_its_sandbox_is_there_never_begins(worker):
    number, uid = worker.number(), uuid.uuid4()
    worker.send_open(number, uid)
    run = worker.run(number, "echo no")
    worker.cancel(run)
    assert reason(worker.finish(run)) == "canceled"
    assert os.path.getsize(run.path) == 0
    worker.job.wait("SANDBOX_READY", number)


def test_a_killed_worker_loses_no_byte(worker):
    sandbox, uid, container = worker.open()
    texts = [f"for i in $(seq 1 40); do echo {n}-$i; sleep 0.05; done"
             for n in range(10)]
    runs = [worker.run(sandbox, t) for t in texts]
    wait_for(lambda: all(os.path.getsize(r.path) > 100 for r in runs))
    worker.kill()
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    for r in runs:
        worker.send_run(sandbox, r)
    worker.job.send("SANDBOX_SETTLED", sandbox, tenant=1)
    worker.job.wait("SANDBOX_READY", sandbox)
    for n, r in enumerate(runs):
        assert reason(worker.finish(r)) == "exit"
        want = "".join(f"{n}-{i}\n" for i in range(1, 41))
        assert r.stdout().decode() == want


def test_a_run_that_ended_while_no_worker_was_there_is_told(worker):
    sandbox, uid, container = worker.open()
    run = worker.run(sandbox, "sleep 0.3; echo late; exit 4")
    wait_for(lambda: os.path.getsize(run.path) > 0)
    worker.kill()
    time.sleep(0.5)  # that is what is tested: it ends meanwhile
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    worker.send_run(sandbox, run)
    worker.job.send("SANDBOX_SETTLED", sandbox, tenant=1)
    assert reason(worker.finish(run)) == "exit"
    assert run.stdout() == b"late\n"


def test_a_finished_spool_is_told_again_to_a_new_front(worker):
    sandbox, uid, container = worker.open()
    run = worker.run(sandbox, "echo done")
    worker.finish(run)
    worker.kill()
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    worker.send_run(sandbox, run)
    records = 0

    def seen(m):
        nonlocal records
        records += m.type == "RUN_RECORD"

    m = worker.job.wait("RUN_ENDED", run.number, seen=seen)
    assert records == 4 and driver.REASONS[m.fields[0]] == "exit"


def test_a_log_that_no_spool_has_is_told_again_as_well(worker):
    sandbox, uid, container = worker.open()
    run = worker.run(sandbox, "echo done")
    first = worker.finish(run)
    assert first.log and run.stdout() == b"done\n"
    worker.kill()
    os.unlink(run.path)  # the front had it in memory, and is another
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    worker.send_run(sandbox, run)
    again = worker.finish(run)
    assert again.length == first.length and reason(again) == "exit"
    assert run.stdout() == b"done\n"


def test_a_long_log_and_one_that_takes_time_are_in_the_spool(worker):
    sandbox, _, _ = worker.open()
    long = worker.run(sandbox, "head -c 5000 /dev/zero | tr '\\0' x")
    slow = in_two_turns(worker, sandbox)
    for run in long, slow:
        ended = worker.finish(run)
        assert not ended.log
        assert os.path.getsize(run.path) == ended.length
    assert long.stdout() == b"x" * 5000 and slow.stdout() == b"one\ntwo\n"


def test_runs_that_nobody_mentions_are_stopped_once_settled(worker):
    sandbox, uid, container = worker.open()
    run = worker.run(sandbox, "while true; do echo x > f; sleep 0.02; done")
    wait_for(lambda: os.path.getsize(run.path) > 0)
    worker.kill()
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    worker.job.wait("SANDBOX_READY", sandbox)
    worker.job.send("SANDBOX_SETTLED", sandbox, tenant=1)

    def is_alone():
        probe = worker.run(
            sandbox, "for d in /proc/[0-9]*; do cat $d/cmdline; echo; done",
            user=1)
        worker.finish(probe)
        worker.forget(probe)
        return b"while true" not in probe.stdout()

    wait_for(is_alone)


def test_adopting_what_is_gone_is_a_loss(worker):
    number = worker.number()
    worker.send_open(number, uuid.uuid4(), mode=driver.ADOPT,
                     container="0123456789ab")
    m = worker.job.wait(("SANDBOX_LOST", "SANDBOX_READY"), number)
    assert m.type == "SANDBOX_LOST"
    assert "removed from outside" in m.fields[0]


def test_after_a_lost_adoption_the_same_sandbox_can_be_made(worker):
    number, uid = worker.number(), uuid.uuid4()
    worker.send_open(number, uid, mode=driver.ADOPT)
    worker.job.wait("SANDBOX_LOST", number)
    worker.send_open(number, uid)
    worker.job.wait("SANDBOX_READY", number)
    run = worker.run(number, "echo new")
    assert reason(worker.finish(run)) == "exit"


def test_a_create_that_an_earlier_worker_finished_is_taken_over(worker):
    number, uid = worker.number(), uuid.uuid4()
    worker.send_open(number, uid)
    worker.job.wait("SANDBOX_READY", number)
    run = worker.run(number, "sleep 0.5; echo once >> f; cat f")
    wait_for(lambda: os.path.getsize(run.path) > 0)
    worker.kill()
    worker.start()
    worker.send_open(number, uid)
    worker.send_run(number, run)
    worker.job.wait("SANDBOX_READY", number)
    assert reason(worker.finish(run)) == "exit"
    assert run.stdout() == b"once\n"
    assert len(worker.engine.containers(worker.instance)) == 1


def test_remove_is_quick_and_leaves_nothing(worker):
    times = []
    for _ in range(5):
        sandbox, uid, container = worker.open()
        begin = time.monotonic()
        worker.send_remove(sandbox, uid)
        m = worker.job.wait("SANDBOX_REMOVED", sandbox)
        times.append(time.monotonic() - begin)
        assert m.fields == (0, "")
        assert worker.engine.inspect(container) is None
    # A guard: the engine's stop would wait for ten seconds.
    assert min(times) < 5, times
    assert set(os.listdir(os.path.join(worker.dir, "links"))) == {".key"} | {
        os.path.basename(n) for n in glob.glob(
            os.path.join(worker.dir, "links", ".agent-*"))}


def test_remove_ends_runs_as_they_were_told_to(worker):
    sandbox, uid, _ = worker.open()
    lost = worker.run(sandbox, "sleep 100")
    canceled = worker.run(sandbox, "sleep 100")
    wait_for(lambda: os.path.getsize(lost.path) > 0
             and os.path.getsize(canceled.path) > 0)
    worker.cancel(canceled)
    worker.send_remove(sandbox, uid)
    assert reason(worker.finish(lost)) == "sandbox_lost"
    assert reason(worker.finish(canceled)) == "canceled"
    worker.job.wait("SANDBOX_REMOVED", sandbox)


def test_remove_of_one_that_is_being_made_leaves_nothing(worker):
    number, uid = worker.number(), uuid.uuid4()
    worker.send_open(number, uid)
    worker.send_remove(number, uid)
    m = worker.job.wait("SANDBOX_REMOVED", number)
    assert m.fields[0] == 0
    assert worker.engine.containers(worker.instance) == []


def test_remove_works_for_a_sandbox_this_worker_never_had(worker):
    sandbox, uid, container = worker.open()
    worker.kill()
    worker.start()
    worker.send_remove(sandbox, uid)
    assert worker.job.wait("SANDBOX_REMOVED", sandbox).fields[0] == 0
    assert worker.engine.inspect(container) is None


def test_the_engine_hands_over_the_stream_of_an_exec(worker, build):
    """By the worker's own client of the engine (worker/http/api.h)."""
    _, _, container = worker.open()
    data = os.urandom(1 << 16)
    done = subprocess.run(
        [f"{build}/tests/unit/worker/helpers/exec_stream",
         worker.engine.path, container],
        input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == data


def test_remove_leaves_a_container_alone_that_is_not_its_own(worker):
    _, uid, container = worker.open()
    worker.send_remove(999, uuid.uuid4(), name=f"mcp-test-{uid}")
    assert worker.job.wait("SANDBOX_REMOVED", 999).fields[0] == 0
    assert worker.engine.inspect(container)["State"]["Running"]


def test_a_container_removed_from_outside_is_lost(worker):
    sandbox, _, container = worker.open()
    run = worker.run(sandbox, "echo before; sleep 100")
    wait_for(lambda: run.stdout() == b"before\n")
    worker.engine.request("DELETE", f"/containers/{container}?force=1")
    assert reason(worker.finish(run)) == "sandbox_lost"
    assert "outside" in worker.job.wait(
        "SANDBOX_LOST", sandbox).fields[0]
    assert run.stdout() == b"before\n"


def test_a_container_whose_agent_is_killed_is_lost_and_removed(worker):
    sandbox, _, container = worker.open()
    pid = worker.engine.inspect(container)["State"]["Pid"]
    os.kill(pid, signal.SIGKILL)
    assert worker.job.wait("SANDBOX_LOST", sandbox).fields[0] == (
        "exited with status 137")
    wait_for(lambda: worker.engine.inspect(container) is None)


def disk_used(worker, sandbox):
    run = worker.run(sandbox, "busybox du -s -m /workspace")
    assert reason(worker.finish(run)) == "exit"
    return int(run.stdout().split()[0])


def command_text(run):
    """What the end of its first command says."""
    return next(p for kind, _, p in run.log() if kind == 5)


FLOODS = {
    "a large file": "head -c 4000000000 /dev/zero > x",
    "many files": "i=0; while :; do head -c 4000000 /dev/zero > f$i; "
                  "i=$((i+1)); done",
    "a deep one": "while :; do mkdir d; cd d; "
                  "head -c 1000000 /dev/zero > x; done",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_sandbox_that_fills_its_disk_is_stopped(make_worker, flood):
    worker = make_worker(SANDBOX_DISK_MB="64").start()
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, FLOODS[flood], "echo not reached")
    assert reason(worker.finish(run)) == "disk_full"
    assert b"SANDBOX_DISK_MB" in command_text(run)
    assert run.stdout() == b""
    assert disk_used(worker, sandbox) < 300
    # What is there can be taken away, and then there is room again.
    clean = worker.run(sandbox, "rm -rf /workspace/*", user=1)
    assert reason(worker.finish(clean)) == "exit"
    again = worker.run(sandbox, "head -c 50000000 /dev/zero > x; wc -c < x")
    assert reason(worker.finish(again)) == "exit"
    assert again.stdout() == b"50000000\n"


def test_a_sandbox_that_makes_too_many_files_is_stopped(make_worker):
    worker = make_worker(SANDBOX_DISK_INODES="3000").start()
    sandbox, _, _ = worker.open()
    run = worker.run(
        sandbox, "i=0; while :; do : > f$i; i=$((i+1)); done")
    assert reason(worker.finish(run)) == "disk_full"
    count = worker.run(sandbox, "ls /workspace | wc -l")
    worker.finish(count)
    assert 2000 < int(count.stdout()) < 26000


def test_a_file_without_a_name_has_an_end_too(make_worker):
    worker = make_worker(SANDBOX_DISK_MB="16").start()
    sandbox, _, _ = worker.open()
    run = worker.run(
        sandbox, "exec 3>x; rm x; head -c 1000000000 /dev/zero >&3; "
        "echo $?; busybox stat -L -c %s /dev/fd/3")
    assert reason(worker.finish(run)) == "exit"
    assert run.stdout().split() == [b"153", b"%d" % (32 << 20)]


def test_a_sandbox_that_no_server_comes_for_ends(make_worker):
    worker = make_worker(SANDBOX_GRACE_SECONDS="1").start()
    sandbox, uid, container = worker.open(ttl_s=3600)
    worker.job.send("SANDBOX_TTL", sandbox, tenant=1, ttl_s=1)
    run = worker.run(sandbox, "true")  # behind the other in the channel
    worker.finish(run)
    worker.kill()
    wait_for(lambda: not worker.engine.inspect(container)["State"]["Running"])
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    why = worker.job.wait("SANDBOX_LOST", sandbox).fields.why
    assert "SANDBOX_GRACE_SECONDS" in why


def begin_sleep(worker):
    sandbox, _, container = worker.open()
    run = worker.run(sandbox, "echo begun; sleep 600", timeout_ms=600000)
    wait_for(lambda: os.path.getsize(run.path) > 40)
    return sandbox, container, run


def test_a_paused_container_ends_its_runs_and_is_renewed(make_worker):
    worker = make_worker(AGENT_PING_MS="300").start()
    sandbox, container, run = begin_sleep(worker)
    other, _, _ = worker.open()
    worker.engine.request("POST", f"/containers/{container}/pause")
    ended = worker.finish(run)
    assert reason(ended) == "sandbox_lost"
    assert "its agent does not answer" in ended.text
    assert "not answer" in worker.job.wait("SANDBOX_LOST", sandbox).fields.why
    wait_for(lambda: worker.engine.inspect(container) is None)
    again = worker.run(other, "echo fine")
    worker.finish(again)
    assert again.stdout() == b"fine\n"


def test_a_stopped_agent_ends_no_run_later_than_its_limits(make_worker):
    worker = make_worker(RUN_GRACE_MS="300").start()
    sandbox, _, container = worker.open()
    pid = worker.engine.inspect(container)["State"]["Pid"]
    os.kill(pid, signal.SIGSTOP)
    run = worker.run(sandbox, "sleep 600", timeout_ms=500)
    ended = worker.finish(run)
    assert reason(ended) == "timeout"
    assert "agent did not end the run" in ended.text
    worker.job.wait("SANDBOX_LOST", sandbox)
    wait_for(lambda: worker.engine.inspect(container) is None)


def test_artifacts_are_copied_once_with_their_digests(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "cd /artifacts; mkdir d; echo a > a.txt; "
                     "dd if=/dev/zero of=d/big bs=65536 count=100 2>&1; "
                     "ln -s /etc/passwd link")
    ended = worker.finish(run)
    assert (reason(ended), ended.artifacts_error) == ("exit", "")
    assert run.files == {b"a.txt": b"a\n", b"d/big": bytes(6553600)}
    worker.forget(run)
    second = worker.run(sandbox, "echo b > /artifacts/b.txt")
    worker.finish(second)
    assert second.files == {b"b.txt": b"b\n"}


def test_artifacts_come_again_when_the_front_never_committed_them(worker):
    sandbox, uid, container = worker.open()
    run = worker.run(sandbox, "echo a > /artifacts/a.txt")
    worker.finish(run)
    assert run.files == {b"a.txt": b"a\n"}
    worker.kill()
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    run.files = {}
    worker.send_run(sandbox, run)
    worker.finish(run)
    assert run.files == {b"a.txt": b"a\n"}


def test_artifacts_over_the_limits_are_left_out_and_named(make_worker):
    worker = make_worker(ARTIFACTS_MAX_EXTRACT_FILE_BYTES="1000",
                         ARTIFACTS_MAX_EXTRACT_BYTES="1500",
                         ARTIFACTS_MAX_EXTRACT_FILES="4").start()
    sandbox, _, _ = worker.open()
    run = worker.run(
        sandbox, "cd /artifacts; head -c 1001 /dev/zero > large; "
        "for i in 1 2 3 4; do head -c 600 /dev/zero > f$i; done; "
        "echo x > small")
    ended = worker.finish(run)
    assert reason(ended) == "exit"
    assert "artifact extraction: file too large: large" in (
        ended.artifacts_error)
    assert "artifact extraction: total size exceeded: f" in (
        ended.artifacts_error)
    assert 2 <= len(run.files) <= 3 and b"large" not in run.files
    worker.forget(run)
    many = worker.run(
        sandbox, "cd /artifacts; rm *; for i in 1 2 3 4 5; do echo x > m$i; "
        "done")
    ended = worker.finish(many)
    assert ended.artifacts_error == (
        "artifact extraction: too many files: the rest is left out, 4 of a "
        "run are kept (ARTIFACTS_MAX_EXTRACT_FILES)")
    assert len(many.files) == 4


def test_two_sandboxes_do_not_wait_for_each_other(worker):
    (one, _, _), (two, _, _) = worker.open(), worker.open()
    slow = worker.run(one, "sleep 1; echo slow")
    quick = worker.run(two, "echo quick")
    worker.finish(quick)
    assert not worker.job.has("RUN_ENDED", slow.number)
    worker.finish(slow)


def test_an_image_that_is_not_allowed_is_refused(worker):
    number = worker.number()
    worker.send_open(number, uuid.uuid4(), image="debian:12")
    m = worker.job.wait("SANDBOX_FAILED", number)
    assert m.fields[0] == driver.ERR_POLICY
    assert "SANDBOX_IMAGES_ALLOWED" in m.fields[1]


def test_more_memory_than_configured_is_refused(worker):
    number = worker.number()
    worker.send_open(number, uuid.uuid4(), memory=1 << 40)
    m = worker.job.wait("SANDBOX_FAILED", number)
    assert m.fields[0] == driver.ERR_POLICY


def test_a_missing_image_is_an_error_that_says_what_to_do(make_worker):
    worker = make_worker(SANDBOX_IMAGE="nobody/nothing:1").start()
    number = worker.number()
    worker.send_open(number, uuid.uuid4())
    m = worker.job.wait("SANDBOX_FAILED", number)
    assert m.fields[0] == driver.ERR_BACKEND
    assert "nobody/nothing:1 is missing" in m.fields[1]
    assert "./bootstrap" in m.fields[1]


def test_a_local_image_is_never_pulled(make_worker):
    worker = make_worker(SANDBOX_IMAGE="localhost/nobody/nothing:1",
                         AUTO_BUILD_SANDBOX_IMAGE="true",
                         SANDBOX_DOCKERFILE_PATH="/nonexistent").start()
    number = worker.number()
    worker.send_open(number, uuid.uuid4())
    m = worker.job.wait("SANDBOX_FAILED", number)
    assert "localhost/nobody/nothing:1 is missing" in m.fields[1]
    assert "SANDBOX_DOCKERFILE_PATH" in m.fields[1]
    assert "pulling" not in worker.log()


def test_a_missing_image_is_built_when_there_is_a_dockerfile(make_worker):
    name = f"mcp-sandboxd/built-{os.getpid()}"
    worker = make_worker(SANDBOX_IMAGE=name + ":latest",
                         AUTO_BUILD_SANDBOX_IMAGE="true")
    path = os.path.join(worker.dir, "Dockerfile")
    with open(path, "w") as f:
        f.write(f"FROM {IMAGE}:latest\nENV A=b\n")
    worker.config["SANDBOX_DOCKERFILE_PATH"] = path
    worker.start()
    one, two = worker.number(), worker.number()
    worker.send_open(one, uuid.uuid4())  # both share one build
    worker.send_open(two, uuid.uuid4())
    for number in (one, two):
        m = worker.job.wait(
            ("SANDBOX_READY", "SANDBOX_FAILED"), number)
        assert m.type == "SANDBOX_READY", m
    assert worker.log().count("building it") == 1


def test_a_build_that_fails_says_why(make_worker):
    worker = make_worker(SANDBOX_IMAGE="mcp-sandboxd/unbuilt:latest",
                         AUTO_BUILD_SANDBOX_IMAGE="true")
    path = os.path.join(worker.dir, "Dockerfile")
    with open(path, "w") as f:
        f.write(f"FROM {IMAGE}:latest\n"
                "RUN [\"/bin/nonesuch\"]\n")
    worker.config["SANDBOX_DOCKERFILE_PATH"] = path
    worker.start()
    number = worker.number()
    worker.send_open(number, uuid.uuid4())
    m = worker.job.wait("SANDBOX_FAILED", number)
    assert "is missing" in m.fields[1] and "nonesuch" in m.fields[1]


def test_without_an_engine_an_open_fails_at_once(make_worker):
    worker = make_worker(DOCKER_HOST="unix:///nowhere/docker.sock").start()
    assert worker.state[0] == 0
    assert "no Docker engine at /nowhere/docker.sock" in worker.state[1]
    number = worker.number()
    begin = time.monotonic()
    worker.send_open(number, uuid.uuid4())
    m = worker.job.wait("SANDBOX_FAILED", number)
    assert m.fields[0] == driver.ERR_BACKEND
    assert "set DOCKER_HOST" in m.fields[1]
    assert time.monotonic() - begin < 5


def test_a_host_that_is_no_place_stops_the_start(make_worker):
    worker = make_worker(DOCKER_HOST="ssh://127.0.0.1")
    worker.start(wait=False)
    words = worker.ctl.wait("LAST_WORDS")
    assert words.fields[0] == 78 and "DOCKER_HOST" in words.fields[1]
    assert worker.process.wait(10) == 78
    worker.ctl.close()


def test_an_unknown_capability_stops_the_start(make_worker):
    worker = make_worker(SANDBOX_CAP_ADD="SETUID,NONESUCH")
    worker.start(wait=False)
    words = worker.ctl.wait("LAST_WORDS")
    assert words.fields[0] == 78 and "NONESUCH" in words.fields[1]
    assert worker.process.wait(10) == 78
    worker.ctl.close()


def test_an_engine_that_hangs_stops_no_sandbox_that_runs(
        make_worker, relay):
    worker = make_worker(DOCKER_HOST="unix://" + relay.path).start()
    sandbox, _, _ = worker.open()
    relay.hang()
    run = worker.run(sandbox, "echo alive")
    assert reason(worker.finish(run, timeout=5)) == "exit"


def test_an_engine_that_hangs_is_noticed_and_noticed_again(
        make_worker, relay):
    worker = make_worker(DOCKER_HOST="unix://" + relay.path).start()
    relay.hang()
    _, detail, _ = worker.wait_state(lambda up, *_: not up)
    assert "did not answer" in detail
    begin = time.monotonic()
    number = worker.number()
    worker.send_open(number, uuid.uuid4())
    assert worker.job.wait("SANDBOX_FAILED", number).fields[0] == (
        driver.ERR_BACKEND)
    assert time.monotonic() - begin < 5
    relay.go_on()
    assert worker.wait_state(lambda up, _, lack: up and not lack) == (
        True, "", "")
    worker.open()


def test_an_adoption_waits_for_an_engine_that_is_away(make_worker, relay):
    worker = make_worker(DOCKER_HOST="unix://" + relay.path).start()
    sandbox, uid, container = worker.open()
    run = worker.run(sandbox, "sleep 4; echo kept")
    wait_for(lambda: os.path.getsize(run.path) > 0)
    worker.kill()
    relay.hang()
    worker.start()
    worker.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    worker.send_run(sandbox, run)
    time.sleep(4)  # long enough for a try to fail
    assert not worker.job.has("SANDBOX_LOST", sandbox)
    relay.go_on()
    worker.job.wait(("SANDBOX_READY", "SANDBOX_LOST"), sandbox)
    assert reason(worker.finish(run)) == "exit"
    assert run.stdout() == b"kept\n"


def test_the_container_is_hardened_as_configured(worker):
    _, uid, container = worker.open()
    c = worker.engine.inspect(container)
    host, labels = c["HostConfig"], c["Config"]["Labels"]
    assert c["Config"]["NetworkDisabled"] is True
    assert host["CapDrop"] == ["ALL"]
    assert sorted(host["CapAdd"]) == sorted(
        ["SETUID", "SETGID", "CHOWN", "FOWNER", "DAC_OVERRIDE", "KILL",
         "SETPCAP"])
    assert host["Memory"] == host["MemorySwap"] == 128 << 20
    privileges, seccomp = host["SecurityOpt"]
    assert privileges == "no-new-privileges"
    assert seccomp.startswith('seccomp={"defaultAction":"SCMP_ACT_ERRNO"')
    assert "/proc/kpagecount" in host["MaskedPaths"]
    assert "/dev" in host["ReadonlyPaths"]
    assert host["ShmSize"] == 64 << 20
    assert host["Mounts"] == [
        {"Type": "bind", "Source": f"{worker.dir}/links/{uid}",
         "Target": "/.mcp-sandbox", "ReadOnly": True}]
    assert labels["mcp.instance"] == worker.instance
    assert labels["mcp.instance_id"] == worker.instance_id
    assert labels["mcp.sandbox"] == str(uid)
    assert labels["mcp.role"] == "sandbox"


def test_localhost_has_a_name_in_an_image_that_knows_none(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "cat /etc/hosts")
    worker.finish(run)
    assert run.stdout() == (
        b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n")


def test_a_foreign_image_without_setuid_works(make_worker):
    worker = make_worker(
        SANDBOX_CAP_ADD="NET_BIND_SERVICE",
        SANDBOX_IMAGES_ALLOWED=FOREIGN + ":latest").start()
    sandbox, _, _ = worker.open(image=FOREIGN + ":latest")
    user = worker.run(sandbox, "echo a > x; echo b > /artifacts/y; cat x; "
                      "grep -E '^(Uid|CapPrm)' /proc/self/status")
    assert reason(worker.finish(user)) == "exit"
    assert user.stdout().split() == [
        b"a", b"Uid:", *[b"1000"] * 4, b"CapPrm:", b"0" * 16]
    assert user.files == {b"y": b"b\n"}
    root = worker.run(
        sandbox, "grep CapPrm /proc/self/status; kill -9 1", user=1)
    worker.finish(root)
    assert root.stdout().split()[1] == b"%016x" % (1 << 10)


def test_a_sandboxes_user_may_not_connect_to_its_link(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(sandbox, "stat -c %a-%u /.mcp-sandbox/sock")
    worker.finish(run)
    if b'"name=userns"' in worker.engine.request("GET", "/info")[1]:
        # Let in by an access list, or where there are none as anybody.
        assert run.stdout() in (b"660-65534\n", b"666-65534\n")
    else:
        assert run.stdout() == b"600-%d\n" % os.geteuid()


def test_the_sandbox_cannot_change_its_agent_or_socket(worker):
    sandbox, _, _ = worker.open()
    run = worker.run(
        sandbox, "echo x > /.mcp-sandbox/agent; ln -s / /.mcp-sandbox/x; "
        "echo x > /proc/1/exe; echo end", user=1)
    worker.finish(run)
    assert run.stdout() == b"end\n"
    errors = b"".join(p for kind, _, p in run.log() if kind == 4)
    assert errors.count(b"Read-only file system") >= 2


def test_sweep_removes_what_is_not_listed_and_nothing_else(worker):
    _, kept, kept_id = worker.open()
    _, stray, stray_id = worker.open()
    later = int(time.time() * 1000) + 6000
    assert worker.sweep([kept], asof_ms=later) == (2, 1)
    assert worker.engine.inspect(kept_id)["State"]["Running"]
    assert worker.engine.inspect(stray_id) is None
    assert not os.path.exists(
        os.path.join(worker.dir, "links", str(stray)))
    assert os.path.exists(os.path.join(worker.dir, "links", str(kept)))


def test_sweep_stops_and_keeps_what_it_does_not_know(worker):
    _, stray, container = worker.open()
    worker.kill()  # the next one has never heard of it
    worker.start()
    later = int(time.time() * 1000) + 6000
    assert worker.sweep([], asof_ms=later, keep_ms=3600_000) == (1, 0)
    assert not worker.engine.inspect(container)["State"]["Running"]
    assert worker.sweep([], asof_ms=later, keep_ms=3600_000) == (1, 0)
    assert os.path.exists(os.path.join(worker.dir, "links", str(stray)))
    found = worker.job.wait("SWEEP_FOUND").fields
    assert found.uuid == stray and found.identifier == "chat"
    later += 3600_000 + 60_000  # the stop took its time
    assert worker.sweep([], asof_ms=later, keep_ms=3600_000) == (1, 1)
    assert worker.engine.inspect(container) is None


def test_sweep_leaves_alone_what_is_young(worker):
    _, _, container = worker.open()
    assert worker.sweep([]) == (1, 0)
    assert worker.engine.inspect(container)["State"]["Running"]


def test_sweep_takes_link_directories_of_nobody(worker):
    path = os.path.join(worker.dir, "links", str(uuid.uuid4()))
    os.mkdir(path)
    worker.sweep([], asof_ms=int(time.time() * 1000) + 6000)
    assert not os.path.exists(path)


def test_a_wrong_process_at_the_socket_is_sent_away(worker):
    import socket
    sandbox, uid, _ = worker.open()
    s = socket.socket(socket.AF_UNIX)
    fd = os.open(os.path.join(worker.dir, "links", str(uid)), os.O_RDONLY)
    s.connect(f"/proc/self/fd/{fd}/sock")
    s.settimeout(10)
    assert s.recv(1) == b""
    os.close(fd)
    run = worker.run(sandbox, "echo still here")
    assert reason(worker.finish(run)) == "exit"


def test_the_end_of_the_front_ends_the_worker_and_no_sandbox(worker):
    _, _, container = worker.open()
    worker.job.close()
    assert worker.process.wait(10) == 0
    assert worker.engine.inspect(container)["State"]["Running"]


def test_a_front_that_breaks_the_protocol_ends_the_worker(worker):
    worker.job.send_raw("SANDBOX_OPEN", 1, b"\x00")
    assert worker.process.wait(10) == 76


def test_a_drained_worker_goes_when_the_front_has_gone(worker):
    sandbox, _, _ = worker.open()
    worker.ctl.send("DRAIN", left_ms=30000)
    run = worker.run(sandbox, "echo last")
    assert reason(worker.finish(run)) == "exit"
    worker.job.close()
    assert worker.process.wait(10) == 0


def test_the_state_of_an_engine_is_told(worker):
    assert worker.state == (True, "", "")
