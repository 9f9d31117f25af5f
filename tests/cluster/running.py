"""A cluster for tests: a process apart, and what a test says to it.

    with running() as cluster:
        cluster.url, cluster.ca, cluster.token (a file), cluster.kubeconfig
        cluster.admin_kubeconfig        of who may do everything
        cluster.namespace               where the account of the token has
                                        its Role
        cluster.faults.NAME(...)        bad days: faults.py has them
        cluster.ask("GET", "/api/v1/nodes")     as who may do everything

At the end it is an error that a client sent what the real server mishandles,
but for what a test took with cluster.faults.take_violations().
"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
ANSWER_S, STOP_S = 20, 60


class ControlConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=ANSWER_S)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER_S)
        self.sock.connect(self.unix_path)


class FaultError(Exception):
    """The cluster did not do what a test wanted."""


class FaultsOf:
    """The methods of faults.Faults, in another process."""

    def __init__(self, path):
        self._path = path

    def __getattr__(self, name):
        def call(**arguments):
            connection = ControlConnection(self._path)
            with contextlib.closing(connection):
                connection.request("POST", f"/test/{name}",
                                   json.dumps(arguments))
                answer = connection.getresponse()
                said = json.loads(answer.read())
            if answer.status != 200:
                raise FaultError(said["error"])
            return said["result"]

        return call


class Running:
    def __init__(self, **environment):
        self.directory = tempfile.mkdtemp(prefix="cluster-", dir="/tmp")
        self.environment = os.environ | environment
        self.process = None

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, *arguments):
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                [PYTHON, HERE, "--directory", self.directory, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                env=self.environment)
        line = self.process.stdout.readline()
        assert line, f"the cluster did not start: {self.log()}"
        for name, value in json.loads(line).items():
            setattr(self, name, value)
        self.faults = FaultsOf(self.control)
        return self

    def log(self):
        with open(self.path("log"), encoding="utf-8") as f:
            return f.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def clear(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def admin_token(self):
        with open(self.admin_kubeconfig, encoding="utf-8") as f:
            return json.load(f)["users"][0]["user"]["token"]

    def client_certificate(self, name):
        """(certificate, key) of the cluster's authority."""
        return self.faults.issue(name=name)

    def account_token(self):
        """Of who has the Role."""
        with open(self.token, encoding="utf-8") as f:
            return f.read()

    def account(self):
        """Its fields of a request."""
        return {"Authorization": f"Bearer {self.account_token()}"}

    def stream(self, seconds, alpn=()):
        """A socket with TLS on it."""
        context = ssl.create_default_context(cafile=self.ca)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context.wrap_socket(socket.create_connection(
            ("127.0.0.1", self.port), seconds), server_hostname="localhost")

    def connection(self):
        """A new one, by TLS."""
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=ANSWER_S,
            context=ssl.create_default_context(cafile=self.ca))

    def exchange(self, method, path, body=None, token=None, **headers):
        """(status, headers, bytes); token=None: as who may do everything."""
        fields = {k.replace("_", "-"): v for k, v in headers.items()}
        fields["Authorization"] = f"Bearer {token or self.admin_token()}"
        if body is not None and "Content-Type" not in fields:
            fields["Content-Type"] = "application/json"
        connection = self.connection()
        with contextlib.closing(connection):
            connection.request(method, path, body if body is None or
                               isinstance(body, (str, bytes)) else
                               json.dumps(body), fields)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def ask(self, method, path, body=None, **kwargs):
        """(status, JSON or text)"""
        status, headers, data = self.exchange(method, path, body, **kwargs)
        if headers.get("Content-Type", "").startswith("application/json"):
            return status, json.loads(data)
        return status, data.decode()


@contextlib.contextmanager
def running(*arguments, **environment):
    cluster = Running(**environment)
    try:
        cluster.start(*arguments)
        yield cluster
        left = cluster.faults.take_violations()
        assert not left, f"what the real server mishandles: {left}"
        assert cluster.log() == "", cluster.log()
    finally:
        try:
            if cluster.process is not None:
                cluster.stop()
        finally:
            cluster.clear()
