"""deploy/kubernetes: kustomize's base and its components, and the chart."""
import os
import re

import pytest
import yaml

import fields
from manifests import (
    BOXES, CHART, NAMESPACE, ROOM, charted, find, kustomized, pod_of,
    relative, settings_of, with_components)
from pages import read
from programs import output_of, run

COMPONENTS = ("disruption", "monitoring", "restricted", "tenant",
              "two-users", "volumes")
PER_TENANT = "sandboxes.namespace=mcp-sandboxes-{tenant}"
VARIANTS = {
    "restricted": ["sandboxes.security=restricted"],
    "two users": ["twoUsers=true"],
    "OpenShift": ["runAsUser=null"],
    "volumes": ["sandboxes.volumeClass=standard"],
    "all": ["monitoring.enabled=true", "disruptionBudgets=true",
            "persistence.storageClass=fast", "service.type=LoadBalancer",
            "imagePullSecrets={registry}", "settings.LOG_FORMAT=json",
            "settingsSecrets={oauth}", "podAnnotations.a=b",
            "nodeSelector.disk=ssd", "sandboxes.networkPolicy=make",
            "sandboxes.tenantNamespaces={mcp-sandboxes-a,mcp-sandboxes-b}",
            "tolerations[0].key=a,tolerations[0].operator=Exists"],
    "least": ["sandboxes.createNamespace=false", "resources=null",
              "networkPolicy.enabled=false", "persistence.existingClaim=data",
              "sandboxes.networkPolicy=none"]}
UNKNOWN = "ServiceMonitor"  # the operator's, of which Debian knows nothing


def setting_names():
    return {n.split("|")[0] for n in read("schema/config.txt").splitlines()
            if n and not n.startswith("#")}


@pytest.fixture(name="overlay")
def overlay_fixture(tmp_path):
    return lambda *components, **more: with_components(
        tmp_path, *components, **more)


def check_fields(objects):
    wrong = [f for o in objects if o["kind"] != UNKNOWN
             for f in fields.faults(o)]
    assert wrong == []


# ---- what is made

@pytest.mark.parametrize("name", ["base", "dind", "example"])
def test_kustomize_makes_objects_of_the_api(name):
    check_fields(kustomized(name))


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_goes_with_the_base(overlay, component):
    check_fields(overlay(component))


def test_all_components_go_together(overlay):
    check_fields(overlay(*COMPONENTS))
    assert set(COMPONENTS) == set(os.listdir(os.path.join(
        ROOM, "components")))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_chart_makes_objects_of_the_api(variant):
    check_fields(charted(*VARIANTS[variant]))


def test_a_field_that_the_api_does_not_have_is_found():
    pod = pod_of(kustomized("base"))
    container = dict(pod["spec"]["containers"][0], readOnly=True)
    deployment = {"kind": "Deployment", "spec": {"template": {"spec": {
        "containers": [container]}}}}
    assert fields.faults(deployment) == [
        "Deployment.spec.template.spec.containers[0].readOnly: "
        "no such field"]
    assert fields.faults({"kind": "Deployment", "spec": {"replicas": "1"}}) \
        == ["Deployment.spec.replicas: '1' is no int"]


def test_the_chart_is_without_fault():
    said = output_of("helm", "lint", "--strict", CHART)
    assert "1 chart(s) linted, 0 chart(s) failed" in said


def own_labels(o):
    """Helm's own ones say who made it."""
    labels = o["metadata"].get("labels", {})
    return {k: v for k, v in labels.items() if k not in (
        "app.kubernetes.io/managed-by", "app.kubernetes.io/version",
        "helm.sh/chart")}


