"""Events of a run, artifacts, metrics and health."""
import hashlib
import json

from client import Follower, parse_events


def test_events_come_in_order_and_the_stream_ends(server, client, sandbox):
    run = client.start(sandbox, "echo a; echo b >&2", "echo c")["run_id"]
    f = Follower(server.port, run)
    f.start()
    f.join(60)
    names = [e["event"] for e in f.events]
    assert names[0] == "run_started"
    assert names[-2:] == ["artifacts_extracted", "run_finished"]
    assert names.count("command_started") == 2
    assert names.count("command_finished") == 2
    assert f.text(0) == "a\n"
    assert f.text(0, "command_stderr") == "b\n"
    assert f.text(1) == "c\n"


def test_a_finished_run_replays_and_resumes_after_any_event(
        server, client, sandbox):
    run = client.run(sandbox, "for i in 1 2 3; do echo $i; sleep 0.05; done")
    status, headers, data = server.get(f"/mcp/events?run_id={run['run_id']}")
    assert status == 200
    assert headers["Content-Type"].startswith("text/event-stream")
    whole = parse_events(data.decode())
    for i, event in enumerate(whole):
        _, _, data = server.get(f"/mcp/events?run_id={run['run_id']}",
                                {"Last-Event-ID": event["id"]})
        assert parse_events(data.decode()) == whole[i + 1:]


def test_a_failed_run_ends_with_run_failed(server, client, sandbox):
    run = client.run(sandbox, "exit 2")
    _, _, data = server.get(f"/mcp/events?run_id={run['run_id']}")
    last = parse_events(data.decode())[-1]
    assert last["event"] == "run_failed"
    assert "exit 2" in json.loads(last["data"])["error"]


def test_artifacts_are_listed_served_and_only_new_ones_per_run(
        server, client, sandbox):
    first = client.run(
        sandbox, "mkdir -p /artifacts/sub && echo one > /artifacts/a.txt && "
        "head -c 300000 /dev/urandom > /artifacts/sub/b.bin && "
        "ln -s /etc/passwd /artifacts/link && mkfifo /artifacts/fifo && "
        "sha256sum /artifacts/sub/b.bin")
    files = {a["path"]: a["size"] for a in first["artifacts"]}
    assert files == {"a.txt": 4, "sub/b.bin": 300000}
    digest = first["commands"][0]["stdout"].split()[0]
    second = client.run(sandbox, "echo two > /artifacts/a.txt")
    assert [a["path"] for a in second["artifacts"]] == ["a.txt"]

    base = f"/artifacts/{sandbox}"
    status, headers, data = server.get(f"{base}/{first['run_id']}/sub/b.bin")
    assert status == 200
    assert hashlib.sha256(data).hexdigest() == digest
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Disposition"].startswith("attachment")
    assert server.get(f"{base}/{first['run_id']}/a.txt")[2] == b"one\n"
    assert server.get(f"{base}/latest/a.txt")[2] == b"two\n"
    assert server.get(f"{base}/latest/sub/b.bin")[0] == 200
    assert server.get(f"{base}/latest/link")[0] == 404
    assert server.get(f"{base}/latest/../{sandbox}/latest/a.txt")[0] in \
        (400, 404)
    status, _, data = server.get(f"{base}/latest/sub/b.bin",
                                 {"Range": "bytes=5-9"})
    assert (status, len(data)) == (206, 5)


def test_many_and_awkward_artifact_names(client, sandbox):
    final = client.run(sandbox, {"argv": [
        "python3", "-c", "import os\n"
        "os.chdir('/artifacts')\n"
        "for i in range(300): open(f'f{i}', 'w').write(str(i))\n"
        "open('späce d', 'w').write('x')\n"
        "open(b'bad\\xff', 'w').write('x')"]}, wait_ms=90000)
    names = {a["path"] for a in final["artifacts"]}
    assert "späce d" in names and len(names) == 301
    assert "bad" in final["artifacts_error"]
