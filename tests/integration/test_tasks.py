"""Tasks: a call whose run goes on, as the protocol has it since 2025-11-25."""
import contextlib
import http.client
import json
import signal
import threading
import time

import pytest

from client import McpError, wait_for
from tenants import Tenant

HOUR = 3600 * 1000
RELATED = "io.modelcontextprotocol/related-task"
SAY = "io.modelcontextprotocol/model-immediate-response"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def ask(client, name, *commands, task=None, **options):
    """The task of a call of run_sandbox."""
    return client.rpc("tools/call", {
        "name": "run_sandbox", "task": task or {},
        "arguments": {"identifier": name,
                      "commands": [{"shell": c} for c in commands],
                      "options": options}})


def begin(client, name, *commands, **more):
    return ask(client, name, *commands, **more)["task"]


def get(client, task):
    return client.rpc("tasks/get", {"taskId": task["taskId"]})


def result(client, task):
    return client.rpc("tasks/result", {"taskId": task["taskId"]})


def cancel(client, task):
    return client.rpc("tasks/cancel", {"taskId": task["taskId"]})


def text(answer):
    return answer["content"][0]["text"]


def wait_status(client, task, status, seconds=60):
    return wait_for(
        lambda: (now := get(client, task))["status"] == status and now,
        seconds, status)


def refusal(client, method, **params):
    with pytest.raises(McpError) as e:
        client.rpc(method, params)
    return e.value


def listed(client):
    """The ids of all pages, and how many pages there are."""
    ids, pages, params = [], 0, {}
    while True:
        page = client.rpc("tasks/list", params)
        ids += [t["taskId"] for t in page["tasks"]]
        pages += 1
        if "nextCursor" not in page:
            return ids, pages
        params = {"cursor": page["nextCursor"]}


@pytest.fixture
def session(client):
    client.initialize()
    return client


@pytest.fixture
def place(session, sandbox):
    """A sandbox that is there."""
    session.run(sandbox, "true")
    return sandbox


def test_what_is_announced(client):
    assert client.initialize()["capabilities"]["tasks"] == {
        "list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    support = {t["name"]: t.get("execution", {}).get("taskSupport")
               for t in client.rpc("tools/list")["tools"]}
    assert {n for n, s in support.items() if s} == {
        "run_sandbox", "execute_code"}
    assert set(support.values()) == {"optional", None}


def test_a_call_that_asks_for_a_task_has_it_before_its_run_ends(
        session, sandbox):
    answer = ask(session, sandbox, "sleep 600")
    task = answer["task"]
    assert task["status"] == "working"
    assert task["ttl"] == 24 * HOUR
    assert task["pollInterval"] > 0
    assert task["createdAt"] == task["lastUpdatedAt"]
    assert task["taskId"] in answer["_meta"][SAY]
    now = get(session, task)
    assert now["taskId"] == task["taskId"]
    assert now["status"] == "working"
    wait_for(lambda: get(session, task).get("statusMessage", "")
             .startswith("running for "), 60, "that it runs")
    assert cancel(session, task)["status"] == "cancelled"


def test_a_result_comes_with_the_end_and_is_the_calls(session, place):
    task = begin(session, place, "echo begin; sleep 1; echo out; echo err >&2")
    answer = result(session, task)
    assert answer["_meta"][RELATED] == {"taskId": task["taskId"]}
    assert not answer.get("isError")
    assert "begin" in text(answer) and "out" in text(answer)
    now = get(session, task)
    assert now["status"] == "completed"
    assert now["lastUpdatedAt"] > now["createdAt"]
    assert result(session, task) == answer  # as often as one asks


def test_a_result_has_the_form_that_the_call_asked_for(session, place):
    task = session.rpc("tools/call", {
        "name": "run_sandbox", "task": {},
        "_meta": {"mcp-sandboxd/structured": True}, "arguments": {
            "identifier": place,
            "commands": [{"shell": "echo out; echo err >&2; exit 5"}]}})["task"]
    plain = begin(session, place, "echo out")
    command = result(session, task)["structuredContent"]["final"]["commands"][0]
    assert command["stdout"] == "out\n" and command["stderr"] == "err\n"
    assert command["exit_code"] == 5
    assert "structuredContent" not in result(session, plain)


