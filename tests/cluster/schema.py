"""The fields that objects may have, and how a body becomes an object.

The table names types and their fields; a field of type any is taken as it is.
What it does not name is what the real server calls an unknown field.
"""
import json
import re

from .answers import bad_request

FIELDS = """
Meta: annotations {str}, creationTimestamp any, deletionGracePeriodSeconds int,
 deletionTimestamp any, finalizers [str], generateName str, generation int,
 labels {str}, managedFields any, name str, namespace str, ownerReferences any,
 resourceVersion str, selfLink str, uid str
Pod: metadata Meta, spec PodSpec, status any
PodSpec: activeDeadlineSeconds int, affinity any,
 automountServiceAccountToken bool, containers [Container], dnsConfig any,
 dnsPolicy str, enableServiceLinks bool, ephemeralContainers any,
 hostAliases any, hostIPC bool, hostNetwork bool, hostPID bool, hostUsers bool,
 hostname str, hostnameOverride str, imagePullSecrets [Ref],
 initContainers [Container],
 nodeName str, nodeSelector {str}, os any, overhead {quantity},
 preemptionPolicy str, priority int, priorityClassName str, readinessGates any,
 resourceClaims any, resources Resources, restartPolicy str,
 runtimeClassName str, schedulerName str, schedulingGates any,
 schedulingGroup any,
 securityContext PodSecurity, serviceAccount str, serviceAccountName str,
 setHostnameAsFQDN bool, shareProcessNamespace bool, subdomain str,
 terminationGracePeriodSeconds int, tolerations [Toleration],
 topologySpreadConstraints any, volumes [Volume], workloadRef any
Container: args [str], command [str], env [Env], envFrom any, image str,
 imagePullPolicy str, lifecycle any, livenessProbe any, name str,
 ports [Port], readinessProbe any, resizePolicy any, resources Resources,
 restartPolicy str, restartPolicyRules any, securityContext Security,
 startupProbe any, stdin bool, stdinOnce bool, terminationMessagePath str,
 terminationMessagePolicy str, tty bool, volumeDevices any,
 volumeMounts [Mount], workingDir str
Env: name str, value str, valueFrom any
Port: containerPort int, hostIP str, hostPort int, name str, protocol str
Mount: mountPath str, mountPropagation str, name str, readOnly bool,
 recursiveReadOnly str, subPath str, subPathExpr str
Resources: claims any, limits {quantity}, requests {quantity}
Security: allowPrivilegeEscalation bool, appArmorProfile Profile,
 capabilities Capabilities, privileged bool, procMount str,
 readOnlyRootFilesystem bool, runAsGroup int, runAsNonRoot bool,
 runAsUser int, seLinuxOptions any, seccompProfile Profile, windowsOptions any
PodSecurity: appArmorProfile Profile, fsGroup int, fsGroupChangePolicy str,
 runAsGroup int, runAsNonRoot bool, runAsUser int, seLinuxChangePolicy str,
 seLinuxOptions any, seccompProfile Profile, supplementalGroups [int],
 supplementalGroupsPolicy str, sysctls any, windowsOptions any
Profile: localhostProfile str, type str
Capabilities: add [str], drop [str]
Toleration: effect str, key str, operator str, tolerationSeconds int, value str
Ref: name str
Volume: configMap any, csi any, downwardAPI any, emptyDir EmptyDir,
 ephemeral any, fc any, hostPath any, image any, iscsi any, name str, nfs any,
 persistentVolumeClaim ClaimRef, projected any, secret any
EmptyDir: medium str, sizeLimit quantity
ClaimRef: claimName str, readOnly bool
PersistentVolumeClaim: metadata Meta, spec Claim, status any
Claim: accessModes [str], dataSource any, dataSourceRef any,
 resources Resources, selector any, storageClassName str,
 volumeAttributesClassName str, volumeMode str, volumeName str
NetworkPolicy: metadata Meta, spec Policy, status any
Policy: egress [Egress], ingress [Ingress], podSelector Selector,
 policyTypes [str]
Egress: ports [PolicyPort], to [Peer]
Ingress: from [Peer], ports [PolicyPort]
PolicyPort: endPort int, port any, protocol str
Peer: ipBlock Block, namespaceSelector Selector, podSelector Selector
Block: cidr str, except [str]
Selector: matchExpressions [Requirement], matchLabels {str}
Requirement: key str, operator str, values [str]
ResourceQuota: metadata Meta, spec Quota, status any
Quota: hard {quantity}, scopeSelector any, scopes [str]
LimitRange: metadata Meta, spec Limits
Limits: limits [Limit]
Limit: default {quantity}, defaultRequest {quantity}, max {quantity},
 maxLimitRequestRatio {quantity}, min {quantity}, type str
Namespace: metadata Meta, spec any, status any
Role: metadata Meta, rules [Rule]
ClusterRole: aggregationRule any, metadata Meta, rules [Rule]
Rule: apiGroups [str], nonResourceURLs [str], resourceNames [str],
 resources [str], verbs [str]
RoleBinding: metadata Meta, roleRef RoleRef, subjects [Subject]
ClusterRoleBinding: metadata Meta, roleRef RoleRef, subjects [Subject]
RoleRef: apiGroup str, kind str, name str
Subject: apiGroup str, kind str, name str, namespace str
ServiceAccount: automountServiceAccountToken bool, imagePullSecrets [Ref],
 metadata Meta, secrets any
RuntimeClass: handler str, metadata Meta, overhead any, scheduling any
"""
GO_TYPES = {"str": "string", "int": "int64", "bool": "bool"}
PYTHON_TYPES = {"str": str, "int": int, "bool": bool}
GO_NAMES = {"Meta": "ObjectMeta"}


