"""The cluster: one object that has the parts, and what they ask of it."""
import asyncio
import base64
import io
import secrets
import ssl
import tarfile

from . import containers, discovery, rights, runs, scheduling, volumes, web
from .api import Api
from .engine import Engine
from .events import Events
from .faults import Faults
from .objects import Clock, Store
from .pods import Node
from .policies import Policies
from .quota import Quota
from .resources import BY_PLURAL, TABLE

BUSYBOX = "/bin/busybox"
SECOND_MINOR_OF_CREATE = 35  # exec wants "create", too, from here on
FIRST_MINOR_OF_V5 = 30
CLASS = "standard"
PROTECTION = "kubernetes.io/pvc-protection"
UNPROTECT_S = 0.05


class Cluster:
    def __init__(self, host, namespace="sbx"):
        self.engine = Engine(host)
        self.namespace = namespace
        self.clock = Clock()
        self.store = Store(self.clock)
        self.run = runs.Run()
        self.rights = rights.Rights(self.store)
        self.quota = Quota(self.store)
        self.store.on_change = self.quota.count
        self.policies = Policies(self.store)
        self.events = Events(self.store)
        self.node = Node(self)
        self.faults = Faults(self)
        self.api = Api(self)
        self.minor = discovery.MINOR
        self.violations = []
        self.watchings = {}  # {Watching: Link}
        self.sessions = set()
        self.lingering = set()
        self.opened = set()  # volumes that all may write to by now
        self.listener = None
        self.account = ""
        self.roles = {}  # {namespace: the account's Role there}
        self.first_rules = []
        self.reviews = {"selfsubjectaccessreviews": self.review_access,
                        "selfsubjectrulesreviews": self.review_rules,
                        "selfsubjectreviews": self.review_self}
        self._pause = None

    # ---- begin and end

    async def open(self, certificate, key, authority, port=0):
        await runs.remove_marked(self.engine, runs.is_gone)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        self.listener = web.Listener(context, self.api.serve, port)
        await self.listener.open()
        self.furnish()

    async def close(self):
        if self.listener is not None:
            await self.listener.close()
            self.listener.abort_all()
        await self.node.close()
        for task in list(self.lingering):
            task.cancel()
        await asyncio.gather(*self.lingering, return_exceptions=True)
        await runs.remove_marked(self.engine,
                                 lambda mark: mark == self.run.mark)

    @property
    def address(self):
        return "127.0.0.1", self.listener.port

    def furnish(self):
        """What a fresh cluster has, and the namespace of the tests."""
        for name in {"default", "kube-system", self.namespace}:
            self.put("namespaces", None, name, spec={
                "finalizers": ["kubernetes"]}, status={"phase": "Active"})
        self.put_node()
        self.put("storageclasses", None, CLASS, annotations={
            "storageclass.kubernetes.io/is-default-class": "true"},
            provisioner="test/volumes", reclaimPolicy="Delete",
            volumeBindingMode="Immediate")
        self.put("clusterroles", None, "cluster-admin", rules=[
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])

    def put_node(self):
        self.put("nodes", None, scheduling.NODE,
                 labels=dict(scheduling.LABELS), spec={},
                 status=scheduling.status(self.clock))

    def put(self, plural, namespace, name, labels=None, annotations=None,
            **rest):
        """An object of the cluster's own."""
        resource = BY_PLURAL[plural]
        made = self.store.add(plural, {
            "kind": resource.kind, "apiVersion": resource.api_version,
            "metadata": self.store.new_metadata(
                {"name": name, "labels": labels, "annotations": annotations},
                namespace), **rest})
        self.made(plural, made)
        return made

    def new_token(self, identity):
        token = secrets.token_urlsafe(32)
        self.rights.tokens[token] = identity
        return token

    def be_version(self, minor=None):
        self.minor = minor or discovery.MINOR

    def give_rights(self, account, rules):
        """The account of the namespace, and its Role; its Identity."""
        self.put("serviceaccounts", self.namespace, account)
        self.account = account
        self.first_rules = rules
        self.give_role(self.namespace)
        return rights.service_account(self.namespace, account)

    def give_role(self, space):
        """The account's, in a namespace."""
        self.roles[space] = self.put("roles", space, self.account,
                                     rules=self.first_rules)
        self.put("rolebindings", space, self.account, subjects=[
            {"kind": "ServiceAccount", "name": self.account,
             "namespace": self.namespace}],
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                     "name": self.account})

    def open_namespace(self, name):
        """Another one, where the account has its rights."""
        self.put("namespaces", None, name, spec={
            "finalizers": ["kubernetes"]}, status={"phase": "Active"})
        self.give_role(name)

    def close_namespaces(self):
        """Those, with all in them."""
        for name in [n for n in self.roles if n != self.namespace]:
            del self.roles[name]
            found = self.store.get("namespaces", None, name)
            if found is not None:
                self.empty_namespace(found)

    def rules(self, namespace=None):
        meta = self.roles[namespace or self.namespace]["metadata"]
        return self.store.get("roles", meta["namespace"],
                              meta["name"])["rules"]

    def set_rules(self, rules, namespace=None):
        self.store.update("roles", self.roles[namespace or self.namespace],
                          lambda role: role.update(rules=rules))

    def give_back_rights(self):
        self.set_rules(self.first_rules)

    def remake(self, pod):
        """Another one of the same name."""
        self.api.remove_pod(pod, 0)
        spec = {k: v for k, v in pod["spec"].items() if k != "nodeName"}
        made = self.store.add("pods", pod | {
            "metadata": self.store.new_metadata(
                pod["metadata"], pod["metadata"]["namespace"]),
            "spec": spec, "status": {
                "phase": "Pending", "qosClass": pod["status"]["qosClass"]}})
        self.made("pods", made)
        return made

    # ---- what the API asks

    @property
    def has_v5(self):
        return self.minor >= FIRST_MINOR_OF_V5

    @property
    def wants_create(self):
        return self.minor >= SECOND_MINOR_OF_CREATE

    def violate(self, words):
        self.violations.append(words)

    def linger(self, coroutine):
        """Goes on by itself until the cluster ends."""
        task = asyncio.ensure_future(coroutine)
        self.lingering.add(task)
        task.add_done_callback(self.lingering.discard)

    def completed(self, plural, obj):
        """What the API server writes into an object that is no Pod."""
        if plural == "namespaces":
            obj["spec"] = {"finalizers": ["kubernetes"]}
            obj["status"] = {"phase": "Active"}
            obj["metadata"].setdefault("labels", {})[
                "kubernetes.io/metadata.name"] = obj["metadata"]["name"]
        elif plural == "networkpolicies":
            spec = obj["spec"]
            spec.setdefault("policyTypes", ["Ingress"] + (
                ["Egress"] if "egress" in spec else []))
        elif plural == "persistentvolumeclaims":
            obj["spec"].setdefault("storageClassName", CLASS)
            obj["spec"].setdefault("volumeMode", "Filesystem")
            obj["metadata"]["finalizers"] = [PROTECTION]
            obj["status"] = {"phase": "Pending"}
        return obj

    def made(self, plural, obj):
        """A new object was stored: what follows from it."""
        name = obj["metadata"]["name"]
        if plural == "pods":
            self.node.begin(obj)
        elif plural == "namespaces":
            self.put("serviceaccounts", name, "default")
        elif plural == "persistentvolumeclaims":
            self.linger(self.bind(obj))

    def removed(self, plural, obj):
        if plural == "persistentvolumeclaims":
            self.linger(volumes.remove_unused(self.engine, volumes.name_of(
                self.run, obj["metadata"]["uid"])))

    async def bind(self, claim):
        """A volume of the engine, where its class is one that is there."""
        asked = claim["spec"]["storageClassName"]
        if self.store.get("storageclasses", None, asked) is None:
            return
        uid = claim["metadata"]["uid"]
        await volumes.make(self.engine, self.run,
                           volumes.name_of(self.run, uid))

        def change(obj):
            spec = obj["spec"]
            spec["volumeName"] = f"pvc-{uid}"
            obj["status"] = {
                "phase": "Bound", "accessModes": spec["accessModes"],
                "capacity": spec["resources"]["requests"]}

        self.store.update("persistentvolumeclaims", claim, change)

    @staticmethod
    def uses_claim(pod, name):
        return any(volumes.claim_of(v) == name
                   for v in pod["spec"].get("volumes") or ())

    def removal_waits(self, plural, obj):
        """The object, marked, where others have to go before it."""
        meta = obj["metadata"]
        if plural == "namespaces":
            return self.empty_namespace(obj)
        if plural == "persistentvolumeclaims":
            self.linger(self.unprotect(meta["namespace"]))
            return self.mark(plural, obj)
        return None

    async def unprotect(self, namespace):
        """A controller sees claims a moment after they were deleted."""
        await asyncio.sleep(UNPROTECT_S)
        self.go_on_removing(namespace)

    def mark(self, plural, obj):
        def change(o):
            o["metadata"].setdefault("deletionTimestamp", self.clock.stamp())
            if plural != "namespaces":
                o["metadata"].setdefault("deletionGracePeriodSeconds", 0)

        return self.store.update(plural, obj, change)

    def empty_namespace(self, namespace):
        name = namespace["metadata"]["name"]
        left = self.mark("namespaces", namespace)
        left = self.store.update("namespaces", left, lambda o: o.update(
            status={"phase": "Terminating"}))
        for plural in list(self.store.kept):
            if plural == "pods" or not BY_PLURAL[plural].is_namespaced:
                continue
            for obj in self.store.all(plural, name):
                if self.removal_waits(plural, obj) is None:
                    self.store.remove(plural, obj)
                    self.removed(plural, obj)
        for pod in self.store.all("pods", name):
            self.api.remove_pod(pod, None)
        if not self.store.all("pods", name):
            self.store.remove("namespaces", left)
        return left

    def finish(self, pod):
        """The kubelet has done its part for a Pod that was deleted."""
        def change(obj):
            obj["metadata"]["deletionGracePeriodSeconds"] = 0

        left = self.store.update("pods", pod, change)
        if left is not None:
            self.store.remove("pods", left)
        self.go_on_removing(pod["metadata"]["namespace"])

    def go_on_removing(self, namespace):
        """Claims and namespaces that waited for a Pod."""
        pods = self.store.all("pods", namespace)
        for claim in self.store.all("persistentvolumeclaims", namespace):
            meta = claim["metadata"]
            if "deletionTimestamp" in meta and not any(
                    self.uses_claim(p, meta["name"]) for p in pods):
                self.store.remove("persistentvolumeclaims", claim)
                self.removed("persistentvolumeclaims", claim)
        found = self.store.get("namespaces", None, namespace)
        if found and "deletionTimestamp" in found["metadata"] and not pods:
            self.store.remove("namespaces", found)

    def data_of(self, pod, plural, ref):
        """Of a ConfigMap or a Secret that a container's environment names."""
        namespace = pod["metadata"]["namespace"]
        found = self.store.get(plural, namespace, ref["name"])
        if found is None:
            if ref.get("optional"):
                return {}
            kind = "configmap" if plural == "configmaps" else "secret"
            raise containers.BadConfig("CreateContainerConfigError",
                                       f'{kind} "{ref["name"]}" not found')
        if plural == "configmaps":
            return found.get("data", {})
        return found.get("stringData", {}) | {
            k: base64.b64decode(v).decode()
            for k, v in found.get("data", {}).items()}

    async def pause_image(self):
        """Of the containers that hold what others share."""
        if self._pause is None:
            self._pause = asyncio.ensure_future(self.import_pause())
        return await asyncio.shield(self._pause)

    async def import_pause(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(BUSYBOX, "busybox")
        name = f"localhost/{self.run.prefix}/pause"
        label = f'LABEL {runs.LABEL}="{self.run.mark}"'
        await self.engine.ask(
            "POST", "/images/create", out.getvalue(),
            {"Content-Type": "application/x-tar"}, fromSrc="-", repo=name,
            tag="latest", changes=label)
        return f"{name}:latest"

    # ---- reviews

    def review_access(self, identity, review):
        asked = review["spec"].get("resourceAttributes")
        if asked is None:
            return review | {"status": {"allowed": True}}
        resource = next(
            (r for r in TABLE if (r.group, r.plural) ==
             (asked.get("group", ""), asked.get("resource"))), None)
        why = resource and self.rights.allows(identity, rights.Wanted(
            asked.get("verb"), resource, asked.get("subresource", ""),
            asked.get("namespace", ""), asked.get("name", "")))
        status = {"allowed": bool(why)} | ({"reason": why} if why else {})
        return review | {"status": status}

    def review_rules(self, identity, review):
        return review | {"spec": {}, "status": self.rights.rules(
            identity, review["spec"].get("namespace", "default"))}

    def review_self(self, identity, review):
        return review | {
            "metadata": {"creationTimestamp": self.clock.stamp()},
            "status": {"userInfo": {"username": identity.user,
                                    "uid": identity.uid,
                                    "groups": identity.groups}}}
