"""A real Prometheus, Debian's, scrapes the real server and answers queries."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import pytest

from client import wait_for
from server import write

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DOCS = os.path.join(TOP, "docs", "prometheus")
sys.path.insert(0, os.path.join(TOP, "tests", "prometheus"))

import used  # noqa: E402

pytestmark = pytest.mark.own

CONFIG = """
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: ['{dir}/*.rules.yml']
scrape_configs:
  - job_name: mcp-sandboxd
    authorization: {{credentials_file: {dir}/token}}
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""


@pytest.fixture(scope="session")
def programs():
    """Where prometheus and promtool are, by Debian's package."""
    where = os.path.join(TOP, "build", "prometheus")
    subprocess.run([os.path.join(TOP, "tests", "prometheus", "fetch"), where],
                   check=True, timeout=600)
    return os.path.join(where, "usr", "bin")


class Prometheus:
    """One in a directory of its own, on a port of its own."""

    def __init__(self, programs, port, token=""):
        self.dir = tempfile.mkdtemp(prefix="mcp-sandboxd-prometheus-")
        write(os.path.join(self.dir, "token"), token or "none")
        self.config = os.path.join(self.dir, "prometheus.yml")
        write(self.config, CONFIG.format(dir=self.dir, port=port))
        for name in ("alerts", "recording"):
            self.write_rules(name)
        # Held while it runs: nobody else is given that port meanwhile.
        self.held = socket.socket()
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))
        self.port = self.held.getsockname()[1]
        self.log = open(os.path.join(self.dir, "log"), "wb")
        self.proc = subprocess.Popen(
            [os.path.join(programs, "prometheus"),
             f"--config.file={self.config}",
             f"--storage.tsdb.path={self.dir}/data",
             f"--web.listen-address=127.0.0.1:{self.port}",
             "--web.console.templates=/nowhere",
             "--web.console.libraries=/nowhere",
             "--enable-feature=exemplar-storage"],
            stdout=self.log, stderr=self.log, cwd=self.dir,
            env={"PATH": "/usr/bin:/bin", "GOMAXPROCS": "1"})

    def write_rules(self, name):
        """Ours, but for a group's interval: the first turn of a group comes
        somewhere within one."""
        with open(os.path.join(DOCS, name + ".yml"), encoding="utf-8") as f:
            text = f.read()
        write(os.path.join(self.dir, name + ".rules.yml"),
              re.sub(r"^( +interval:) .*$", r"\1 1s", text, flags=re.M))

    def ask(self, path, **query):
        """-> what the API has, or None while there is nobody"""
        url = f"http://127.0.0.1:{self.port}/{path}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        try:
            with urllib.request.urlopen(url, timeout=60) as f:
                text = f.read()
        except urllib.error.HTTPError as e:
            if e.code == 503:  # it is starting
                return None
            raise AssertionError(e.read()) from e
        except OSError:
            assert self.proc.poll() is None, self.said()
            return None
        return json.loads(text)["data"] if path.startswith("api") else text

    def query(self, expression):
        """-> the values of an instant query; None: there are none yet"""
        found = self.ask("api/v1/query", query=expression)
        return [float(x["value"][1]) for x in found["result"]] \
            if found and found["result"] else None

    def said(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()[-4000:]

    def stop(self):
        self.proc.kill()
        self.proc.wait()
        self.held.close()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture
def make_prometheus(programs):
    made = []

    def make(*args):
        made.append(Prometheus(programs, *args))
        return made[-1]
    yield make
    for p in made:
        p.stop()


def check(programs, text):
    return subprocess.run(
        [os.path.join(programs, "promtool"), "check", "metrics"], input=text,
        capture_output=True, check=False, timeout=120)


def test_promtool_finds_nothing_wrong_idle_and_after_work(server, client,
                                                          programs):
    for idle in (True, False):
        if not idle:
            client.run("box", "echo 1; echo 2 >/artifacts/a")
            client.run("box", "exit 3", "kill -9 $$")
        done = check(programs, server.get("/metrics")[2])
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_promtool_is_heard_when_something_is_wrong(programs):
    done = check(programs, b"# TYPE a_total gauge\na_total 1\n")
    assert done.returncode != 0


def test_rules_are_good_and_their_tests_pass(programs):
    promtool = os.path.join(programs, "promtool")
    for words in (["check", "rules", "alerts.yml", "recording.yml"],
                  ["test", "rules", "rules_test.yml"]):
        done = subprocess.run([promtool, *words], cwd=DOCS, timeout=300,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_real_prometheus_scrapes_and_answers(server, client,
                                               make_prometheus):
    run = client.run("box", "true")["run_id"]
    p = make_prometheus(server.port)
    wait_for(lambda: p.query('up{job="mcp-sandboxd"} == 1'), 120,
             "a scrape that came through")
    # A scrape may be late on a busy machine, and then there is nothing.
    wait_for(lambda: p.query('mcp_runs_total{status="completed"} == 1'), 120,
             "the run")
    # OpenMetrics: it knows units, beginnings, and whose run it was.
    told = p.ask("api/v1/metadata")
    assert told["sandboxd_run_queue_seconds"][0]["type"] == "histogram"
    assert told["sandboxd_run_queue_seconds"][0]["unit"] == "seconds"
    wait_for(lambda: p.query("sandboxd_runs_ended_created"), 120,
             "a beginning")
    found = wait_for(lambda: p.ask(
        "api/v1/query_exemplars",
        query="sandboxd_run_duration_seconds_bucket",
        start=0, end=4102444800), 120, "an exemplar")
    assert found[0]["exemplars"][0]["labels"]["run_id"] == run
    client.run("box", "true")
    wait_for(lambda: p.query(
        'mcp_runs_total{status="completed"} == 2'), 120, "another run")
    wait_for(lambda: p.query(
        "histogram_quantile(0.95, sum by (le) (rate("
        "sandboxd_run_duration_seconds_bucket[1m]))) > 0"), 120, "a rate")
    wait_for(lambda: p.query(
        'sandboxd_engine_requests_total{operation="create"} >= 1'), 120,
        "what a worker counted")


def test_rules_and_dashboard_are_understood_by_it(server, make_prometheus):
    p = make_prometheus(server.port)
    wait_for(lambda: p.query("up == 1"), 120, "a scrape")

    def rules():
        groups = (p.ask("api/v1/rules") or {"groups": []})["groups"]
        return [r for g in groups for r in g["rules"]]
    wait_for(lambda: rules() and all(r["health"] != "unknown"
                                     for r in rules()), 120, "all rules")
    assert not [r for r in rules() if r["health"] != "ok"]
    assert len(rules()) >= 20
    seen = 0
    for expression in used.expressions_of_dashboard(used.read("grafana.json")):
        if expression.startswith(("by (", "label_values(")):
            continue
        expression = expression.replace("$__rate_interval", "1m")
        assert p.ask("api/v1/query",
                     query=expression.replace("$instance", ".*")) is not None
        seen += 1
    assert seen >= 25


def test_a_scrape_needs_the_role(make_server, tokens, make_prometheus):
    bad = tokens.tenant("acme")
    good = tokens.token("-", "metrics")
    server = make_server(env={"TENANTS_FILE": tokens.write()})
    p, q = (make_prometheus(server.port, t) for t in (good, bad))
    wait_for(lambda: p.query("up == 1"), 120, "a scrape with the role")

    def errors():
        """Of the last scrape of each target."""
        return [t["lastError"] for t in (q.ask("api/v1/targets") or {}).get(
            "activeTargets", [])]
    wait_for(lambda: any("403" in e for e in errors()), 120, "one without")
    assert not q.query("up == 1")
