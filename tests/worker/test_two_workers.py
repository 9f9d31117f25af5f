"""Two workers live, and both have a bridge into one box: the engine hangs for
the one, and another was started in its place."""
import os
import shutil

import driver
from driver import reason, wait_for

COUNTER = "for i in $(seq 300); do seq $((i * 20)) $((i * 20 + 19)); " \
    "usleep 10000; done"
COUNTED = "".join(f"{n}\n" for n in range(20, 301 * 20)).encode()
FROM_OUTSIDE = "cd /proc; for p in [0-9]*; do " \
    "grep -q '^PPid:.0$' $p/status && echo $p; done"


def successor(make_worker, older):
    """It has the same data, and so the key to the same boxes."""
    newer = make_worker(CARRIER="bridge", DATA_DIR=older.dir,
                        INSTANCE=older.instance)
    newer.instance_id = older.instance_id
    return newer.start()


def handed_over(run, newer):
    """With a copy of the spool: the other one lives, and may write to it."""
    again = driver.Run(run.number, run.spec, newer.spools)
    again.uuid = run.uuid
    again.path = os.path.join(newer.spools, os.path.basename(run.path))
    shutil.copy(run.path, again.path)
    return again


def test_the_newer_of_two_workers_in_a_box_has_all_of_a_run(
        make_worker, relay):
    older = make_worker(CARRIER="bridge", DOCKER_HOST="unix://" + relay.path,
                        LOG_LEVEL="debug").start()
    sandbox, uid, container = older.open()
    run = older.run(sandbox, COUNTER)
    wait_for(lambda: os.path.getsize(run.path) > 1000)
    relay.hang()
    newer = successor(make_worker, older)
    run = handed_over(run, newer)
    newer.send_open(sandbox, uid, mode=driver.ADOPT, container=container)
    newer.send_run(sandbox, run)
    newer.job.send("SANDBOX_SETTLED", sandbox, tenant=1)
    newer.job.wait("SANDBOX_READY", sandbox)
    assert reason(newer.finish(run)) == "exit"
    assert run.stdout() == COUNTED
    # The agent, and one bridge.
    newer.last_number = run.number
    inside = newer.run(sandbox, FROM_OUTSIDE, user=1)
    assert reason(newer.finish(inside)) == "exit"
    assert len(inside.stdout().split()) == 2
    # As soon as the older one hears anything it is told, too.
    assert "link lost" not in older.log()
    relay.go_on()
    wait_for(lambda: "link lost" in older.log())
    older.kill()
    again = newer.run(sandbox, "echo again")
    assert reason(newer.finish(again)) == "exit"
    assert again.stdout() == b"again\n"
