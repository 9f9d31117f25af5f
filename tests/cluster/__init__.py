"""An API server of Kubernetes whose Pods are containers of the local Docker
engine: see README.md."""
from .remote import Remote  # noqa: F401
from .running import Running, running  # noqa: F401