def test_a_program_that_fails_completes_its_task(session, place):
    task = begin(session, place, "echo before; exit 3")
    answer = result(session, task)
    assert not answer.get("isError")
    assert "before" in text(answer) and "3" in text(answer)
    assert get(session, task)["status"] == "completed"
    assert "exit" in get(session, task)["statusMessage"]


def test_who_waits_for_a_result_sees_progress(session, place):
    task = begin(session, place, "for i in 1 2 3 4; do echo $i; sleep .5; done")
    status, headers, body = session.post({
        "jsonrpc": "2.0", "id": "w", "method": "tasks/result", "params": {
            "taskId": task["taskId"], "_meta": {"progressToken": "p"}}})
    assert status == 200
    assert headers["Content-Type"].startswith("text/event-stream")
    messages = [json.loads(line[6:]) for line in body.decode().splitlines()
                if line.startswith("data: {")]
    *before, last = messages
    assert {m["method"] for m in before} == {"notifications/progress"}
    assert last["id"] == "w" and "4" in text(last["result"])


def test_a_call_that_would_not_wait_is_a_task_of_the_end(session, place):
    task = begin(session, place, "echo late", await_completion=False)
    assert "late" in text(result(session, task))


def test_code_is_a_task_too(session, sandbox):
    session.call("initialize_sandbox", identifier=sandbox)
    task = session.rpc("tools/call", {
        "name": "execute_code", "task": {"ttl": HOUR}, "arguments": {
            "identifier": sandbox, "language": "bash",
            "code": "echo one; echo two >&2; sleep 1; echo three"}})["task"]
    assert task["ttl"] == HOUR
    answer = result(session, task)
    words = text(answer)
    assert words.index("one") < words.index("two") < words.index("three")
    assert result(session, task) == answer


def test_no_run_no_task(session, sandbox):
    e = refusal(session, "tools/call", name="execute_code", task={},
                arguments={"identifier": sandbox, "code": "1"})
    assert e.code == -32000
    assert "initialize_sandbox" in e.message
    e = refusal(session, "tools/call", name="run_sandbox", task={},
                arguments={"identifier": sandbox, "commands": []})
    assert e.code == -32602
    assert "invalid_arguments" in e.message
    e = refusal(session, "tools/call", name="get_run", task={},
                arguments={"run_id": UNKNOWN})
    assert e.code == -32601
    assert "params.task" in e.message


def test_a_cancel_ends_the_run_and_is_final(session, place):
    task = begin(session, place, "echo begun; sleep 600")
    wait_for(lambda: "running" in get(session, task).get("statusMessage", ""),
             60, "that it runs")
    then = cancel(session, task)
    assert then["status"] == "cancelled"
    assert get(session, task)["status"] == "cancelled"
    answer = result(session, task)  # when the run has ended
    assert "begun" in text(answer)
    assert get(session, task)["status"] == "cancelled"
    e = refusal(session, "tasks/cancel", taskId=task["taskId"])
    assert e.code == -32602
    done = begin(session, place, "true")
    wait_status(session, done, "completed")
    e = refusal(session, "tasks/cancel", taskId=done["taskId"])
    assert e.code == -32602 and "ended" in e.message


def test_a_cancel_by_other_means_is_the_tasks_too(session, place):
    task = begin(session, place, "sleep 600")
    run = session.call("list_runs", identifier=place)["runs"][0]["run_id"]
    session.cancel(run)
    wait_status(session, task, "cancelled")


