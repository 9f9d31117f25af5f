"""What a test makes the cluster do: the bad days of a real one.

Each method marked by for_tests is a call of /test/NAME, too, with its
arguments as a JSON object.  What goes on until it is taken back ends with
reset() at the latest.
"""
import re

from . import scheduling, statuses, web
from .answers import Refusal

CAPACITY = scheduling.CAPACITY
TAINTS = {"Unknown": "node.kubernetes.io/unreachable",
          "False": "node.kubernetes.io/not-ready"}
OF_NODE = {
    "True": ("KubeletReady", "kubelet is posting ready status"),
    "False": ("KubeletNotReady", "container runtime network not ready"),
    "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status.")}
EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, " \
    "available: 9Mi. Container main was using 90Mi, request is 0, has larger " \
    "consumption of memory. "
BAD_GATEWAY = "<html><head><title>502 Bad Gateway</title></head></html>"
# {code: (reason, message)}, as the real server or what is before it says it
SAID = {
    429: ("TooManyRequests", "the server has received too many requests and "
          "has asked us to try again later"),
    500: (None, "etcdserver: leader changed"),
    502: (None, BAD_GATEWAY),
    503: ("ServiceUnavailable", "the server is currently unable to handle the "
          "request"),
    504: ("Timeout", "Timeout: request did not complete within requested "
          "timeout - context deadline exceeded")}
IN_TEXT = {429: "Too many requests, please try again later.", 502: BAD_GATEWAY}


def for_tests(method):
    method.is_for_tests = True
    return method


class Rule:
    """The next requests of a kind, so many of them."""

    def __init__(self, times, method, path):
        self.times = times
        self.method = method
        self.path = re.compile(path or "")

    def takes(self, request):
        """True for one of them, which is counted."""
        if self.times <= 0 or self.method not in (None, request.method) or \
                not self.path.search(request.target):
            return False
        self.times -= 1
        return True