def same(objects):
    """Without what only one of the two can have: the namespace of a release
    is there before it, and a ConfigMap that changes makes a new Pod by a
    digest in its name, or in an annotation."""
    kept = {}
    for o in objects:
        o["metadata"]["labels"] = own_labels(o)
        if o["kind"] == "ConfigMap":
            o["metadata"]["name"] = NAMESPACE
        if o["kind"] == "Deployment":
            pod = o["spec"]["template"]
            pod["metadata"].pop("annotations", None)
            pod["spec"]["containers"][0]["envFrom"] = [
                {"configMapRef": {"name": NAMESPACE}}]
        key = (o["kind"], o["metadata"].get("namespace"),
               o["metadata"]["name"])
        assert key not in kept
        kept[key] = o
    kept.pop(("Namespace", None, NAMESPACE), None)
    return kept


@pytest.mark.parametrize("components,values", [
    ([], []), (["restricted"], VARIANTS["restricted"]),
    (["two-users"], VARIANTS["two users"]),
    (["volumes"], VARIANTS["volumes"]),
    (["monitoring", "disruption"], [
        "monitoring.enabled=true", "disruptionBudgets=true"])])
def test_the_chart_and_kustomize_make_the_same(overlay, components, values):
    assert same(charted(*values)) == same(overlay(*components))


@pytest.mark.parametrize("value,said", [
    ("sandboxes.security=privileged", "sandboxes/security"),
    ("sandboxs.security=restricted", "sandboxs"),
    ("settings.logFormat=json", "logFormat"), ("runAsUser=0", "runAsUser"),
    ("sandboxes.tenantNamespaces={A}", "sandboxes/tenantNamespaces"),
    ("service.port=0", "service/port")])
def test_the_chart_refuses_values_that_are_none(value, said):
    done = run("helm", "template", "x", CHART, "--set", value)
    assert done.returncode != 0
    assert re.sub(r"\W", "/", said) in re.sub(r"\W", "/", done.stderr)


def test_the_chart_has_the_version_of_the_programs():
    version = re.search(r"AC_INIT\(\[mcp-sandboxd\], \[(.*?)\]",
                        read("configure.ac"))[1]
    chart = read("deploy/kubernetes/chart/Chart.yaml")
    assert f"\nversion: {version}\n" in chart
    assert f"\nappVersion: {version}\n" in chart


# ---- what the server is told

@pytest.mark.parametrize("objects", [
    lambda: kustomized("base"), lambda: kustomized("example"),
    lambda: kustomized("dind"), lambda: charted(*VARIANTS["all"])])
def test_settings_are_such(objects):
    told = settings_of(objects())
    assert set(told) <= setting_names()


def test_a_setting_of_ones_own_comes_last():
    told = settings_of(charted("settings.SANDBOX_IMAGE=other"))
    assert told["SANDBOX_IMAGE"] == "other"


def test_a_change_of_a_setting_makes_a_new_pod():
    pods = [pod_of(charted(*v))["metadata"]["annotations"]
            for v in ([], ["settings.LOG_LEVEL=debug"])]
    assert pods[0] != pods[1]


def test_the_overlay_names_each_image_alike():
    objects = kustomized("example")
    image = pod_of(objects)["spec"]["containers"][0]["image"]
    assert settings_of(objects)["KUBERNETES_AGENT_IMAGE"] == image
    assert image.startswith("registry.example/")


# ---- what it may do

def c_needs():
    """(verb, resource) that the worker asks the cluster about."""
    text = read("worker/kubernetes/pod_room.c")
    table = re.search(r"rights_need needs\[\] = \{(.*?)\};", text, re.S)[1]
    return re.findall(r'\{"(\w+)", "([\w.]*)", "([\w/]+)"\}', table)


def needs(with_volumes=False):
    """The last ones are those of volumes."""
    last = re.search(r"#define NEEDS_OF_VOLUMES (\d+)", read(
        "worker/kubernetes/pod_room.c"))[1]
    return set(c_needs() if with_volumes else c_needs()[:-int(last)])


def given(objects, namespace=BOXES):
    role = find(objects, "Role", namespace=namespace)
    return {(verb, group, resource) for rule in role["rules"]
            for verb in rule["verbs"] for group in rule["apiGroups"]
            for resource in rule["resources"]}