def test_who_waits_no_more_has_not_cancelled(session, place):
    task = begin(session, place, "sleep 2; echo done")
    other = type(session)(session.port)
    other.session = session.session
    other.revision = session.revision
    conn = other.connect()
    conn.request("POST", "/mcp", json.dumps({
        "jsonrpc": "2.0", "id": "gone", "method": "tasks/result",
        "params": {"taskId": task["taskId"]}}), {
            "Content-Type": "application/json", "Accept":
            "application/json, text/event-stream",
            "Mcp-Session-Id": session.session,
            "MCP-Protocol-Version": session.revision})
    wait_for(lambda: "running" in get(session, task).get("statusMessage", ""),
             60, "that it runs")
    assert session.post({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "gone"}})[0] == 202
    conn.getresponse().read()
    other.close()
    assert "done" in text(result(session, task))
    assert get(session, task)["status"] == "completed"


@pytest.mark.own
def test_pages_of_a_list(server, session, sandbox):
    assert listed(session) == ([], 1)
    session.run(sandbox, "true")
    tasks = [begin(session, sandbox, "true")["taskId"] for _ in range(53)]
    ids, pages = listed(session)
    assert ids == tasks[::-1] and pages == 2
    first = session.rpc("tasks/list")
    assert len(first["tasks"]) == 50
    assert {t["status"] for t in first["tasks"]} <= {"working", "completed"}
    for bad in ("x", "", first["nextCursor"][:-1], first["nextCursor"] + "0",
                "f" * 52, 7):
        e = refusal(session, "tasks/list", cursor=bad)
        assert e.code == -32602, bad


def test_what_is_no_task(session):
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        for bad in (UNKNOWN, "x", "../" * 40):
            e = refusal(session, method, taskId=bad)
            assert e.code == -32602
            assert e.message.startswith("Task not found: " + bad[:80])
        for bad in (None, 7, {}, "", "a\0b"):
            assert refusal(session, method, taskId=bad).code == -32602


def test_revisions_without_tasks(server, sandbox):
    old = server.client(revision="2025-06-18")
    assert "tasks" not in old.initialize()["capabilities"]
    answer = old.rpc("tools/call", {
        "name": "run_sandbox", "task": {}, "arguments": {
            "identifier": sandbox, "commands": [{"shell": "echo plain"}]}})
    assert "plain" in text(answer)
    assert refusal(old, "tasks/list").code == -32601
    old.close()


def test_how_long_a_task_is_kept(session, place):
    for wish, ttl in ((1, HOUR / 4), (HOUR, HOUR), (30 * 24 * HOUR,
                                                    7 * 24 * HOUR),
                      (1.5 * HOUR, 1.5 * HOUR), (None, 24 * HOUR)):
        task = begin(session, place, "true", task={"ttl": wish})
        assert task["ttl"] == ttl, wish
        assert get(session, task)["ttl"] == ttl
    for bad in (-1, "x", [], True):
        e = refusal(session, "tools/call", name="run_sandbox",
                    task={"ttl": bad}, arguments={
                        "identifier": place,
                        "commands": [{"shell": "true"}]})
        assert e.code == -32602, bad


@pytest.mark.own
def test_an_expired_task_is_unknown(server, session, place):
    task = begin(session, place, "true")
    kept = begin(session, place, "true")
    wait_status(session, task, "completed")
    server.stop()
    server.change(
        "UPDATE task SET expires_ms = 5 WHERE uuid = "
        f"x'{task['taskId'].replace('-', '')}'")
    server.start()
    session = server.client()
    session.initialize()
    assert refusal(session, "tasks/get", taskId=task["taskId"]).code == -32602
    assert listed(session)[0] == [kept["taskId"]]
    wait_for(lambda: server.sql("SELECT count(*) FROM task") == [(1,)], 90,
             "that it is swept")


@pytest.mark.own
def test_a_principal_has_so_many(server, session, place):
    server.stop()
    server.change(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 999) INSERT INTO task SELECT randomblob(16), 1, 'local',"
        " randomblob(16), 'run_sandbox', '{}', i, 9000000000000, 0 FROM n")
    server.start()
    session = server.client()
    session.initialize()
    last = begin(session, place, "true")
    began = time.monotonic()
    ids, pages = listed(session)
    assert len(ids) == 1000 and pages == 20
    assert time.monotonic() - began < 5
    assert ids[0] == last["taskId"]
    runs = server.sql("SELECT count(*) FROM run")
    e = refusal(session, "tools/call", name="run_sandbox", task={},
                arguments={"identifier": place,
                           "commands": [{"shell": "true"}]})
    assert e.code == -32000
    assert "1000 tasks of yours are kept" in e.message
    assert server.sql("SELECT count(*) FROM run") == runs
    # What a task stood for may be gone, as a run's history is.
    gone = session.rpc("tasks/get", {"taskId": ids[1]})
    assert gone["status"] == "failed"
    assert "not kept" in gone["statusMessage"]


