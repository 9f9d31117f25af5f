"""What the supervisor told a worker of tenants holds, whatever a front asks.

The front here is a hostile one: it asks for more than it may, by other
tenants' names, and makes its worker begin anew.
"""
import json
import uuid

import pytest

import driver

MIB = driver.MIB
ANSWERS = ("SANDBOX_READY", "SANDBOX_FAILED")
CEILINGS = [word.split() for word in (
    "t1 ceiling.sandboxes=2", "t1 ceiling.sandbox_pids=64",
    "t2 ceiling.sandboxes=1", "t3 rule.read_only_root=true",
    "t4 rule.runtime=no-such-runtime",
    "t5 ceiling.memory_mb=200", "t5 ceiling.sandboxes=9")]


def ask(w, tenant, **more):
    number, uid = w.number(), uuid.uuid4()
    w.send_open(number, uid, tenant=tenant, **more)
    return number, uid


def answer(w, number):
    m = w.job.wait(ANSWERS, number)
    return "" if m.type == "SANDBOX_READY" else m.fields.text


def opened(w, tenant, **more):
    return answer(w, ask(w, tenant, **more)[0])


@pytest.fixture
def ceilings(make_worker):
    return make_worker(ceilings=CEILINGS, TENANT_CEILING="sandboxes=1",
                       TOTAL_CEILING="sandboxes=5").start()


def test_a_tenant_has_no_more_sandboxes_than_its_ceiling(ceilings):
    w = ceilings
    first, uid = ask(w, 1)
    # All at once: what is on its way counts as well.
    numbers = [first, *(ask(w, 1)[0] for _ in range(3))]
    texts = [answer(w, n) for n in numbers]
    assert sorted(t == "" for t in texts) == [False, False, True, True]
    assert any("tenant t1 has its ceiling of 2 sandboxes" in t for t in texts)
    # A worker that begins anew knows nothing, and asks the engine.
    w.kill()
    w.start()
    assert "its ceiling" in opened(w, 1)
    # Another tenant, another that nobody told of; and all together.
    assert opened(w, 2) == "" and "its ceiling" in opened(w, 2)
    assert opened(w, 77) == "" and "its ceiling" in opened(w, 77)
    assert opened(w, 78) == ""
    assert "this server has its ceiling of 5 sandboxes" in opened(w, 79)
    # What is gone gives room.
    if texts[0] == "":
        w.send_remove(first, uid)
        w.job.wait("SANDBOX_REMOVED", first)
        assert opened(w, 1) == ""


def test_one_identity_is_one_sandbox(ceilings):
    w = ceilings
    number, uid = ask(w, 2)
    assert answer(w, number) == ""
    # A worker that begins anew and is told it once more takes it over,
    # and makes no second one of it under another name.
    for name, end in ((None, ""), (f"mcp-test-{uid}-2", "its ceiling")):
        w.kill()
        w.start()
        number = w.number()
        w.send_open(number, uid, name=name, tenant=2)
        said = answer(w, number)
        assert end in said and (said == "") == (end == ""), said


def test_sandboxes_have_no_more_together(ceilings):
    assert opened(ceilings, 5, memory=100 * MIB) == ""
    assert "200 MiB (memory_mb)" in opened(ceilings, 5, memory=101 * MIB)
    assert opened(ceilings, 5, memory=100 * MIB) == ""


def test_a_sandbox_has_no_more_than_its_ceiling(ceilings):
    assert "at most 64 processes" in opened(ceilings, 1, pids=65)
    number, _ = ask(ceilings, 1)
    ready = ceilings.job.wait(ANSWERS, number)
    shown = ceilings.engine.inspect(ready.fields.container_id)
    assert shown["HostConfig"]["PidsLimit"] == 64


def test_a_rule_holds_whatever_is_asked(ceilings):
    number, _ = ask(ceilings, 3, read_only_root=False)
    ready = ceilings.job.wait(ANSWERS, number)
    assert ready.type == "SANDBOX_READY", ready
    ceilings.job.send("SANDBOX_SETTLED", number, tenant=3)
    shown = ceilings.engine.inspect(ready.fields.container_id)
    assert shown["HostConfig"]["ReadonlyRootfs"] is True
    run = driver.Run(ceilings.number(), driver.pack_spec(
        "! touch /bin/x && touch /workspace/a /artifacts/b /tmp/c && "
        "rm /artifacts/b && echo good", user=1), ceilings.spools)
    ceilings.send_run(number, run, tenant=3)
    ended = ceilings.job.wait("RUN_ENDED", run.number).fields
    assert driver.reason(ended) == "exit" and run.stdout() == b"good\n", (
        run.log())
    assert "rule.runtime=no-such-runtime" in opened(
        ceilings, 4, runtime="runc")


def test_a_runtime_must_be_allowed_and_there(make_worker):
    w = make_worker(SANDBOX_RUNTIMES_ALLOWED="runc,no-such-runtime").start()
    assert "SANDBOX_RUNTIMES_ALLOWED" in opened(w, 1, runtime="other")
    number, _ = ask(w, 1, runtime="runc")
    ready = w.job.wait(ANSWERS, number)
    shown = w.engine.inspect(ready.fields.container_id)
    assert shown["HostConfig"]["Runtime"] == "runc"
    assert "no-such-runtime" in opened(w, 1, runtime="no-such-runtime")
    assert not json.loads(w.engine.request(
        "GET", "/containers/json?all=1&filters=" + driver.urllib.parse.quote(
            json.dumps({"label": [f"mcp.instance={w.instance}"],
                        "status": ["created"]})))[1])
