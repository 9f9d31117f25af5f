"""Images of Pods, which the engine has or has not: there is no registry."""
import re

from .engine import EngineError

NAME = re.compile(
    r"(?:(?:[a-zA-Z0-9.-]+)(?::\d+)?/)?[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*"
    r"(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]{64}")


class Missing(Exception):
    """What the container waits for."""

    def __init__(self, reason, message, events):
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.events = events


class Finding:
    """One container's image, looked for until it is there."""

    def __init__(self, engine, spec):
        self.engine = engine
        self.name = spec["image"]
        self.policy = spec["imagePullPolicy"]
        self.tries = 0

    async def find(self):
        """What the engine says of it; Missing where it has none."""
        if not NAME.fullmatch(self.name):
            raise self.invalid()
        try:
            return await self.engine.ask("GET", f"/images/{self.name}/json")
        except EngineError as e:
            if e.status != 404:
                raise
        self.tries += 1
        raise self.never() if self.policy == "Never" else self.not_pulled()

    def invalid(self):
        path = self.name.split(":")[0]
        why = "repository name (library/" + path + ") must be lowercase" \
            if path != path.lower() else "invalid reference format"
        message = f'Failed to apply default image tag "{self.name}": ' \
            f"couldn't parse image name \"{self.name}\": invalid reference " \
            f"format: {why}"
        return Missing("InvalidImageName", message, [
            ("Warning", "InspectFailed", message),
            ("Warning", "Failed", "Error: InvalidImageName")])

    def never(self):
        message = f'Container image "{self.name}" is not present with pull ' \
            "policy of Never"
        return Missing("ErrImageNeverPull", message, [
            ("Warning", "ErrImageNeverPull", message),
            ("Warning", "Failed", "Error: ErrImageNeverPull")])

    def not_pulled(self):
        """Every second time it is only said that it is waited."""
        if self.tries % 2 == 0:
            words = f'Back-off pulling image "{self.name}"'
            return Missing("ImagePullBackOff", words, [
                ("Normal", "BackOff", words),
                ("Warning", "Failed", "Error: ImagePullBackOff")])
        host = self.name.split("/")[0]
        words = f'failed to pull and unpack image "{self.name}": failed to ' \
            f'resolve reference "{self.name}": failed to do request: Head ' \
            f'"https://{host}/v2/": dial tcp: lookup {host}: no such host'
        return Missing("ErrImagePull", words, [
            ("Normal", "Pulling", f'Pulling image "{self.name}"'),
            ("Warning", "Failed",
             f'Failed to pull image "{self.name}": {words}'),
            ("Warning", "Failed", "Error: ErrImagePull")])
