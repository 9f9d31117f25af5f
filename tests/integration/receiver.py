"""A receiver of webhooks: an HTTP server that verifies what it is sent by
Standard Webhooks, in a few lines of its own, and answers as it is told."""
import base64
import hashlib
import hmac
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def is_signed(secret, headers, body):
    """As docs/webhooks.md shows it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = (f"{headers['webhook-id']}.{headers['webhook-timestamp']}."
              .encode() + body)
    wanted = base64.b64encode(
        hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(
        hmac.compare_digest(one, "v1," + wanted)
        for one in headers["webhook-signature"].split(" "))


class Got:
    """One request that came."""

    def __init__(self, handler, body):
        self.path = handler.path
        self.headers = {k.lower(): v for k, v in handler.headers.items()}
        self.raw = body
        self.body = json.loads(body)
        self.id = self.headers.get("webhook-id")
        self.status = None  # what it was answered; None: not yet


class Receiver:
    """.got are the requests, .answer(got) gives (status, headers)."""

    def __init__(self, tls=None):
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got = Got(self, body)
                with receiver.lock:
                    receiver.got.append(got)
                answer = receiver.answer(got)
                if answer is None:  # never
                    receiver.ended.wait()
                    return
                got.status, headers = answer
                self.send_response(got.status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args):
                pass

        self.got, self.lock = [], threading.Lock()
        self.answer = lambda got: (204, {})
        self.ended = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_args: None
        scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True)
            scheme = "https"
        self.port = self.server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}/hook"
        self.thread = threading.Thread(
            target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def taken(self):
        """Those that were answered with success, in order."""
        with self.lock:
            return [g for g in self.got
                    if g.status is not None and g.status < 300]

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
