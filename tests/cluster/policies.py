"""NetworkPolicy: whether a Pod may begin connections.

No more than that is enforced, and that only where the cluster is said to
enforce: a Pod that some policy denies all egress has no network.
"""
from . import selecting


class Policies:
    def __init__(self, store):
        self.store = store
        self.are_enforced = True
        self.others = set()  # namespaces where it is the other way

    def enforce(self, on, namespace):
        if namespace is None:
            self.are_enforced = on
            self.others.clear()
        elif on == self.are_enforced:
            self.others.discard(namespace)
        else:
            self.others.add(namespace)

    def deny_egress(self, pod):
        """Selected by policies of egress, none of which lets anything
        through."""
        namespace = pod["metadata"]["namespace"]
        if self.are_enforced == (namespace in self.others):
            return False
        mine = [p["spec"] for p in self.store.all("networkpolicies", namespace)
                if is_of_egress(p["spec"]) and selecting.matches_selector(
                    p["spec"].get("podSelector") or {},
                    pod["metadata"].get("labels"))]
        return bool(mine) and not any(spec.get("egress") for spec in mine)


def is_of_egress(spec):
    types = spec.get("policyTypes")
    return "Egress" in types if types else bool(spec.get("egress"))
