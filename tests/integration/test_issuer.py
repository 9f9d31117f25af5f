"""What mcp-sandboxd-keys makes of an authorization server that is wrong."""
import contextlib
import json
import os
import signal
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from certificates import Authority
from client import wait_for

JWKS = b'{"keys": []}'
OPENID = "/.well-known/openid-configuration"
RFC8414 = "/.well-known/oauth-authorization-server"


@pytest.fixture
def issuer():
    """A web server; .pages is {path: bytes or (status, headers, bytes)}."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            page = server.pages.get(self.path, (404, {}, b"no"))
            if isinstance(page, bytes):
                page = (200, {}, page)
            status, headers, body = page
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.pages, server.asked = {}, []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,),
                              daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def metadata(of, **members):
    return json.dumps({"issuer": of.url, "jwks_uri": of.url + "/jwks",
                       **members}).encode()


@pytest.fixture
def look(program):
    """The exit status and what is said of that issuer."""
    def ask(url, **settings):
        done = program("check", program="mcp-sandboxd-keys", OAUTH_ISSUER=url,
                       OAUTH_AUDIENCE="https://mcp.example/", **settings)
        return done.returncode, done.stderr
    return ask


def test_keys_are_found_by_either_metadata(look, issuer):
    for place in (RFC8414, OPENID):
        issuer.pages = {place: metadata(issuer), "/jwks": JWKS}
        assert look(issuer.url) == (0, "")
    assert issuer.asked == [RFC8414, "/jwks", RFC8414, OPENID, "/jwks"]


def test_a_place_that_is_refused_has_no_metadata(look, issuer):
    """Not all say 404 where there is nothing."""
    for status in (400, 401, 403, 405):
        issuer.pages = {RFC8414: (status, {}, b"{}"),
                        OPENID: metadata(issuer), "/jwks": JWKS}
        assert look(issuer.url) == (0, "")


def test_an_issuer_with_a_path_has_its_metadata_at_two_places(look, issuer):
    look(issuer.url + "/realms/lab")
    assert issuer.asked == [RFC8414 + "/realms/lab", "/realms/lab" + OPENID]


def test_keys_of_a_setting_are_asked_for_alone(look, issuer):
    issuer.pages = {"/k?a=1": JWKS}
    assert look(issuer.url, OAUTH_JWKS_URL=issuer.url + "/k?a=1") == (0, "")
    assert issuer.asked == ["/k?a=1"]


@pytest.mark.parametrize("page, says", [
    ({"issuer": "https://evil.example"}, "they must be the same"),
    ({"issuer": "{url}/"}, "they must be the same"),
    ({"issuer": ["{url}"]}, "they must be the same"),
    ({"jwks_uri": "file:///etc/passwd"}, "names no https URL"),
    ({"jwks_uri": "http://192.0.2.1/jwks"}, "names no https URL"),
    ({"jwks_uri": "http://127.0.0.1.evil.example/"}, "names no https URL"),
    ({"jwks_uri": "http://127.0.0.1@evil.example/"}, "names no https URL"),
    ({"jwks_uri": "http://127.0.0.1:1@evil.example/"}, "names no https URL"),
    ({"jwks_uri": 7}, "names no https URL"),
])
def test_metadata_that_is_not_the_issuers_is_refused(look, issuer, page, says):
    page = {k: v.format(url=issuer.url) if isinstance(v, str) else v
            for k, v in page.items()}
    issuer.pages = {RFC8414: metadata(issuer, **page), "/jwks": JWKS}
    status, said = look(issuer.url)
    assert status == 0
    assert says in said
    assert issuer.asked == [RFC8414]


@pytest.mark.parametrize("page, says", [
    (b"<html>", "metadata"),
    (b"[" * 30000, "metadata"),
    ((500, {}, b"no"), "status 500"),
    ((302, {"Location": "/jwks"}, b""), "status 302"),
    ((200, {}, b"a" * 60001), "more than 60000 bytes"),
    ((200, {"Content-Length": "60001"}, b"a"), "more than 60000 bytes"),
])
def test_answers_that_are_none_are_named(look, issuer, page, says):
    issuer.pages = {RFC8414: page, "/jwks": JWKS}
    status, said = look(issuer.url)
    assert status == 0
    assert says in said
    assert issuer.asked == [RFC8414]


def test_an_issuer_that_is_away_is_a_warning(look):
    status, said = look("http://127.0.0.1:1")
    assert status == 0
    assert "cannot be had now" in said and "127.0.0.1:1" in said


def test_a_file_of_authorities_that_is_not_there_is_wrong(look, issuer):
    status, said = look(issuer.url, OAUTH_CA_FILE="/no/such")
    assert status == 78
    assert "OAUTH_CA_FILE" in said


@pytest.mark.parametrize("says, settings", [
    ("https URLs", {"OAUTH_ISSUER": "http://login.example"}),
    ("OAUTH_AUDIENCE", {"OAUTH_ISSUER": "https://login.example"}),
    ("OAUTH_ISSUER", {"OAUTH_AUDIENCE": "https://mcp.example/"}),
    ("OAUTH_RESOURCE", {"OAUTH_ISSUER": "https://login.example",
                        "OAUTH_AUDIENCE": "api://sandbox"}),
    ("OAUTH_USER_SCOPE", {"OAUTH_ISSUER": "https://login.example",
                          "OAUTH_AUDIENCE": "https://mcp.example/",
                          "OAUTH_USER_SCOPE": "a b"})])
def test_what_would_not_start_is_said_by_the_check(program, says, settings):
    program.refuses("--check-config", **settings, words=[says])


def test_a_certificate_of_unknown_authority_is_refused(look, issuer,
                                                       open_place):
    authority = Authority(str(open_place / "ca"))
    file = authority.certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("localhost"))
    issuer.socket = context.wrap_socket(issuer.socket, server_side=True)
    port = issuer.server_address[1]
    issuer.url = f"https://localhost:{port}"
    issuer.pages = {RFC8414: metadata(issuer), "/jwks": JWKS}
    status, said = look(issuer.url)
    assert status == 0 and "certificate" in said and issuer.asked == []
    assert look(issuer.url, OAUTH_CA_FILE=file) == (0, "")
    # It leads to what it is itself, not to a port of this machine.
    plain = f"http://127.0.0.1:{port}/jwks"
    issuer.pages = {RFC8414: metadata(issuer, jwks_uri=plain)}
    status, said = look(issuer.url, OAUTH_CA_FILE=file)
    assert status == 0 and "names no https URL" in said


def with_issuer(issuer, **more):
    issuer.pages = {RFC8414: metadata(issuer), "/jwks": JWKS}
    return {"OAUTH_ISSUER": issuer.url, "RUN_AS_KEYS": "", "WORKERS": "1",
            "OAUTH_AUDIENCE": "https://mcp.example/", **more}


def keys_program(ctl):
    return next(p for p in ctl.json("status")["programs"]
                if p["name"] == "keys")


def wait_anew(ctl, pid):
    def is_anew():
        now = keys_program(ctl)
        return now["state"] == "ready" and now["pid"] != pid
    wait_for(is_anew, 60, "another process that asks for keys")


def test_authorities_are_read_again_when_their_file_is_replaced(
        make_server, issuer, open_place):
    file, fresh = open_place / "ca.pem", open_place / "new.pem"
    file.write_text("one")
    server = make_server(env=with_issuer(
        issuer, OAUTH_CA_FILE=str(file), MCP_SANDBOXD_THROTTLE_MS="300"))
    ctl = server.ctl
    pid = keys_program(ctl)["pid"]
    fresh.write_text("two")
    fresh.rename(file)
    wait_anew(ctl, pid)
    server.wait_log(f"{file} was replaced: start anew")
    # One that cannot be read is said, and read once it can be.
    file.rename(fresh)
    os.kill(keys_program(ctl)["pid"], signal.SIGKILL)
    wait_for(lambda: keys_program(ctl)["state"] == "refused", 60, "a refusal")
    server.wait_log(f"OAUTH_CA_FILE: {file}: No such file")
    server.wait_log("keys exited with status 78 and is tried again in 300 ms")
    assert server.get("/readyz")[0] == 200
    fresh.rename(file)
    wait_anew(ctl, None)


def test_name_servers_are_read_again_when_their_file_is_replaced(
        make_server, issuer, tmp_path):
    server = make_server(env=with_issuer(issuer, WEBHOOKS="true",
                                         RUN_AS_COURIER=""), wait=None)
    # A directory /etc of its own, since a test must not change ours.
    server.prefix = (
        "unshare", "-m", "sh", "-c",
        'cp -a /etc "$0" && mount --bind "$0" /etc && exec "$@"',
        str(tmp_path / "etc"))
    server.start()
    ctl = server.ctl
    before = {p["name"]: p["pid"] for p in ctl.json("status")["programs"]}
    subprocess.run(
        ["nsenter", "-t", str(server.proc.pid), "-m", "sh", "-c",
         "cp /etc/resolv.conf /etc/new && mv /etc/new /etc/resolv.conf"],
        check=True)
    wait_anew(ctl, before["keys"])

    def others():
        return {p["name"]: (p["state"], p["pid"] == before[p["name"]])
                for p in ctl.json("status")["programs"]
                if p["name"] != "keys"}
    wait_for(lambda: others() == {
        "supervisor": ("ready", True), "front": ("ready", True),
        "worker/0": ("ready", True), "courier": ("ready", False)}, 60,
             "another courier")
