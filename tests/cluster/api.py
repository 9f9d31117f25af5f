"""The API: from a request's path to an object, and back.

Each request is answered in the order of the real server: who is it, may they,
then the object.  What is refused on the way is a Refusal.
"""
import datetime
import json
import traceback
import uuid

from . import (
    discovery, listing, patching, protobuf, resizing, resources, schema,
    streams, web)
from .admission import admit
from .answers import (
    Refusal, already_exists, bad_request, conflict, no_such_path, not_allowed,
    not_found, unsupported_media)
from .logs import send_log
from .resources import PODS
from .rights import Wanted
from .watching import send_watch

ACCEPTED = ("application/json", "application/yaml",
            "application/vnd.kubernetes.protobuf")
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class Place:
    """What the path of a request names."""

    def __init__(self, resource, namespace, name, subresource):
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.subresource = subresource

    @classmethod
    def of(cls, path):
        """None where it is no path of an object."""
        words = path.strip("/").split("/")
        if words[:1] == ["api"]:
            group, version, rest = "", words[1:2], words[2:]
        elif words[:1] == ["apis"]:
            group, version, rest = "".join(words[1:2]), words[2:3], words[3:]
        else:
            return None
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        found = resources.BY_PATH.get((group, *version, *rest[:1]))
        if found is None or found.is_namespaced < bool(namespace) or \
                len(rest) > 3:
            return None
        name, subresource = (rest[1:] + ["", ""])[:2]
        if subresource and subresource not in found.subresources:
            return None
        return cls(found, namespace, name, subresource)


def verb_of(request, place):
    """As rights name it; Refusal where the method is none here."""
    method = request.method
    if place.subresource:
        return {"GET": "get", **VERBS}.get(method, "delete")
    if method == "GET":
        return "get" if place.name else \
            "watch" if request.is_set("watch") else "list"
    if method == "DELETE":
        return "delete" if place.name else "deletecollection"
    return VERBS.get(method, "get")


