"""Tenants and their tokens, by a file of root's and by sandboxctl."""
import hashlib
import pathlib
import secrets
import string

LETTERS = string.ascii_letters + string.digits


def make_token():
    """(token, id, digest) as sandboxctl token make does."""
    ident = "".join(secrets.choice(LETTERS) for _ in range(12))
    secret = "".join(secrets.choice(LETTERS) for _ in range(43))
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return f"mcps_{ident}_{secret}", ident, digest


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Tokens:
    """A TENANTS_FILE, and the tokens of its lines."""

    def __init__(self, path):
        self.path = path
        self.lines = []

    def tenant(self, name, *words):
        """A token of its own."""
        self.lines.append(" ".join(["tenant", name, *words]))
        return self.token(name, "user")

    def token(self, tenant, role, *words):
        token, ident, digest = make_token()
        self.lines.append(
            " ".join(["token", tenant, ident, role, digest, *words]))
        return token

    def write(self):
        path = pathlib.Path(self.path)
        path.write_text("\n".join(self.lines) + "\n", encoding="ascii")
        path.chmod(0o644)
        return path


class Tenant:
    """A tenant of a server, with a client of its own."""

    def __init__(self, server, name, *settings):
        self.server, self.ctl, self.name = server, server.ctl, name
        self.ctl("tenant", "add", name, *settings)
        self.token = self.ctl.token(name)
        self.client = server.client(token=self.token)

    def set(self, **quotas):
        self.ctl("tenant", "set", self.name,
                 *(f"quota.{k}={v}" for k, v in quotas.items()))

    def used(self):
        return self.ctl.json("usage", self.name)
