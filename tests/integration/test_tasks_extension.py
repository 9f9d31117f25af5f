"""Tasks of MCP 2026-07-28: the server decides, the result is in the task."""
import contextlib
import http.client
import json
import signal
import time

import pytest

from client import last_response, wait_for

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
EXTENSION = META + "tasks"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


class Modern:
    """Requests without a session, each with all that is to be said."""

    def __init__(self, client):
        self.client = client

    def message(self, method, params, tasks=True):
        """(body, headers)"""
        can = {"extensions": {EXTENSION: {}}} if tasks else {}
        name = params.get("name") or params.get("taskId")
        self.client.next_id += 1
        return json.dumps({
            "jsonrpc": "2.0", "id": self.client.next_id, "method": method,
            "params": {**params, "_meta": {
                META + "protocolVersion": REVISION,
                META + "clientCapabilities": can,
                META + "clientInfo": {"name": "test", "version": "1"}}}}), {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION, "Mcp-Method": method,
            **({"Mcp-Name": name} if name else {})}

    def ask(self, method, params, tasks=True):
        """(status, answer)"""
        status, headers, data = self.client.request(
            "POST", "/mcp", *self.message(method, params, tasks))
        answer = last_response(data) if headers["Content-Type"].startswith(
            "text/event-stream") else json.loads(data)
        return status, answer

    def result(self, method, params, **more):
        status, answer = self.ask(method, params, **more)
        assert status == 200 and "result" in answer, (status, answer)
        return answer["result"]

    @contextlib.contextmanager
    def listening(self, *tasks):
        """Messages of a stream that tells of tasks."""
        conn = http.client.HTTPConnection("127.0.0.1", self.client.port,
                                          timeout=60)
        conn.request("POST", "/mcp", *self.message("subscriptions/listen", {
            "notifications": {"taskIds": [t["taskId"] for t in tasks]}}))
        answer = conn.getresponse()
        assert answer.status == 200
        try:
            yield (json.loads(line[6:]) for line in answer
                   if line.startswith(b"data: {"))
        finally:
            conn.close()

    def run(self, name, command, tasks=True, **options):
        return self.result("tools/call", {
            "name": "run_sandbox", "arguments": {
                "identifier": name, "commands": [{"shell": command}],
                "options": options}}, tasks=tasks)

    def get(self, task):
        return self.result("tasks/get", {"taskId": task["taskId"]})

    def cancel(self, task):
        return self.result("tasks/cancel", {"taskId": task["taskId"]})

    def wait(self, task, status, seconds=60):
        return wait_for(
            lambda: (now := self.get(task))["status"] == status and now,
            seconds, status)


def text(answer):
    return answer["content"][0]["text"]


@pytest.fixture
def modern(client):
    return Modern(client)


@pytest.fixture
def place(modern, sandbox):
    modern.run(sandbox, "true")
    return sandbox


def test_what_is_announced(modern):
    can = modern.result("server/discover", {})["capabilities"]
    assert can["extensions"][EXTENSION] == {}
    assert "tasks" not in can


def test_what_ends_in_time_is_answered_at_once(modern, place):
    answer = modern.run(place, "echo quick")
    assert answer["resultType"] == "complete" and "quick" in text(answer)


def test_what_does_not_is_a_task_with_the_result(modern, place):
    task = modern.run(place, "echo one; sleep 3; echo two",
                      await_timeout_ms=500)
    assert task["resultType"] == "task"
    assert task["status"] == "working"
    assert task["ttlMs"] == 24 * 3600 * 1000
    assert task["statusMessage"].startswith("running for ")
    assert "content" not in task and "task" not in task
    now = modern.get(task)
    assert now["resultType"] == "complete" and now["status"] == "working"
    assert "result" not in now
    done = modern.wait(task, "completed")
    assert "one" in text(done["result"]) and "two" in text(done["result"])
    assert not done["result"].get("isError")
    assert META + "related-task" not in done["result"].get("_meta", {})
    assert modern.get(task)["result"] == done["result"]


def test_code_that_is_long_is_a_task(make_server, sandbox):
    server = make_server(env={"DEFAULT_AWAIT_TIMEOUT_MS": "800"})
    modern = Modern(server.client())
    modern.result("tools/call", {
        "name": "initialize_sandbox", "arguments": {"identifier": sandbox}})
    call = {"name": "execute_code", "arguments": {
        "identifier": sandbox, "language": "bash",
        "code": "echo one; sleep 3; echo two >&2"}}
    task = modern.result("tools/call", call)
    assert task["resultType"] == "task"
    words = text(modern.wait(task, "completed")["result"])
    assert words.index("one") < words.index("two")
    plain = modern.result("tools/call", call, tasks=False)
    assert plain["resultType"] == "complete"
    assert "get_run" in text(plain) and "one" in text(plain)


