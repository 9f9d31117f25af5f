"""A cluster that is there already, by its kubeconfig: what tests of our server
ask of one, as Running has it, but for the bad days."""
import base64
import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.parse

from .kubectl import LIMIT_S, program

ANSWER_S = 60


class Remote:
    """kubeconfig: a copy of its current context alone, in a directory of its
    own that clear() removes."""

    def __init__(self, kubeconfig):
        self.directory = tempfile.mkdtemp(prefix="cluster-", dir="/tmp")
        self.kubeconfig = self.path("kubeconfig")
        said = subprocess.run(
            [program(), "--kubeconfig", kubeconfig, "config", "view",
             "--raw", "--flatten", "--minify", "-o", "json"],
            stdout=subprocess.PIPE, timeout=LIMIT_S, check=True).stdout
        self.write("kubeconfig", said)
        whole = json.loads(said)
        self.namespace = whole["contexts"][0]["context"].get(
            "namespace", "default")
        where = whole["clusters"][0]["cluster"]
        user = whole["users"][0]["user"]
        self.address = urllib.parse.urlsplit(where["server"])
        self.token, self.token_file = user.get("token"), user.get("tokenFile")
        self.tls = ssl.create_default_context(cadata=base64.b64decode(
            where["certificate-authority-data"]).decode())
        if "client-certificate-data" in user:
            for name in ("certificate", "key"):
                self.write(name, base64.b64decode(user[f"client-{name}-data"]))
            self.tls.load_cert_chain(
                self.path("certificate"), self.path("key"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data):
        with open(self.path(name), "wb",
                  opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(data)

    def clear(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def account(self):
        """Fields of a request, where a certificate does not say who asks."""
        token = self.token
        if self.token_file:
            with open(self.token_file, encoding="utf-8") as f:
                token = f.read()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def stream(self, seconds, alpn=()):
        """A socket with TLS on it."""
        assert not alpn, "one context serves all"
        where = self.address.hostname, self.address.port or 443
        return self.tls.wrap_socket(
            socket.create_connection(where, seconds),
            server_hostname=where[0])

    def connection(self):
        """A new one, by TLS."""
        return http.client.HTTPSConnection(
            self.address.hostname, self.address.port or 443,
            timeout=ANSWER_S, context=self.tls)

    def ask(self, method, path, body=None):
        """(status, JSON or text)"""
        connection = self.connection()
        with contextlib.closing(connection):
            connection.request(
                method, self.address.path.rstrip("/") + path,
                None if body is None else json.dumps(body),
                self.account() | {"Content-Type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
        if answer.headers.get("Content-Type", "").startswith(
                "application/json"):
            return answer.status, json.loads(data)
        return answer.status, data.decode()
