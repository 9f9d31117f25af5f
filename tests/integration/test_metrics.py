"""GET /metrics of the real server: what it says, and that it never falls."""
import re

import pytest

from client import wait_for

pytestmark = pytest.mark.own

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def scrape(server, accept=None):
    """-> {name with labels: value}, of every sample"""
    status, headers, body = server.get(
        "/metrics", {"Accept": accept} if accept else {})
    assert status == 200
    found = {}
    for line in body.decode().splitlines():
        if line.startswith("#"):
            continue
        m = re.fullmatch(r"([a-z_]+(?:\{[^}]*\})?) ([0-9.]+)"
                         r"( # \{[^}]*\} [0-9.]+ [0-9.]+)?", line)
        assert m, line
        assert m[1] not in found, line
        found[m[1]] = float(m[2])
    return found


def counters(samples):
    """Those that may only grow."""
    return {name: value for name, value in samples.items()
            if re.search(r"_(total|count|sum|bucket)(\{|$)", name)}


def test_runs_are_counted_by_how_they_end_and_how_long_they_took(server,
                                                                 client):
    assert client.run("box", "true")["state"] == "completed"
    assert client.run("box", "kill -9 $$")["state"] == "failed"
    found = scrape(server)
    assert found['sandboxd_runs_ended_total{reason="exit"}'] == 1
    assert found['sandboxd_runs_ended_total{reason="signal"}'] == 1
    assert found['sandboxd_runs_ended_total{reason="memory"}'] == 0
    for name in ("queue", "start", "duration"):
        name = f"sandboxd_run_{name}_seconds"
        assert found[f"{name}_count"] == 2
        assert found[name + '_bucket{le="+Inf"}'] == 2
        assert found[f"{name}_sum"] < 120
    assert found['sandboxd_http_request_seconds_count{route="/mcp"}'] >= 2
    assert found["sandboxd_store_commit_seconds_count"] >= 1
    assert found["sandboxd_spool_bytes"] == 0


def test_openmetrics_names_the_runs(server, client):
    run = client.run("box", "true")["run_id"]
    status, headers, body = server.get("/metrics", {"Accept": OPENMETRICS})
    assert status == 200
    assert headers["Content-Type"] == \
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    text = body.decode()
    assert text.endswith("\n# EOF\n")
    assert f'# {{run_id="{run}",trace_id="' in text
    scrape(server, OPENMETRICS)


def test_no_counter_falls_when_a_front_or_a_worker_is_killed(server, client):
    for _ in range(3):
        client.run("box", "echo 1")
    before = counters(scrape(server))
    for role in ("front", "worker", "front"):
        server.kill(role)
        now = counters(scrape(server))
        assert not {n: (v, now.get(n)) for n, v in before.items()
                    if now.get(n, -1) < v}
        wait_for(lambda: server.metric("sandboxd_workers_ready") == 2, 60,
                 "the workers")
        assert client.run("box", "true")["state"] == "completed"
        before = counters(scrape(server))
    again = "sandboxd_process_restarts_total"
    assert before[again + '{role="front"}'] >= 2
    assert before[again + '{role="worker"}'] >= 2
    for role in ("supervisor", "front", "worker"):
        name = f'sandboxd_process_resident_bytes{{role="{role}"}}'
        wait_for(lambda name=name: (server.metric(name) or 0) > 1 << 20,
                 60, f"memory of {role}")