def test_the_role_is_what_the_server_needs_and_no_more():
    network = {("get", "networking.k8s.io", "networkpolicies")}
    assert needs()
    assert given(kustomized("base")) == needs() | network
    assert given(charted("sandboxes.networkPolicy=make")) == \
        needs() | network | {("create", "networking.k8s.io",
                              "networkpolicies")}
    assert given(charted("sandboxes.networkPolicy=none")) == needs()


def test_with_volumes_it_is_what_claims_need_besides(overlay):
    network = {("get", "networking.k8s.io", "networkpolicies")}
    more = needs(with_volumes=True) - needs()
    assert {resource for _, _, resource in more} == {"persistentvolumeclaims"}
    for objects in (overlay("volumes"), charted(*VARIANTS["volumes"])):
        assert given(objects) == needs(with_volumes=True) | network
        assert settings_of(objects)["KUBERNETES_VOLUME_CLASS"] == "standard"


def test_nothing_is_given_beyond_the_sandboxes_namespace():
    for objects in (kustomized("base"), charted()):
        kinds = {o["kind"] for o in objects}
        assert not any(k.startswith("Cluster") for k in kinds)
        binding = find(objects, "RoleBinding", namespace=BOXES)
        assert binding["subjects"] == [{
            "kind": "ServiceAccount", "name": NAMESPACE,
            "namespace": NAMESPACE}]


# ---- a namespace for each tenant

@pytest.fixture(name="tenants")
def tenants_fixture(tmp_path, overlay):
    """An overlay as the page has it, of the tenants of these names."""
    def make(*names):
        for name in names:
            room = tmp_path / name
            room.mkdir()
            (room / "kustomization.yaml").write_text(yaml.safe_dump({
                "kind": "Kustomization", "namespace": f"{BOXES}-{name}",
                "components": [relative(room, "components/tenant")]}))
        return overlay(resources=list(names), literals=[
            f"KUBERNETES_SANDBOX_NAMESPACE={BOXES}-{{tenant}}"])
    return make


def of_room(objects, namespace):
    """{kind and name: object} without what the namespace is called."""
    found = {}
    for o in objects:
        meta = o["metadata"]
        if o["kind"] == "Namespace" and meta["name"] == namespace:
            meta = o["metadata"] = meta | {"name": "its"}
        elif meta.get("namespace") != namespace:
            continue
        meta["labels"] = own_labels(o)
        meta.pop("namespace", None)
        found[o["kind"], meta["name"]] = o
    return found


def test_each_tenants_namespace_is_as_the_only_one_is(tenants):
    objects = tenants("acme", "globex")
    only = of_room(kustomized("base"), BOXES)
    assert set(k for k, _ in only) == {
        "Namespace", "NetworkPolicy", "Role", "RoleBinding"}
    for name in ("acme", "globex"):
        assert of_room(objects, f"{BOXES}-{name}") == only
    assert settings_of(objects)["KUBERNETES_SANDBOX_NAMESPACE"] == \
        "mcp-sandboxes-{tenant}"
    check_fields(objects)


@pytest.mark.parametrize("more", [[], ["disruptionBudgets=true"]])
def test_the_chart_makes_each_tenants_namespace_alike(tenants, more):
    rooms = [f"{BOXES}-{name}" for name in ("acme", "globex")]
    objects = charted(PER_TENANT, "sandboxes.tenantNamespaces={%s}" %
                      ",".join(rooms), *more)
    only = of_room(charted(*more), BOXES)
    assert only
    for room in rooms:
        assert of_room(objects, room) == only
    assert not any(o["metadata"].get("namespace") == BOXES or
                   "{" in o["metadata"].get("namespace", "")
                   for o in objects)
    assert settings_of(objects)["KUBERNETES_SANDBOX_NAMESPACE"] == \
        "mcp-sandboxes-{tenant}"


def test_both_make_the_same_of_tenants(tenants):
    rooms = [f"{BOXES}-{name}" for name in ("acme", "globex")]
    made = tenants("acme", "globex")
    objects = charted(PER_TENANT, "sandboxes.tenantNamespaces={%s}" %
                      ",".join(rooms))
    for room in rooms:
        assert of_room(made, room) == of_room(objects, room)


