"""/test/NAME at a Unix socket: what a test, in another process, has the
cluster do."""
import asyncio
import inspect
import json
import os

from . import web
from .answers import Refusal


class Control:
    def __init__(self, cluster, files):
        self.faults = cluster.faults
        self.faults.files = files
        self.path = files.control
        self.server = None

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_unix_server(
            lambda: web.Link(self.run), self.path)
        os.chmod(self.path, 0o600)
        return self

    async def __aexit__(self, *exc):
        self.server.close()

    async def run(self, link):
        try:
            while (request := await web.read_request(link)) is not None:
                await self.answer(request)
        except web.Ended:
            pass
        finally:
            link.close()

    async def answer(self, request):
        name = request.path.removeprefix("/test/")
        method = getattr(self.faults, name, None)
        if method is None or name.startswith("_") or \
                not getattr(method, "is_for_tests", False):
            await request.json(404, {"error": f"no fault {name}"})
            return
        try:
            result = method(**json.loads(request.body or b"{}"))
            if inspect.isawaitable(result):
                result = await result
        except (TypeError, LookupError, ValueError, Refusal) as e:
            await request.json(400, {"error": f"{type(e).__name__}: {e}"})
            return
        await request.json(200, {"result": result})
