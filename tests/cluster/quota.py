"""ResourceQuota and LimitRange: what a namespace lets its Pods have."""
from . import quantity
from .answers import forbidden
from .resources import BY_PLURAL, PODS

ENDED = ("Succeeded", "Failed")
COUNTED = ("pods", "count/pods")
CLAIMS = BY_PLURAL["persistentvolumeclaims"]
COUNTED_CLAIMS = ("persistentvolumeclaims", "count/persistentvolumeclaims")
# {name in a quota: (part, name in a container)}
MEASURED = {
    "requests.cpu": ("requests", "cpu"), "cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"), "limits.memory": ("limits", "memory"),
    "requests.ephemeral-storage": ("requests", "ephemeral-storage"),
    "limits.ephemeral-storage": ("limits", "ephemeral-storage")}


def of_pod(pod, names):
    """{name: number} of what a quota with these names counts of it."""
    out = {}
    for name in names:
        if name in COUNTED:
            out[name] = quantity.number(1)
        elif name in MEASURED:
            out[name] = quantity.asked_of_node(pod["spec"], *MEASURED[name])
    return out


def of_claim(claim, names):
    """The same of a claim."""
    out = {n: quantity.number(1) for n in names if n in COUNTED_CLAIMS}
    if "requests.storage" in names:
        out["requests.storage"] = quantity.number(
            claim["spec"]["resources"]["requests"]["storage"])
    return out


def containers(pod):
    return pod["spec"]["containers"] + pod["spec"].get("initContainers", [])


class Quota:
    def __init__(self, store):
        self.store = store

    def used(self, namespace, names, but=None):
        there = [p for p in self.store.all("pods", namespace)
                 if p["status"]["phase"] not in ENDED and not (
                     but and p["metadata"]["uid"] == but["metadata"]["uid"])]
        counted = [of_pod(p, names) for p in there] + [
            of_claim(c, names)
            for c in self.store.all(CLAIMS.plural, namespace)]
        return {n: sum((c[n] for c in counted if n in c), quantity.number(0))
                for n in names}

    def check(self, pod, but=None):
        """Refuses a new Pod, or with but= one that is to be larger."""
        for found in self.store.all("resourcequotas",
                                    pod["metadata"]["namespace"]):
            self.check_said(pod, found["spec"]["hard"],
                            found["metadata"]["name"])
        self.check_sums(PODS, pod, of_pod, but)

    def check_claim(self, claim):
        self.check_sums(CLAIMS, claim, of_claim)

    def check_sums(self, resource, obj, measure, but=None):
        namespace = obj["metadata"]["namespace"]
        name = obj["metadata"]["name"]
        for found in self.store.all("resourcequotas", namespace):
            hard = found["spec"]["hard"]
            of_quota = found["metadata"]["name"]
            asked = measure(obj, hard)
            used = self.used(namespace, asked, but)
            over = sorted(n for n in asked if used[n] + asked[n] >
                          quantity.number(hard[n]))
            if not over:
                continue

            def words(values, names=over, like=hard):
                return ",".join(f"{n}={shown(values[n], like[n])}"
                                for n in names)

            raise forbidden(
                resource, name, f"exceeded quota: {of_quota}, requested: "
                f"{words(asked)}, used: {words(used)}, limited: "
                f"{words(hard)}")

    @staticmethod
    def check_said(pod, hard, of_quota):
        """What is measured has to be said."""
        missing = {}
        for name in sorted(set(hard) & set(MEASURED)):
            part, key = MEASURED[name]
            for c in containers(pod):
                if key not in (c["resources"].get(part) or {}):
                    missing.setdefault(name, []).append(c["name"])
        if missing:
            words = "; ".join(f"{name} for: {','.join(sorted(who))}"
                              for name, who in missing.items())
            raise forbidden(PODS, pod["metadata"]["name"],
                            f"failed quota: {of_quota}: must specify {words}")

    def count(self, plural, namespace):
        """After a change: what the quotas say is used."""
        if plural not in ("pods", "resourcequotas", CLAIMS.plural):
            return
        for quota in self.store.all("resourcequotas", namespace):
            hard = quota["spec"]["hard"]
            used = self.used(namespace, hard)
            status = {"hard": hard, "used": {
                n: shown(used[n], hard[n]) for n in hard}}
            self.store.update("resourcequotas", quota,
                              lambda q, s=status: q.update(status=s))

    # ---- ranges

    def limits(self, namespace, kind):
        return [limit for r in self.store.all("limitranges", namespace)
                for limit in r["spec"]["limits"] if limit["type"] == kind]

    def fill(self, namespace, spec):
        """Defaults of the namespace, for who says nothing."""
        for limit in self.limits(namespace, "Container"):
            for c in spec.get("containers", []) + \
                    spec.get("initContainers", []):
                for part, key in (("limits", "default"),
                                  ("requests", "defaultRequest")):
                    for name, value in limit.get(
                            key, limit.get("default", {})).items():
                        c["resources"].setdefault(part, {}).setdefault(
                            name, value)

    def check_ranges(self, pod):
        said = []
        for limit in self.limits(pod["metadata"]["namespace"], "Container"):
            for c in containers(pod):
                said += complaints(limit, c["resources"], "Container")
        for limit in self.limits(pod["metadata"]["namespace"], "Pod"):
            said += complaints(limit, {part: {
                name: quantity.written(quantity.asked_of_node(
                    pod["spec"], part, name), limit.get("max", limit.get(
                        "min", {})).get(name, ""))
                for name in limit.get("max", {}) | limit.get("min", {})}
                for part in ("requests", "limits")}, "Pod")
        if said:
            words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
            raise forbidden(PODS, pod["metadata"]["name"], words)


def complaints(limit, resources, kind):
    for name, least in limit.get("min", {}).items():
        asked = (resources.get("requests") or {}).get(name)
        if asked is None:
            yield f"minimum {name} usage per {kind} is {least}.  No request " \
                "is specified"
        elif quantity.number(asked) < quantity.number(least):
            yield f"minimum {name} usage per {kind} is {least}, but request " \
                f"is {asked}"
    for name, most in limit.get("max", {}).items():
        asked = (resources.get("limits") or {}).get(name)
        if asked is None:
            yield f"maximum {name} usage per {kind} is {most}.  No limit " \
                "is specified"
        elif quantity.number(asked) > quantity.number(most):
            yield f"maximum {name} usage per {kind} is {most}, but limit is " \
                f"{asked}"


def shown(value, like):
    return value if isinstance(value, str) else quantity.written(value, like)
