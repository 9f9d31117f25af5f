"""Who asks, and what they may: roles and their bindings, as objects."""
import uuid

from .answers import Refusal, forbidden, unauthorized

MASTERS = "system:masters"
ANONYMOUS = "system:anonymous"
# What all who are somebody may.
OF_ALL = [
    {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
     "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"],
     "resources": ["selfsubjectreviews"]},
]
DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez",
             "/openapi", "/openapi/*", "/readyz", "/version", "/version/"]
PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]


class Identity:
    def __init__(self, user, groups=()):
        self.user = user
        self.groups = list(groups)
        if user != ANONYMOUS:
            self.groups.append("system:authenticated")
        self.uid = str(uuid.uuid4())


def service_account(namespace, name):
    return Identity(f"system:serviceaccount:{namespace}:{name}", [
        "system:serviceaccounts", f"system:serviceaccounts:{namespace}"])


class Rights:
    def __init__(self, store):
        self.store = store
        self.tokens = {}  # {token: Identity}

    def who(self, request):
        """The Identity of who asks, by token or by certificate."""
        kind, _, token = request.word("authorization").partition(" ")
        if kind.lower() == "bearer" and token:
            if token not in self.tokens:
                raise unauthorized()
            return self.tokens[token]
        if request.link.peer_name:
            return Identity(request.link.peer_name)
        return Identity(ANONYMOUS)

    def bindings(self, identity, namespace):
        """(rules, words of where they are from) of each that is about it."""
        of_namespace = self.store.all("rolebindings", namespace) \
            if namespace else []
        for binding in of_namespace + self.store.all("clusterrolebindings"):
            subject = next((s for s in binding.get("subjects") or ()
                            if is_about(s, identity)), None)
            if subject is None:
                continue
            ref, meta = binding["roleRef"], binding["metadata"]
            role = self.store.get("roles", meta.get("namespace"), ref["name"]) \
                if ref["kind"] == "Role" else \
                self.store.get("clusterroles", None, ref["name"])
            at = f"{meta['name']}/{meta['namespace']}" \
                if "namespace" in meta else meta["name"]
            kind = "RoleBinding" if "namespace" in meta else \
                "ClusterRoleBinding"
            of = f"{subject['kind']} \"{subject['name']}" + (
                f"/{subject['namespace']}\"" if "namespace" in subject
                else '"')
            yield (role or {}).get("rules") or [], \
                f'RBAC: allowed by {kind} "{at}" of {ref["kind"]} ' \
                f'"{ref["name"]}" to {of}'

    def allows(self, identity, wanted):
        """Words of why, or None."""
        if MASTERS in identity.groups:
            return "system:masters"
        if identity.user != ANONYMOUS and \
                any(covers(rule, wanted) for rule in OF_ALL):
            return "RBAC: allowed by all"
        for rules, why in self.bindings(identity, wanted.namespace):
            if any(covers(rule, wanted) for rule in rules):
                return why
        return None

    def rules(self, identity, namespace):
        """Status of a SelfSubjectRulesReview."""
        found = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}] \
            if MASTERS in identity.groups else []
        found += OF_ALL
        for rules, _ in self.bindings(identity, namespace):
            found += [r for r in rules if r.get("resources")]
        return {"resourceRules": found, "nonResourceRules": [
            {"verbs": ["get"], "nonResourceURLs": DISCOVERY},
            {"verbs": ["get"], "nonResourceURLs": PUBLIC}],
            "incomplete": False}

    def check(self, identity, wanted):
        if self.allows(identity, wanted) is None:
            raise forbidden(wanted.resource, wanted.name,
                            self.words(identity, wanted))

    @staticmethod
    def words(identity, wanted):
        where = f'in the namespace "{wanted.namespace}"' \
            if wanted.namespace else "at the cluster scope"
        return f'User "{identity.user}" cannot {wanted.verb} resource ' \
            f'"{wanted.path}" in API group "{wanted.resource.group}" {where}'

    @staticmethod
    def check_path(identity, path):
        """Of what is no resource."""
        is_public = path.rstrip("/") in PUBLIC
        if identity.user == ANONYMOUS and not is_public:
            raise Refusal(403, "Forbidden", "forbidden: User "
                          f'"{ANONYMOUS}" cannot get path "{path}"', {})


class Wanted:
    """What somebody wants to do."""

    def __init__(self, verb, resource, subresource="", namespace="", name=""):
        self.verb = verb
        self.resource = resource
        self.subresource = subresource
        self.namespace = namespace
        self.name = name

    @property
    def path(self):
        return f"{self.resource.plural}/{self.subresource}" \
            if self.subresource else self.resource.plural


def is_about(subject, identity):
    if subject["kind"] == "ServiceAccount":
        return identity.user == "system:serviceaccount:" \
            f"{subject.get('namespace')}:{subject['name']}"
    if subject["kind"] == "Group":
        return subject["name"] in identity.groups
    return subject["name"] == identity.user


def covers(rule, wanted):
    def has(key, *words):
        return any(w in rule.get(key) or () for w in ("*", *words))

    paths = [wanted.path]
    if wanted.subresource:
        paths.append(f"*/{wanted.subresource}")
    names = rule.get("resourceNames")
    return has("verbs", wanted.verb) and \
        has("apiGroups", wanted.resource.group) and \
        has("resources", *paths) and (not names or wanted.name in names)
