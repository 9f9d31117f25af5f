"""An engine's socket behind which something stands: it reads each request,
and may answer in the engine's place, or keep it until it is told to go on."""
import os
import re
import socket
import threading


class Meddler:
    def __init__(self, engine, directory):
        self.engine = engine
        self.path = os.path.join(directory, "meddler.sock")
        self.asked = []      # "METHOD /path", without its version and query
        self.answers = {}    # a part of it: (status, message)
        self.kept = {}       # a part of it: Event that lets it go on
        self.reached = threading.Event()  # something is kept
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(
                target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        far = socket.socket(socket.AF_UNIX)
        far.connect(self.engine.path)
        threading.Thread(target=copy, args=(far, near), daemon=True).start()
        stream = near.makefile("rb")
        try:
            while head := read_head(stream):
                self.meddle(near, far, head, stream.read(length_of(head)))
            far.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def meddle(self, near, far, head, body):
        method, path = head.split(b" ", 2)[:2]
        path = re.sub(r"^/v[0-9.]+/", "/", path.decode().partition("?")[0])
        what = f"{method.decode()} {path}"
        self.asked.append(what)
        for part, event in list(self.kept.items()):
            if part in what:
                self.reached.set()
                event.wait()
        for part, (status, message) in list(self.answers.items()):
            if part in what:
                text = b'{"message":"%s"}' % message.encode()
                near.sendall(
                    b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s"
                    % (status, len(text), text))
                return
        far.sendall(head + body)

    def keep(self, part):
        """What is asked with this part in it waits until set()."""
        self.reached.clear()
        self.kept[part] = threading.Event()
        return self.kept[part]

    def close(self):
        for event in self.kept.values():
            event.set()
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def read_head(stream):
    head = b""
    while line := stream.readline():
        head += line
        if line == b"\r\n":
            return head
    return b""


def length_of(head):
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def copy(source, to):
    try:
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
