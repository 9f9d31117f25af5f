"""What a webhook's receiver may answer, whoever it is: the courier lives on."""
import contextlib
import socket
import threading

import pytest

from test_webhooks import ON, add, rest

pytestmark = pytest.mark.own(**ON)

OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
LONG = b"9" * 400

# (what it sends before it hangs up, status that the server saw; None: any)
ANSWERS = (
    (b"", 0),
    (b"\0\xff\r\n\r\n", 0),
    (b"220 mail.example ESMTP\r\n", 0),
    (b"HTTP/1.1 200", 0),
    (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200000 + b"\r\n\r\n", 0),
    (b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 20000 + b"\r\n", 0),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 3, 0),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 20000, 0),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 1000000,
     200),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nContent-Length: " + LONG + b"\r\n\r\n", None),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nx", None),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
     b"\x1f\x8b\0\0", 200),
    (b"HTTP/1.1 999 So\r\nContent-Length: 0\r\n\r\n", 999),
    (b"HTTP/1.1 99999 So\r\nContent-Length: 0\r\n\r\n", None),
    (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n"
     b"Content-Length: 0\r\n\r\n", 302),
    (b"HTTP/1.1 503 No\r\nRetry-After: " + LONG + b"\r\n"
     b"Content-Length: 0\r\n\r\n", 503),
    (b"HTTP/1.1 429 No\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n", 429),
    (b"HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n"
     b"Content-Length: 0\r\n\r\n", 407),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
     b"Connection: Upgrade\r\n\r\n\x81\x05hello", None),
    (OK, 204),
)


class Raw:
    """Sends .answer to whoever has sent a request, and hangs up."""

    def __init__(self):
        self.answer = OK
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = self.listener.accept()
                with conn, contextlib.suppress(OSError):
                    conn.settimeout(60)
                    text = b""
                    while b"webhook.test" not in text:
                        part = conn.recv(65536)
                        if not part:
                            break
                        text += part
                    conn.sendall(self.answer)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def test_no_answer_harms_the_courier(server, client):
    with contextlib.closing(Raw()) as raw:
        hook = add(client, raw.url)
        for answer, want in ANSWERS:
            raw.answer = answer
            status, said = rest(client, "POST", f"/{hook['id']}/test")
            assert status == 200, (answer[:80], said)
            seen = said["status"] or 0
            assert want in (None, seen), (answer[:80], said)
            assert said["taken"] == (200 <= seen < 300)
            assert (said["error"] is None) == (seen != 0)
    assert said["taken"]
    assert server.metric('sandboxd_process_restarts_total{role="courier"}') == 0