class Api:
    def __init__(self, cluster):
        self.cluster = cluster
        self.store = cluster.store
        self.verbs = {
            "get": self.get, "list": self.list, "watch": self.watch,
            "create": self.create, "update": self.update,
            "patch": self.patch, "delete": self.delete,
            "deletecollection": self.delete_collection}

    async def serve(self, request):
        """True where the connection may go on."""
        request.extra_headers = {
            "Audit-Id": str(uuid.uuid4()),
            "Cache-Control": "no-cache, private",
            "Date": self.cluster.clock.header(),
            "X-Kubernetes-Pf-Flowschema-Uid": self.cluster.run.uid,
            "X-Kubernetes-Pf-Prioritylevel-Uid": self.cluster.run.uid}
        try:
            self.cluster.faults.check(request)
            await self.route(request)
        except Refusal as e:
            await e.send(request)
        except web.Ended:
            return False
        except Exception:
            traceback.print_exc()  # a test's cluster may not say a word
            return False
        return not streams.is_upgrade(request) and \
            "close" not in request.word("connection").lower()

    async def route(self, request):
        identity = self.cluster.rights.who(request)
        place = Place.of(request.path)
        if place is None:
            self.cluster.rights.check_path(identity, request.path)
            answer = discovery.answer(self.cluster, request)
            if answer is None:
                raise no_such_path()
            await answer
            return
        verb = verb_of(request, place)
        wanted = Wanted(verb, place.resource, place.subresource,
                        place.namespace, place.name)
        self.cluster.rights.check(identity, wanted)
        if place.subresource:
            await self.subresource(request, place, identity)
        elif verb not in place.resource.verbs or \
                (verb == "create" and place.name):
            raise not_allowed()
        else:
            request.identity = identity
            await self.verbs[verb](request, place)

    # ---- reading

    def found(self, place):
        obj = self.store.get(place.resource.plural, place.namespace,
                             place.name)
        if obj is None:
            raise not_found(place.resource, place.name)
        return obj

    async def get(self, request, place):
        listing.check_version(self.store, request, is_list=False)
        await listing.send(request, self.found(place))

    async def list(self, request, place):
        await listing.send(request, listing.listed(
            self.store, request, place.resource, place.namespace or None))

    async def watch(self, request, place):
        await send_watch(self.cluster, request, place.resource,
                         place.namespace or None)

    # ---- writing

    def body(self, request):
        kind = request.word("content-type").partition(";")[0].strip()
        if kind and kind != ACCEPTED[0]:
            raise unsupported_media(ACCEPTED)
        return request.body

    def decoded(self, request, place):
        if request.word("content-type") == protobuf.NAME:
            obj = protobuf.decode(request.body)
            if obj is None:
                raise unsupported_media(ACCEPTED[:2])
            return obj
        return schema.decode(request, place.resource, self.body(request))

    async def create(self, request, place):
        obj = self.decoded(request, place)
        made = self.make(request, place, obj)
        await request.json(201, made)

    def make(self, request, place, obj):
        """The new object, stored but for a dry run."""
        plural = place.resource.plural
        review = self.cluster.reviews.get(plural)
        if review:
            return review(request.identity, obj)
        obj = admit(self.cluster, request, place, obj)
        meta = obj["metadata"]
        old = self.store.get(plural, place.namespace, meta["name"])
        if old is not None:
            raise already_exists(place.resource, meta["name"],
                                 "deletionTimestamp" in old["metadata"])
        obj["metadata"] = self.store.new_metadata(meta, place.namespace)
        if request.param("dryRun"):
            del obj["metadata"]["resourceVersion"]
            return obj
        made = self.store.add(plural, obj)
        self.cluster.made(plural, made)
        return made

    async def update(self, request, place):
        old = self.found(place)
        new = self.decoded(request, place)
        await request.json(200, self.replace(request, place, old, new))

    async def patch(self, request, place):
        old = self.found(place)
        new = patching.patched(request, place.resource, old)
        await request.json(200, self.replace(request, place, old, new))

    def replace(self, request, place, old, new):
        patching.check(place.resource, old, new)
        if request.param("dryRun"):
            return new

        def change(obj):
            kept = obj["metadata"]
            for key in ("labels", "annotations", "finalizers"):
                kept.pop(key, None)
                if new["metadata"].get(key):
                    kept[key] = new["metadata"][key]
            if "spec" in new and new["spec"] != obj.get("spec"):
                kept["generation"] += 1
            for key in set(obj) | set(new):
                if key in ("metadata", "status", "kind", "apiVersion"):
                    continue
                if key in new:
                    obj[key] = new[key]
                else:
                    obj.pop(key)

        return self.store.update(place.resource.plural, old, change)

    # ---- removing

    def delete_options(self, request):
        options = {}
        if request.body:
            try:
                options = json.loads(self.body(request))
            except ValueError:
                raise bad_request("couldn't get version/kind; json parse "
                                  "error") from None
        if "gracePeriodSeconds" in request.query:
            options["gracePeriodSeconds"] = int(
                request.param("gracePeriodSeconds"))
        return options

    async def delete(self, request, place):
        options = self.delete_options(request)
        obj = self.found(place)
        self.check_preconditions(place.resource, obj, options)
        left = self.remove(place.resource, obj, options)
        if place.resource is PODS or left is not None:
            await request.json(200, left or obj)
            return
        details = {"name": place.name}
        if place.resource.group:
            details["group"] = place.resource.group
        await request.json(200, {
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Success", "details": details | {
                "kind": place.resource.plural,
                "uid": obj["metadata"]["uid"]}})

    @staticmethod
    def check_preconditions(resource, obj, options):
        asked, meta = options.get("preconditions") or {}, obj["metadata"]
        for key, name, more in (
                ("uid", "UID", " The object might have been deleted and then "
                 "recreated"), ("resourceVersion", "ResourceVersion",
                                " The object might have been modified")):
            if asked.get(key) not in (None, meta[key]):
                raise conflict(
                    resource.kind, meta["name"], f"the {name} in the "
                    f"precondition ({asked[key]}) does not match the {name} "
                    f"in record ({meta[key]}).{more}")

    def remove(self, resource, obj, options):
        """What is left of it for now; None where it is gone."""
        if options.get("dryRun"):
            return obj
        if resource is PODS:
            return self.remove_pod(obj, options.get("gracePeriodSeconds"))
        left = self.cluster.removal_waits(resource.plural, obj)
        if left is not None:
            return left
        self.store.remove(resource.plural, obj)
        self.cluster.removed(resource.plural, obj)
        return None

    def remove_pod(self, pod, grace):
        spec, life = pod["spec"], self.cluster.node.life_of(pod)
        if grace is None:
            grace = spec["terminationGracePeriodSeconds"]
        if not spec.get("nodeName") or life is None:
            grace = 0
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            grace = 0
        left = pod
        if grace == 0:
            self.store.remove("pods", pod)
        else:
            left = self.store.update(
                "pods", pod, lambda p: self.mark_ending(p, grace))
        if life is not None:
            life.end(grace)
        return left

    def mark_ending(self, pod, grace):
        meta = pod["metadata"]
        if meta.get("deletionGracePeriodSeconds", grace + 1) <= grace:
            return
        at = self.cluster.clock.now() + datetime.timedelta(seconds=grace)
        if "deletionTimestamp" not in meta:
            meta["generation"] += 1
        meta["deletionTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        meta["deletionGracePeriodSeconds"] = grace

    async def delete_collection(self, request, place):
        options = self.delete_options(request)
        found = listing.listed(self.store, request, place.resource,
                               place.namespace or None)
        items = []
        for item in found["items"]:
            meta = item["metadata"]
            obj = self.store.get(place.resource.plural, meta.get("namespace"),
                                 meta["name"])
            left = self.remove(place.resource, obj, options)
            items.append(listing.bare(left or obj))
        await request.json(200, found | {"items": items})

    # ---- below a Pod

    async def subresource(self, request, place, identity):
        name = place.subresource
        if name in ("exec", "attach"):
            if request.method == "GET" and self.cluster.wants_create:
                wanted = Wanted("create", place.resource, name,
                                place.namespace, place.name)
                if self.cluster.rights.allows(identity, wanted) is None:
                    raise Refusal(
                        403, None, f'pods "{place.name}" is forbidden: ',
                        {"name": place.name, "kind": "pods"})
            await streams.serve(self.cluster, request, self.found(place),
                                name)
        elif name == "log":
            await send_log(self.cluster, request, self.found(place))
        elif name == "resize" and request.method == "PATCH":
            await self.resize(request, place)
        elif name == "eviction" and request.method == "POST":
            await self.evict(request, place)
        elif request.method == "GET":
            await self.get(request, place)
        else:
            raise not_allowed()

    async def resize(self, request, place):
        old = self.found(place)
        new = patching.patched(request, place.resource, old)
        await request.json(200, await resizing.resize(self.cluster, old, new))

    async def evict(self, request, place):
        pod = self.found(place)
        self.remove_pod(pod, None)
        await request.json(201, {
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Success", "code": 201})