# ---- what it is kept from

@pytest.mark.parametrize("make", [lambda: kustomized("base"), charted])
def test_the_policy_of_sandboxes_is_the_one_that_the_server_looks_for(make):
    """tests/integration/test_pod_network.py tries what it holds."""
    name = re.search(r'NETWORK_POLICY "(.*?)"', read(
        "worker/kubernetes/network_body.h"))[1]
    prefix = next(n.split("|")[2] for n in read(
        "schema/config.txt").splitlines()
        if n.startswith("KUBERNETES_SANDBOX_LABEL_PREFIX|"))
    label = re.search(r'POD_LABEL_NETWORK "(.*?)"', read(
        "worker/kubernetes/pod_labels.h"))[1]
    assert find(make(), "NetworkPolicy", name, BOXES)["spec"] == {
        "podSelector": {"matchLabels": {f"{prefix}/{label}": "none"}},
        "policyTypes": ["Ingress", "Egress"]}


def test_the_server_keeps_the_standard_that_its_namespace_has(overlay):
    base = kustomized("base")
    assert level(base, NAMESPACE) == "restricted"
    spec = pod_of(base)["spec"]
    container, = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {
        "type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]}}
    two = overlay("two-users")
    assert level(two, NAMESPACE) == "baseline"
    assert level(two, BOXES) == "baseline"


def level(objects, namespace):
    return find(objects, "Namespace", namespace)["metadata"]["labels"][
        "pod-security.kubernetes.io/enforce"]


def test_the_level_of_sandboxes_is_the_one_that_the_server_is_told(overlay):
    for objects in (overlay("restricted"), charted(*VARIANTS["restricted"])):
        assert level(objects, BOXES) == "restricted"
        assert settings_of(objects)["KUBERNETES_SECURITY"] == "restricted"
    for objects in (kustomized("base"), charted()):
        assert level(objects, BOXES) == "baseline"
        assert "KUBERNETES_SECURITY" not in settings_of(objects)


def test_the_token_is_roots_where_there_are_two_users(overlay):
    spec = pod_of(overlay("two-users"))["spec"]
    assert spec["automountServiceAccountToken"] is False
    volume, = (v for v in spec["volumes"] if v["name"] == "account")
    assert volume["projected"]["defaultMode"] == 0o400


def test_the_sidecar_form_is_as_compose_has_it():
    compose = read("deploy/compose/dind/compose.yaml")
    objects = kustomized("dind")
    spec = pod_of(objects)["spec"]
    docker, = spec["initContainers"]
    assert f"DIND_IMAGE:-{docker['image']}" in compose
    caps = spec["containers"][0]["securityContext"]["capabilities"]
    assert f"cap_add: [{', '.join(caps['add'])}]" in compose
    assert settings_of(objects)["DOCKER_CERT_PATH"] == "/certs/client"


# ---- the page

def test_the_page_names_what_there_is():
    page = read("docs/kubernetes.md")
    named = set(re.findall(r"\b(?:KUBERNETES|SANDBOX)_[A-Z_]+\b", page))
    assert named <= setting_names()
    install = re.search(r"^helm install (?:.*\\\n)*.*", page, re.M)[0]
    words = install.replace("\\\n", " ").replace("--wait", "").split()
    made = output_of("helm", "template", *words[2:3], CHART, *words[4:])
    assert "image: registry.example/mcp-sandboxd/server:latest" in made
    for component in COMPONENTS:
        assert f"`{component}`" in page


def test_the_page_has_the_rights_of_the_role(overlay):
    table = read("docs/kubernetes.md").split("## Rights")[1].split("##")[0]
    rows = {resource: set(verbs.split(", ")) for verbs, resource in re.findall(
        r"^\| ([a-z, ]+) \| ([a-z/]+) \|", table, re.M)}
    rows.pop("resource")
    found = {}
    for verb, _, resource in given(overlay("volumes")):
        found.setdefault(resource, set()).add(verb)
    assert rows == found