class Faults:
    def __init__(self, cluster):
        self.cluster = cluster
        self.files = None
        self.account = None  # the Identity of the token in the files
        self.refusals = []  # [(Rule, Refusal)]
        self.losses = []  # Rules: done, and not answered
        self.watches_too_old = 0
        self.piece_bytes = 0  # of a line of a watch
        self.are_messages_split = False

    # ---- what the API asks

    def check(self, request):
        """Refuse it, where a test said so."""
        request.loses_answer = any(r.takes(request) for r in self.losses)
        for rule, refusal in self.refusals:
            if rule.takes(request):
                raise refusal

    def is_too_old(self):
        if self.watches_too_old == 0:
            return False
        self.watches_too_old -= 1
        return True

    # ---- violations

    @for_tests
    def violations(self):
        """What clients sent that the real server mishandles."""
        return list(self.cluster.violations)

    @for_tests
    def take_violations(self):
        """The same; they are forgotten then."""
        found = list(self.cluster.violations)
        self.cluster.violations.clear()
        return found

    @for_tests
    async def reset(self):
        """No bad day goes on, and there is no Pod."""
        await self.come_back()
        self.refusals.clear()
        self.losses.clear()
        self.watches_too_old = self.piece_bytes = 0
        self.are_messages_split = False
        self.be_version()
        self.set_clock(offset_s=0)
        self.release_pods()
        self.enforce_policies(on=True)
        self.find_node()
        self.set_room(**CAPACITY)
        self.cluster.give_back_rights()
        if self.account not in self.cluster.rights.tokens.values():
            self.renew_token()
        for pod in self.cluster.store.all("pods"):
            self.cluster.api.remove_pod(pod, 0)
        await self.cluster.node.clear()
        self.cluster.close_namespaces()

    # ---- the server is away

    @for_tests
    async def go_away(self, how="refuse"):
        """refuse: connections end, and new ones are refused.  hang: they
        are taken, and nothing is answered any more."""
        listener = self.cluster.listener
        if how == "refuse":
            await listener.close()
            listener.abort_all()
        elif how == "hang":
            listener.is_silent = True
            listener.flow.clear()
        else:
            raise ValueError(how)

    @for_tests
    async def come_back(self):
        """At the same port; what hung goes on."""
        listener = self.cluster.listener
        if listener.task is None:
            await listener.open()
        listener.go_on()

    @for_tests
    def refuse(self, code, times=1, method=None, path=None, retry_after=None,
               text=False):
        """The next requests, with this code; path is a pattern in the
        target.  retry_after: with that header, of seconds."""
        if code not in SAID:
            raise ValueError(code)
        reason, message = SAID[code]
        text = text or code == 502
        details = {"retryAfterSeconds": retry_after} \
            if retry_after is not None else None
        self.refusals.append((Rule(times, method, path), Refusal(
            code, reason, IN_TEXT.get(code, message) if text else message,
            details, text=text, retry_after=retry_after)))

    @for_tests
    def lose_answers(self, times=1, method=None, path=None):
        """What is asked for is done, and the connection ends before the
        answer."""
        self.losses.append(Rule(times, method, path))

    # ---- watches and streams

    @for_tests
    async def cut_watches(self):
        """In the middle of a line; says how many."""
        watchings = list(self.cluster.watchings.items())
        for one, link in watchings:
            obj = next(iter(self.cluster.store.all(one.resource.plural)), {})
            line = web.dumps({"type": "MODIFIED", "object": obj})
            try:
                await one.stream.write(line[:len(line) // 2])
            except web.Ended:
                continue
            link.abort()
        return len(watchings)

    @for_tests
    def expire_watches(self, times=1):
        """The next watches that begin at a version are told that it is too
        old."""
        self.watches_too_old = times

    @for_tests
    def compact(self):
        """All versions that somebody may know are too old."""
        self.cluster.store.compact()

    @for_tests
    def split_lines(self, size):
        """Lines of watches come in pieces of so many bytes; 0: whole."""
        self.piece_bytes = size

    @for_tests
    def watches(self):
        """How many there are."""
        return len(self.cluster.watchings)

    @for_tests
    def streams(self):
        """The paths of all exec and attach that go on."""
        return [s.request.path for s in self.cluster.sessions]

    @for_tests
    def blocked_streams(self):
        """How many have a client that does not read."""
        return sum(s.link.is_blocked for s in self.cluster.sessions)

    @for_tests
    def cut_streams(self):
        """All exec and attach end without a word, as when the API server is
        killed."""
        for session in list(self.cluster.sessions):
            session.link.abort()

    @for_tests
    async def ping_streams(self):
        """A PING to all of them."""
        for session in list(self.cluster.sessions):
            await session.socket.ping()

    @for_tests
    def split_messages(self, on=True):
        """Messages of exec and attach come in fragments."""
        self.are_messages_split = on

    @for_tests
    def be_version(self, minor=None):
        """As a server of 1.MINOR; before 1.30 it has no v5, before 1.35 exec
        wants the right to get alone."""
        self.cluster.be_version(minor)

    # ---- who may what

    @for_tests
    def set_rules(self, rules, namespace=None):
        """Of the Role that the account has; namespace=: of that in another
        one."""
        self.cluster.set_rules(rules, namespace)

    @for_tests
    def open_namespace(self, name):
        """Another one, where the account has the same rights, until
        reset."""
        self.cluster.open_namespace(name)

    @for_tests
    def take_right(self, resource, verbs=None, namespace=None):
        """From the account's Role: all verbs, or these."""
        def left(rule):
            if resource not in rule["resources"]:
                return [rule]
            others = [r for r in rule["resources"] if r != resource]
            kept = [v for v in rule["verbs"] if verbs and v not in verbs]
            return [rule | {"resources": r, "verbs": v} for r, v in
                    ((others, rule["verbs"]), ([resource], kept)) if r and v]

        self.set_rules([new for rule in self.cluster.rules(namespace)
                        for new in left(rule)], namespace)

    @for_tests
    def expire_tokens(self):
        """All of the account's."""
        tokens = self.cluster.rights.tokens
        for token in [t for t, who in tokens.items() if who is self.account]:
            del tokens[token]

    @for_tests
    def renew_token(self):
        """A new one in the file of the token; the old one stays good."""
        self.files.write_token(self.cluster.new_token(self.account))

    @for_tests
    def issue(self, name):
        """A client's certificate and its key: paths."""
        return self.files.issuer.issue(name)

    @for_tests
    def set_clock(self, offset_s):
        """The cluster's, so many seconds ahead."""
        self.cluster.clock.offset_s = offset_s

    # ---- Pods

    def life(self, pod):
        life = self.cluster.node.life_of(self.pod(pod))
        if life is None:
            raise LookupError(f"no life of {pod}")
        return life

    def pod(self, name):
        """NAME of the namespace of the tests, or NAMESPACE/NAME."""
        namespace, _, name = name.rpartition("/")
        found = self.cluster.store.get(
            "pods", namespace or self.cluster.namespace, name)
        if found is None:
            raise LookupError(f"no pod {name}")
        return found

    @for_tests
    def hold_pods(self):
        """New ones stay without a container until release_pods."""
        self.cluster.node.released.clear()

    @for_tests
    def release_pods(self):
        self.cluster.node.released.set()
        self.cluster.node.delay_s = 0

    @for_tests
    def delay_pods(self, seconds):
        """Each is so much later in what it does."""
        self.cluster.node.delay_s = seconds

    @for_tests
    async def evict(self, pod, message=EVICTED):
        """By the kubelet: the Pod is there, and has failed."""
        await self.life(pod).fail("Evicted", message)

    @for_tests
    async def kill_of_memory(self, pod):
        """All of it at once, as where a control group is killed whole."""
        await self.life(pod).kill_of_memory()

    @for_tests
    def delete_pod(self, pod, grace=0):
        """As somebody does by hand."""
        self.cluster.api.remove_pod(self.pod(pod), grace)

    @for_tests
    def remake(self, pod):
        """Delete it and create another under its name; says its uid."""
        return self.cluster.remake(self.pod(pod))["metadata"]["uid"]

    @for_tests
    def container(self, pod, name=None):
        """The engine's id of it, to look at what it got."""
        life = self.life(pod)
        return next(c.id for c in life.init + life.containers
                    if name in (None, c.name) and (name or not c.is_init))

    @for_tests
    def enforce_policies(self, on, namespace=None):
        """Whether the network enforces NetworkPolicy: many do not.
        namespace=: there alone, until all do or none does."""
        self.cluster.policies.enforce(on, namespace)

    # ---- the node

    @for_tests
    def set_room(self, **room):
        """What the node has: cpu=, memory=, pods=."""
        self.change_node(lambda node: node["status"]["allocatable"].update(
            room))

    def change_node(self, change):
        store = self.cluster.store
        node = store.get("nodes", None, scheduling.NODE)
        if node is None:
            self.cluster.put_node()
            node = store.get("nodes", None, scheduling.NODE)
        store.update("nodes", node, change)

    def tell_node(self, word):
        """Its condition Ready, and what follows from it."""
        def change(node):
            ready = node["status"]["conditions"][0]
            ready["status"] = word
            ready["reason"], ready["message"] = OF_NODE[word]
            node["spec"] = {"taints": [
                {"key": TAINTS[word], "effect": effect}
                for effect in ("NoSchedule", "NoExecute")]} \
                if word in TAINTS else {}

        def unready(pod):
            status = pod["status"]
            if status["phase"] == "Running":
                statuses.set_condition(status, statuses.condition(
                    status["conditions"], "Ready", False, None, None,
                    self.cluster.clock.stamp()))

        self.change_node(change)
        if word in TAINTS:
            for pod in self.cluster.store.all("pods"):
                self.cluster.store.update("pods", pod, unready)

    @for_tests
    def trouble_node(self):
        """It is not ready: nothing is placed there; what runs runs on."""
        self.tell_node("False")

    @for_tests
    def lose_node(self):
        """Nobody reaches it: Pods stay Running, streams say nothing more, new
        ones fail, and what is deleted stays Terminating."""
        self.cluster.node.reachable.clear()
        self.tell_node("Unknown")

    @for_tests
    def drain_lost_node(self):
        """Its Pods are deleted, as after five minutes, which nobody there
        hears of."""
        for pod in self.cluster.store.all("pods"):
            self.cluster.api.remove_pod(pod, None)

    @for_tests
    async def remove_node(self):
        """The machine is gone for good: so are its Pods, object and all."""
        await self.cluster.node.burn()
        store = self.cluster.store
        store.remove("nodes", store.get("nodes", None, scheduling.NODE))

    @for_tests
    def find_node(self):
        """It is there and ready."""
        self.tell_node("True")
        node = self.cluster.node
        if node.is_lost:
            node.reachable.set()
            for life in node.lives.values():
                life.publish_again()
