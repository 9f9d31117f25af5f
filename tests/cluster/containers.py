"""What the engine is asked for a container of a Pod."""
import re

from . import quantity

CPU_PERIOD_US = 100000


class BadConfig(Exception):
    """A container that the kubelet does not make."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


def body(pod, container, image, mounts, network, labels, api):
    """Of POST /containers/create."""
    context = security(pod, container)
    out = {
        "Image": image["Id"],
        "Hostname": pod["metadata"]["name"][:63].rstrip("-."),
        "Env": [f"{k}={v}" for k, v in
                environment(pod, container, api).items()],
        "User": user(pod, container, context, image),
        "Tty": container.get("tty", False),
        "OpenStdin": container.get("stdin", False),
        "StdinOnce": container.get("stdinOnce", False),
        "Labels": labels,
        "HostConfig": host_config(pod, container, context) | {
            "Mounts": mounts, "NetworkMode": network},
    }
    if container.get("workingDir"):
        out["WorkingDir"] = container["workingDir"]
    values = environment(pod, container, api)
    if container.get("command"):
        out["Entrypoint"] = [expand(c, values) for c in container["command"]]
    if container.get("args"):
        out["Cmd"] = [expand(c, values) for c in container["args"]]
    if network.startswith("container:"):
        del out["Hostname"]
    return out


def security(pod, container):
    """The container's context, and of the Pod's what it does not say."""
    of_pod = pod["spec"].get("securityContext") or {}
    of_container = container.get("securityContext") or {}
    return {k: v for k, v in of_pod.items() if v is not None} | \
        {k: v for k, v in of_container.items() if v is not None}


def host_config(pod, container, context):
    capabilities = context.get("capabilities") or {}
    out = {
        "CapAdd": capabilities.get("add") or [],
        "CapDrop": capabilities.get("drop") or [],
        "Privileged": context.get("privileged", False),
        "ReadonlyRootfs": context.get("readOnlyRootFilesystem", False),
        "SecurityOpt": security_options(context),
        "GroupAdd": [str(g) for g in groups(pod)],
    }
    return out | resources(container.get("resources") or {})


def security_options(context):
    out = []
    if context.get("allowPrivilegeEscalation") is False:
        out.append("no-new-privileges")
    # Without a word a container of Kubernetes has no filter.
    profile = (context.get("seccompProfile") or {}).get("type", "Unconfined")
    if profile == "Unconfined":
        out.append("seccomp=unconfined")
    return out


def groups(pod):
    context = pod["spec"].get("securityContext") or {}
    out = list(context.get("supplementalGroups") or ())
    if context.get("fsGroup") is not None:
        out.append(context["fsGroup"])
    return out


def resources(asked):
    """Also of an update of a container that runs."""
    out = {}
    limits, requests = asked.get("limits", {}), asked.get("requests", {})
    if "memory" in limits:
        out["Memory"] = out["MemorySwap"] = quantity.whole(limits["memory"])
    if "cpu" in limits:
        out["CpuPeriod"] = CPU_PERIOD_US
        out["CpuQuota"] = max(1000, int(
            quantity.number(limits["cpu"]) * CPU_PERIOD_US))
    if "cpu" in requests:
        out["CpuShares"] = max(2, int(quantity.number(requests["cpu"]) * 1024))
    return out


def user(pod, container, context, image):
    """As the engine wants it; BadConfig where it would be root and must
    not."""
    uid = context.get("runAsUser")
    of_image = (image.get("Config") or {}).get("User") or ""
    if context.get("runAsNonRoot"):
        refuse_root(pod, container, uid, of_image)
    if uid is None:
        return of_image
    gid = context.get("runAsGroup")
    return str(uid) if gid is None else f"{uid}:{gid}"


def refuse_root(pod, container, uid, of_image):
    name = of_image.partition(":")[0]
    if uid is None and name and not name.isdigit():
        why = "container has runAsNonRoot and image has non-numeric user " \
            f"({name}), cannot verify user is non-root"
    elif uid == 0:
        why = "container's runAsUser breaks non-root policy"
    elif uid is None and name in ("", "0"):
        why = "container has runAsNonRoot and image will run as root"
    else:
        return
    meta = pod["metadata"]
    raise BadConfig(
        "CreateContainerConfigError",
        f'{why} (pod: "{meta["name"]}_{meta["namespace"]}({meta["uid"]})", '
        f'container: {container["name"]})')


def environment(pod, container, api):
    """Every container is told where the API server is, like it or not."""
    host, port = api.address
    out = {"KUBERNETES_SERVICE_HOST": host,
           "KUBERNETES_SERVICE_PORT": str(port),
           "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
           "KUBERNETES_PORT": f"tcp://{host}:{port}"}
    for source in container.get("envFrom") or ():
        out |= all_of(pod, source, api)
    for variable in container.get("env") or ():
        value = expand(variable.get("value") or "", out) \
            if "valueFrom" not in variable else \
            value_from(pod, variable["valueFrom"], api)
        if value is not None:
            out[variable["name"]] = value
    return out


def all_of(pod, source, api):
    for key, plural in (("configMapRef", "configmaps"),
                        ("secretRef", "secrets")):
        if key in source:
            found = api.data_of(pod, plural, source[key])
            return {source.get("prefix", "") + k: v for k, v in found.items()}
    return {}


def value_from(pod, source, api):
    """None where it is missing and may be."""
    if "fieldRef" in source:
        at = pod
        for word in re.findall(r"[^.\[\]']+", source["fieldRef"]["fieldPath"]):
            at = at.get(word) if isinstance(at, dict) else None
        return "" if at is None else str(at)
    for key, plural in (("configMapKeyRef", "configmaps"),
                        ("secretKeyRef", "secrets")):
        if key in source:
            ref = source[key]
            found = api.data_of(pod, plural, ref)
            if ref["key"] in found or ref.get("optional"):
                return found.get(ref["key"])
            kind = "configmap" if plural == "configmaps" else "secret"
            raise BadConfig(
                "CreateContainerConfigError", f"couldn't find key {ref['key']}"
                f" in {kind} {pod['metadata']['namespace']}/{ref['name']}")
    return ""


def expand(text, values):
    """$(NAME), where it is known; $$ is one."""
    return re.sub(r"\$(?:\$|\(([A-Za-z_.-][A-Za-z0-9_.-]*)\))",
                  lambda m: "$" + m[0][2:] if m[1] is None
                  else values.get(m[1], m[0]), text)
