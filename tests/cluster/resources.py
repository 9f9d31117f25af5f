"""The resources that are served, as discovery tells of them."""

ALL = ("create", "delete", "deletecollection", "get", "list", "patch",
       "update", "watch")
CREATE = ("create",)
GET = ("get",)


class Resource:
    def __init__(self, group, version, plural, kind, namespaced, verbs=ALL,
                 short=(), subresources=None):
        self.group = group
        self.version = version
        self.plural = plural
        self.kind = kind
        self.is_namespaced = namespaced
        self.verbs = verbs
        self.short = short
        self.subresources = subresources or {}

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self):
        """As messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def listed(self):
        out = {"name": self.plural, "singularName": self.kind.lower(),
               "namespaced": self.is_namespaced, "kind": self.kind,
               "verbs": list(self.verbs)}
        if self.short:
            out["shortNames"] = list(self.short)
        rest = [{"name": f"{self.plural}/{name}", "singularName": "",
                 "namespaced": self.is_namespaced, "kind": self.kind,
                 "verbs": list(verbs)}
                for name, verbs in self.subresources.items()]
        return [out, *rest]


STREAM = ("create", "get")
AUTHORIZATION = "authorization.k8s.io"
RBAC = "rbac.authorization.k8s.io"
TABLE = [
    Resource("", "v1", "events", "Event", True, short=("ev",)),
    Resource("", "v1", "configmaps", "ConfigMap", True, short=("cm",)),
    Resource("", "v1", "limitranges", "LimitRange", True, short=("limits",)),
    Resource("", "v1", "namespaces", "Namespace", False, short=("ns",)),
    Resource("", "v1", "nodes", "Node", False, short=("no",)),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim",
             True, short=("pvc",)),
    Resource("", "v1", "pods", "Pod", True, short=("po",), subresources={
        "attach": STREAM, "eviction": CREATE, "exec": STREAM, "log": GET,
        "resize": ("get", "patch"), "status": GET}),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True,
             short=("quota",)),
    Resource("", "v1", "secrets", "Secret", True),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True,
             short=("sa",)),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy",
             True, short=("netpol",)),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass",
             False, short=("pc",)),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False,
             short=("sc",)),
    Resource(RBAC, "v1", "roles", "Role", True),
    Resource(RBAC, "v1", "rolebindings", "RoleBinding", True),
    Resource(RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(AUTHORIZATION, "v1", "selfsubjectaccessreviews",
             "SelfSubjectAccessReview", False, CREATE),
    Resource(AUTHORIZATION, "v1", "selfsubjectrulesreviews",
             "SelfSubjectRulesReview", False, CREATE),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews",
             "SelfSubjectReview", False, CREATE),
]
BY_PATH = {(r.group, r.version, r.plural): r for r in TABLE}
BY_PLURAL = {r.plural: r for r in TABLE}
PODS = BY_PLURAL["pods"]


def groups():
    """{group: [versions]} but for the first one, which has no name."""
    out = {}
    for r in TABLE:
        if r.group:
            out.setdefault(r.group, [])
            if r.version not in out[r.group]:
                out[r.group].append(r.version)
    return out


def versions_of_core():
    return {"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": []}


def group_list():
    out = []
    for name, versions in groups().items():
        said = [{"groupVersion": f"{name}/{v}", "version": v}
                for v in versions]
        out.append({"name": name, "versions": said,
                    "preferredVersion": said[0]})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": out}


def resource_list(group, version):
    """None where nothing of that name is served."""
    found = [entry for r in TABLE if (r.group, r.version) == (group, version)
             for entry in r.listed()]
    if not found:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": found}
