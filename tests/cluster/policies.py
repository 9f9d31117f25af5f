"""NetworkPolicy: whether a Pod may begin connections.

No more than that is enforced, and that only where the cluster is said to
enforce: a Pod that some policy denies all egress has no network.
"""
from . import selecting


class Policies:
    def __init__(self, store):
        self.store = store
        self.are_enforced = True

    def deny_egress(self, pod):
        """Selected by policies of egress, none of which lets anything
        through."""
        if not self.are_enforced:
            return False
        mine = [p["spec"] for p in self.store.all(
            "networkpolicies", pod["metadata"]["namespace"])
            if is_of_egress(p["spec"]) and selecting.matches_selector(
                p["spec"].get("podSelector") or {},
                pod["metadata"].get("labels"))]
        return bool(mine) and not any(spec.get("egress") for spec in mine)


def is_of_egress(spec):
    types = spec.get("policyTypes")
    return "Egress" in types if types else bool(spec.get("egress"))
