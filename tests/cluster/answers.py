"""What the API server refuses, as Status objects with its own words."""


class Refusal(Exception):
    """An answer that is no success: JSON of kind Status, or plain text."""

    def __init__(self, code, reason, message, details=None, text=False,
                 retry_after=None):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.is_text = text
        self.retry_after = retry_after

    def status(self):
        out = {"kind": "Status", "apiVersion": "v1", "metadata": {},
               "status": "Failure", "message": self.message}
        if self.reason:
            out["reason"] = self.reason
        if self.details is not None:
            out["details"] = self.details
        return out | {"code": self.code}

    async def send(self, request):
        headers = {}
        if self.retry_after is not None:
            headers["Retry_After"] = str(self.retry_after)
        if self.is_text:
            await request.text(self.code, self.message, **headers)
        else:
            await request.json(self.code, self.status(), **headers)


def details_of(resource, name):
    out = {"name": name} if name else {}
    if resource.group:
        out["group"] = resource.group
    return out | {"kind": resource.plural}


def bad_request(message):
    return Refusal(400, "BadRequest", message)


def unauthorized():
    return Refusal(401, "Unauthorized", "Unauthorized")


def not_found(resource, name):
    return Refusal(404, "NotFound", f'{resource.qualified} "{name}" not found',
                   details_of(resource, name))


def no_such_path():
    return Refusal(404, None, "404 page not found\n", text=True)


def not_allowed():
    return Refusal(405, "MethodNotAllowed", "the server does not allow this "
                   "method on the requested resource", {})


def already_exists(resource, name, is_ending):
    before = "object is being deleted: " if is_ending else ""
    return Refusal(409, "AlreadyExists", f'{before}{resource.qualified} '
                   f'"{name}" already exists', details_of(resource, name))


def conflict(kind, name, why):
    return Refusal(409, "Conflict", "Operation cannot be fulfilled on "
                   f'{kind} "{name}": {why}', {"name": name, "kind": kind})


def forbidden(resource, name, why):
    """Also what admission refuses: quota, Pod Security, classes."""
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    return Refusal(403, "Forbidden", f"{subject} is forbidden: {why}",
                   details_of(resource, name))


def invalid(resource, name, causes):
    """causes: [(field, reason, message)]"""
    said = [f"{field}: {message}" for field, _, message in causes]
    words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    kind = resource.kind + (f".{resource.group}" if resource.group else "")
    details = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.kind
    details["causes"] = [{"reason": reason, "message": message,
                          "field": field} for field, reason, message in causes]
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {words}',
                   details)


def gone(message):
    return Refusal(410, "Expired", message)


def unsupported_media(accepted):
    return Refusal(415, "UnsupportedMediaType", "the body of the request was "
                   "in an unknown format - accepted media types include: " +
                   ", ".join(accepted))


def too_large_version(asked, current):
    return Refusal(
        504, "Timeout", f"Timeout: Too large resource version: {asked}, "
        f"current: {current}", {
            "causes": [{"reason": "ResourceVersionTooLarge",
                        "message": "Too large resource version"}],
            "retryAfterSeconds": 1}, retry_after=1)


def internal(message):
    return Refusal(500, "InternalError", message,
                   {"causes": [{"message": message}]})