def test_who_does_not_take_tasks_gets_none(modern, place):
    answer = modern.run(place, "sleep 3", tasks=False, await_timeout_ms=300)
    assert answer["resultType"] == "complete"
    assert "get_run" in text(answer)
    answer = modern.run(place, "sleep 3", await_completion=False)
    assert answer["resultType"] == "complete"  # it asked not to wait
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        status, answer = modern.ask(method, {
            "taskId": UNKNOWN, "inputResponses": {}}, tasks=False)
        assert status == 400
        assert answer["error"]["code"] == -32021
        assert answer["error"]["data"] == {
            "requiredCapabilities": {"extensions": {EXTENSION: {}}}}


def test_a_hint_of_the_revision_before_is_ignored(modern, place):
    answer = modern.result("tools/call", {
        "name": "run_sandbox", "task": {"ttl": 1}, "arguments": {
            "identifier": place, "commands": [{"shell": "echo plain"}]}})
    assert answer["resultType"] == "complete" and "plain" in text(answer)
    for method in ("tasks/list", "tasks/result"):
        status, answer = modern.ask(method, {"taskId": UNKNOWN})
        assert status == 404
        assert answer["error"]["code"] == -32601


def test_a_cancel_is_taken_also_after_the_end(modern, place):
    task = modern.run(place, "sleep 600", await_timeout_ms=300)
    taken = modern.cancel(task)
    assert taken["resultType"] == "complete" and "taskId" not in taken
    now = modern.wait(task, "cancelled")
    assert "result" not in now
    assert modern.cancel(task)["resultType"] == "complete"
    status, answer = modern.ask("tasks/cancel", {"taskId": UNKNOWN})
    assert answer["error"]["code"] == -32602


def test_tasks_here_never_ask(modern, place):
    task = modern.run(place, "sleep 600", await_timeout_ms=300)
    taken = modern.result("tasks/update", {
        "taskId": task["taskId"], "inputResponses": {"x": {}}})
    assert taken["resultType"] == "complete" and "status" not in taken
    assert modern.get(task)["status"] == "working"
    status, answer = modern.ask("tasks/update", {
        "taskId": UNKNOWN, "inputResponses": {}})
    assert answer["error"]["code"] == -32602
    modern.cancel(task)


def test_who_listens_is_told_of_the_end(modern, place):
    task = modern.run(place, "sleep 3; echo out", await_timeout_ms=300)
    other = modern.run(place, "sleep 600", await_timeout_ms=300)
    with modern.listening(task, other, {"taskId": UNKNOWN}) as messages:
        first = next(messages)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"]["taskIds"] == [
            task["taskId"], other["taskId"]]
        told = next(m["params"] for m in messages
                    if m["params"]["taskId"] == task["taskId"]
                    and m["params"]["status"] != "working")
        assert told["status"] == "completed"
        assert "out" in text(told["result"])
        modern.cancel(other)
        assert next(m["params"] for m in messages)["status"] == "cancelled"


@pytest.mark.own
def test_who_listens_after_a_kill_is_told_too(server, modern, sandbox):
    modern.run(sandbox, "true")
    task = modern.run(sandbox, "sleep 6; echo out", await_timeout_ms=300)
    server.restart(signal.SIGKILL)
    modern = Modern(server.client())
    with modern.listening(task) as messages:
        next(messages)
        told = next(m["params"] for m in messages
                    if m["params"]["status"] != "working")
    assert told["status"] == "completed" and "out" in text(told["result"])


@pytest.mark.own
def test_one_task_both_forms(server, modern, sandbox):
    modern.run(sandbox, "true")
    task = modern.run(sandbox, "sleep 4; echo out", await_timeout_ms=300)
    old = server.client()
    old.initialize()
    named = {"taskId": task["taskId"]}
    assert old.rpc("tasks/get", named)["ttl"] == task["ttlMs"]
    assert [t["taskId"] for t in old.rpc("tasks/list")["tasks"]] == [
        task["taskId"]]
    server.restart(signal.SIGKILL)
    modern = Modern(server.client())
    assert modern.get(task)["status"] == "working"
    done = modern.wait(task, "completed")
    assert "out" in text(done["result"])
    old = server.client()
    old.initialize()
    answer = old.rpc("tasks/result", named)
    assert answer["content"] == done["result"]["content"]


@pytest.mark.own
def test_without_room_for_a_task_the_answer_is_plain(server, modern, sandbox):
    modern.run(sandbox, "true")
    server.stop()
    server.change(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 1000) INSERT INTO task SELECT randomblob(16), 1, 'local',"
        " randomblob(16), 'run_sandbox', '{}', i, 9000000000000, 0 FROM n")
    server.start()
    modern = Modern(server.client())
    began = time.monotonic()
    answer = modern.run(sandbox, "sleep 4; echo later", await_timeout_ms=300)
    assert time.monotonic() - began < 4
    assert answer["resultType"] == "complete"
    assert "get_run" in text(answer)