@pytest.mark.own
def test_kill_of_everything(server, session, sandbox):
    session.run(sandbox, "true")
    done = begin(session, sandbox, "echo done")
    answer = result(session, done)
    stopped = begin(session, sandbox, "sleep 600")
    cancel(session, stopped)
    lasting = begin(session, sandbox, "echo first; sleep 8; echo last")
    wait_for(lambda: "running" in get(
        session, lasting).get("statusMessage", ""), 60, "that it runs")
    before = [get(session, t) for t in (done, stopped)]
    server.restart(signal.SIGKILL)
    session = server.client()
    session.initialize()
    assert [get(session, t) for t in (done, stopped)] == before
    assert get(session, lasting)["status"] == "working"
    assert listed(session)[0] == [
        t["taskId"] for t in (lasting, stopped, done)]
    assert result(session, done) == answer
    words = text(result(session, lasting))
    assert "first" in words and "last" in words
    assert get(session, lasting)["status"] == "completed"
    assert result(session, lasting)["_meta"][RELATED] == {
        "taskId": lasting["taskId"]}


def ask_on(client, name, acknowledged):
    """Tasks until the server is gone."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        while True:
            acknowledged.append(begin(client, name, "echo here")["taskId"])


@pytest.mark.own
def test_what_was_acknowledged_is_there_after_a_kill(server, session, sandbox):
    session.run(sandbox, "true")
    acknowledged = []
    for _ in range(3):
        before = len(acknowledged)
        asker = server.client()
        asker.initialize()
        thread = threading.Thread(
            target=ask_on, args=(asker, sandbox, acknowledged))
        thread.start()
        wait_for(lambda n=before: len(acknowledged) >= n + 15, 60, "tasks")
        server.stop(signal.SIGKILL)
        thread.join(60)
        server.start()
        session = server.client()
        session.initialize()
        assert set(acknowledged) <= set(listed(session)[0])
    for task in acknowledged:
        assert "here" in text(result(session, {"taskId": task}))


@pytest.mark.own
def test_code_after_a_kill_has_its_output_as_it_came(server, session, sandbox):
    session.call("initialize_sandbox", identifier=sandbox)
    task = session.rpc("tools/call", {
        "name": "execute_code", "task": {}, "arguments": {
            "identifier": sandbox, "language": "bash", "code":
            "echo one; sleep .1; echo two >&2; sleep 8; echo three"}})["task"]
    wait_for(lambda: "running" in get(
        session, task).get("statusMessage", ""), 60, "that it runs")
    server.restart(signal.SIGKILL)
    session = server.client()
    session.initialize()
    words = text(result(session, task))
    assert words.index("one") < words.index("two") < words.index("three")


@pytest.mark.own
def test_a_task_is_its_principals_alone(server):
    one, two = Tenant(server, "one"), Tenant(server, "two")
    ann, eve = one.client, two.client
    bob = server.client(token=server.ctl.token("one"))
    for client in (ann, bob, eve):
        client.initialize()
    task = begin(ann, "a", "sleep 600")
    for other in (bob, eve):
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            e = refusal(other, method, taskId=task["taskId"])
            unknown = refusal(other, method, taskId=UNKNOWN)
            assert e.code == unknown.code == -32602
            assert e.message.replace(task["taskId"], UNKNOWN) == \
                unknown.message
        assert listed(other) == ([], 1)
    assert get(ann, task)["status"] == "working"
    assert listed(ann) == ([task["taskId"]], 1)
    cancel(ann, task)
