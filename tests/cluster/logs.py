"""pods/log, which the engine keeps."""
import asyncio

from . import streams
from .answers import Refusal, bad_request
from .engine import frames, parts


async def send_log(cluster, request, pod):
    name = streams.container_of(pod, request)
    meta = pod["metadata"]
    life = cluster.node.life_of(pod)
    if not pod["spec"].get("nodeName") or life is None:
        await request.answer(204)
        return
    if cluster.node.is_lost:
        raise streams.no_node()
    container = next(c for c in life.init + life.containers if c.name == name)
    if request.is_set("previous"):
        raise bad_request(f'previous terminated container "{name}" in pod '
                          f'"{meta["name"]}" not found')
    if "waiting" in container.state:
        raise bad_request(
            f'container "{name}" in pod "{meta["name"]}" is waiting to start: '
            f"{container.state['waiting']['reason']}")
    await copy_log(cluster, request, container)


async def copy_log(cluster, request, container):
    asked = {"stdout": 1, "stderr": 1,
             "timestamps": int(request.is_set("timestamps")),
             "follow": int(request.is_set("follow")),
             "tail": request.param("tailLines") or "all"}
    if request.param("sinceSeconds"):
        now = cluster.clock.now().timestamp() - cluster.clock.offset_s
        asked["since"] = str(now - int(request.param("sinceSeconds")))
    left = int(request.param("limitBytes") or 1 << 40)
    status, headers, reader, writer = await cluster.engine.open(
        "GET", f"/containers/{container.id}/logs", **asked)
    try:
        if status != 200:
            raise Refusal(500, None, "the log is not there", text=True)
        body = Body(headers, reader)
        stream = await request.stream(200, Content_Type="text/plain")
        async for _, data in frames(body, container.spec.get("tty", False)):
            await stream.write(data[:left])
            left -= len(data)
            if left <= 0:
                break
        await stream.end()
    finally:
        writer.close()


class Body:
    """An answer's body, to be read as frames are."""

    def __init__(self, headers, reader):

        self.parts = parts(headers, reader)
        self.buffer = b""

    async def readexactly(self, count):

        while len(self.buffer) < count:
            data = await anext(self.parts, b"")
            if not data:
                raise asyncio.IncompleteReadError(self.buffer, count)
            self.buffer += data
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    async def read(self, _):
        return await anext(self.parts, b"")
