"""Pod Security: what a namespace's label does not let through."""
from .answers import forbidden
from .resources import PODS
from .schema import warn

LABEL = "pod-security.kubernetes.io/"
OF_BASELINE = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL",
    "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID",
    "SYS_CHROOT"}
VOLUMES_OF_RESTRICTED = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image",
    "persistentVolumeClaim", "projected", "secret"}
PROFILES = ("RuntimeDefault", "Localhost")


def check(request, labels, pod):
    """Refuses it, or warns, as the labels say."""
    for mode in ("enforce", "warn"):
        level = labels.get(LABEL + mode)
        if level not in ("baseline", "restricted"):
            continue
        version = labels.get(f"{LABEL}{mode}-version", "latest")
        said = complaints(pod["spec"], level)
        if not said:
            continue
        if mode == "enforce":
            raise forbidden(
                PODS, pod["metadata"]["name"], "violates PodSecurity "
                f'"{level}:{version}": {", ".join(said)}')
        warn(request, [f'would violate PodSecurity "{level}:{version}": '
                       f'{", ".join(said)}'])


def complaints(spec, level):
    """In the order of their names, as the real one tells them."""
    every = [*spec.get("initContainers", []), *spec.get("containers", [])]
    tests = BASELINE if level == "baseline" else {**BASELINE, **RESTRICTED}
    return [words for name in sorted(tests)
            if (words := tests[name](spec, every))]


def named(containers):
    """container "a", or containers "a", "b"."""
    names = ", ".join(f'"{c["name"]}"' for c in containers)
    return f"container{'s' if len(containers) > 1 else ''} {names}"


def context(container):
    return container.get("securityContext") or {}


def capabilities(container, what):
    return (context(container).get("capabilities") or {}).get(what) or []


def privileged(spec, every):
    bad = [c for c in every if context(c).get("privileged")]
    return bad and f"privileged ({named(bad)} must not set " \
        "securityContext.privileged=true)"


def host_namespaces(spec, every):
    bad = [f"{k}=true" for k in ("hostNetwork", "hostPID", "hostIPC")
           if spec.get(k)]
    return bad and f"host namespaces ({', '.join(bad)})"


def host_path(spec, every):
    bad = [v for v in spec.get("volumes", []) if "hostPath" in v]
    if not bad:
        return None
    names = ", ".join(f'"{v["name"]}"' for v in bad)
    return f"hostPath volumes (volume{'s' if len(bad) > 1 else ''} {names})"


def added_of_baseline(spec, every):
    bad = [c for c in every
           if set(capabilities(c, "add")) - OF_BASELINE]
    if not bad:
        return None
    words = ", ".join(f'"{w}"' for w in sorted(
        {w for c in bad for w in capabilities(c, "add")} - OF_BASELINE))
    return f"non-default capabilities ({named(bad)} must not include " \
        f"{words} in securityContext.capabilities.add)"


def escalation(spec, every):
    bad = [c for c in every
           if context(c).get("allowPrivilegeEscalation") is not False]
    return bad and f"allowPrivilegeEscalation != false ({named(bad)} must " \
        "set securityContext.allowPrivilegeEscalation=false)"


def capabilities_of_restricted(spec, every):
    kept = [c for c in every if "ALL" not in capabilities(c, "drop")]
    added = [c for c in every
             if set(capabilities(c, "add")) - {"NET_BIND_SERVICE"}]
    said = []
    if kept:
        said.append(f'{named(kept)} must set securityContext.capabilities.'
                    'drop=["ALL"]')
    if added:
        words = ", ".join(f'"{w}"' for w in sorted(
            {w for c in added for w in capabilities(c, "add")} -
            {"NET_BIND_SERVICE"}))
        said.append(f"{named(added)} must not include {words} in "
                    "securityContext.capabilities.add")
    return said and f"unrestricted capabilities ({'; '.join(said)})"


def volume_types(spec, every):
    bad = {kind: v["name"] for v in spec.get("volumes", [])
           for kind in v if kind != "name" and
           kind not in VOLUMES_OF_RESTRICTED}
    if not bad:
        return None
    names = ", ".join(f'"{n}"' for n in bad.values())
    kinds = ", ".join(f'"{k}"' for k in sorted(bad))
    return f"restricted volume types (volume{'s' if len(bad) > 1 else ''} " \
        f"{names} use{'' if len(bad) > 1 else 's'} restricted volume type " \
        f"{kinds})"


def non_root(spec, every):
    of_pod = (spec.get("securityContext") or {}).get("runAsNonRoot")
    wrong = [c for c in every if context(c).get("runAsNonRoot") is False]
    if wrong:
        return f"runAsNonRoot != true ({named(wrong)} must not set " \
            "securityContext.runAsNonRoot=false)"
    unset = [c for c in every if context(c).get("runAsNonRoot") is None]
    if of_pod is False:
        return "runAsNonRoot != true (pod must not set " \
            "securityContext.runAsNonRoot=false)"
    return unset and not of_pod and f"runAsNonRoot != true (pod or " \
        f"{named(unset)} must set securityContext.runAsNonRoot=true)"


def root_user(spec, every):
    said = []
    if (spec.get("securityContext") or {}).get("runAsUser") == 0:
        said.append("pod must not set runAsUser=0")
    bad = [c for c in every if context(c).get("runAsUser") == 0]
    if bad:
        said.append(f"{named(bad)} must not set runAsUser=0")
    return said and f"runAsUser=0 ({', '.join(said)})"


def profile(holder):
    found = (holder.get("securityContext") or {}).get("seccompProfile")
    return found and found.get("type")


def seccomp(spec, every):
    bad = [c for c in every if profile(c) not in (None, *PROFILES)]
    if bad:
        return f"seccompProfile ({named(bad)} must not set " \
            f'securityContext.seccompProfile.type to "{profile(bad[0])}")'
    unset = [c for c in every if profile(c) is None]
    return unset and profile(spec) not in PROFILES and \
        f"seccompProfile (pod or {named(unset)} must set " \
        'securityContext.seccompProfile.type to "RuntimeDefault" or ' \
        '"Localhost")'


def unconfined(spec, every):
    bad = [c for c in every if profile(c) == "Unconfined"]
    return bad and f"seccompProfile ({named(bad)} must not set " \
        'securityContext.seccompProfile.type to "Unconfined")'


BASELINE = {"capabilities": added_of_baseline,
            "hostNamespaces": host_namespaces, "hostPathVolumes": host_path,
            "privileged": privileged, "seccompProfile": unconfined}
# Where both have a test of one name it is the stricter one.
RESTRICTED = {"allowPrivilegeEscalation": escalation,
              "capabilities": capabilities_of_restricted,
              "restrictedVolumes": volume_types, "runAsNonRoot": non_root,
              "runAsUser": root_user, "seccompProfile": seccomp}