def parsed(text):
    types = {}
    for line in re.sub(r"\n ", " ", text).strip().split("\n"):
        name, _, rest = line.partition(":")
        types[name] = dict(part.split() for part in rest.split(","))
    return types


TYPES = parsed(FIELDS)


class Reading:
    """One body against the table."""

    def __init__(self, kind):
        self.kind = kind
        self.unknown = []

    def read(self, value, of, path="", at=""):
        """The value without what is unknown; null is as if it were not
        there."""
        if of == "any":
            return value
        if of[0] == "[":
            self.demand(value, list, of, at)
            return [self.read(v, of[1:-1], f"{path}[{i}]", at)
                    for i, v in enumerate(value)]
        if of[0] == "{":
            self.demand(value, dict, of, at)
            return {k: self.read(v, of[1:-1], f"{path}.{k}", at)
                    for k, v in value.items()}
        if of == "quantity":
            self.demand(value, (str, int, float), of, at)
            return str(value)
        if of in PYTHON_TYPES:
            self.demand(value, PYTHON_TYPES[of], of, at)
            return value
        self.demand(value, dict, of, at)
        return self.read_fields(value, of, path)

    def read_fields(self, value, of, path):
        out = {}
        for key, part in value.items():
            where = f"{path}.{key}" if path else key
            if key not in TYPES[of]:
                self.unknown.append(where)
            elif part is not None:
                plain = re.sub(r"\[\d+\]", "", where)
                out[key] = self.read(part, TYPES[of][key], where,
                                     f"{GO_NAMES.get(of, of)}.{plain}")
        return out

    def demand(self, value, types, of, at):
        good = isinstance(value, types) and \
            (types is bool or not isinstance(value, bool))
        if good:
            return
        said = {str: "string", bool: "bool", int: "number", float: "number",
                list: "array", dict: "object"}.get(type(value), "null")
        raise bad_request(
            f'{self.kind} in version "v1" cannot be handled as a {self.kind}: '
            f"json: cannot unmarshal {said} into Go struct field {at} of type "
            f"{GO_TYPES.get(of, of)}")


def decode(request, resource, data):
    """The object of a request's body; what it does not know is refused, or
    dropped with a warning, as fieldValidation says."""
    try:
        obj = json.loads(data)
    except ValueError:
        raise broken(resource.kind, data) from None
    if not isinstance(obj, dict) or "kind" not in obj or \
            "apiVersion" not in obj:
        obj = {"kind": resource.kind, "apiVersion": resource.api_version,
               **(obj if isinstance(obj, dict) else {})}
    if (obj["kind"], obj["apiVersion"]) != (resource.kind,
                                            resource.api_version):
        raise bad_request(
            f"{obj['kind']} in version \"{obj['apiVersion']}\" cannot be "
            f"handled as a {resource.kind}: converting ({obj['apiVersion']}."
            f"{obj['kind']}) to ({resource.api_version}.{resource.kind}): "
            "unknown conversion")
    return known(request, resource, obj)


def known(request, resource, obj):
    kind = resource.kind
    if kind not in TYPES:
        obj.setdefault("metadata", {})
        return obj
    reading = Reading(kind)
    rest = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}
    read = reading.read(rest, kind)
    report(request, kind, reading.unknown)
    read.setdefault("metadata", {})
    return {"kind": kind, "apiVersion": resource.api_version, **read}


def report(request, kind, unknown):
    mode = request.param("fieldValidation") or "Warn"
    words = [f'unknown field "{path}"' for path in unknown]
    if words and mode == "Strict":
        raise bad_request(
            f'{kind} in version "v1" cannot be handled as a {kind}: strict '
            f"decoding error: {', '.join(words)}")
    if words and mode == "Warn":
        warn(request, words)


def warn(request, words):
    said = ['299 - "' + w.replace('"', '\\"') + '"' for w in words]
    old = request.extra_headers.get("Warning")
    request.extra_headers["Warning"] = ", ".join(
        ([old] if old else []) + said)


def broken(kind, data):
    text = data.decode(errors="replace")
    short = text if len(text) < 30 else text[:30] + " ..."
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): "
        "couldn't get version/kind; json parse error: unexpected end of JSON "
        f"input ({short})")
