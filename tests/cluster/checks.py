"""What makes an object invalid, in the words of the real server."""
import re

from . import quantity, schema
from .answers import invalid
from .resources import PODS

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
KEY_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_WORDS = "a lowercase RFC 1123 label must consist of lower case " \
    "alphanumeric characters or '-', and must start and end with an " \
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " \
    f"validation is '{LABEL}')"
SUBDOMAIN_WORDS = "a lowercase RFC 1123 subdomain must consist of lower " \
    "case alphanumeric characters, '-' or '.', and must start and end with " \
    "an alphanumeric character (e.g. 'example.com', regex used for " \
    f"validation is '{LABEL}(\\.{LABEL})*')"
VALUE_WORDS = "a valid label must be an empty string or consist of " \
    "alphanumeric characters, '-', '_' or '.', and must start and end with " \
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or " \
    f"'12345', regex used for validation is '{VALUE}')"
KEY_WORDS = "name part must consist of alphanumeric characters, '-', '_' " \
    "or '.', and must start and end with an alphanumeric character (e.g. " \
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is " \
    f"'{KEY_NAME}')"
LABEL_LENGTH, NAME_LENGTH = 63, 253
OF_LABEL = {"namespaces"}  # names of these are no subdomains


class Causes(list):
    """What is wrong, as it is found."""

    def wrong(self, field, value, why):
        shown = f'"{value}"' if isinstance(value, str) else str(value)
        self.append((field, "FieldValueInvalid",
                     f"Invalid value: {shown}: {why}"))

    def missing(self, field, why=""):
        self.append((field, "FieldValueRequired",
                     "Required value" + (f": {why}" if why else "")))

    def unsupported(self, field, value, known):
        words = ", ".join(f'"{k}"' for k in known)
        self.append((field, "FieldValueNotSupported", f'Unsupported value: '
                     f'"{value}": supported values: {words}'))

    def twice(self, field, value):
        self.append((field, "FieldValueDuplicate",
                     f'Duplicate value: "{value}"'))

    def absent(self, field, value):
        self.append((field, "FieldValueNotFound", f'Not found: "{value}"'))

    def name(self, field, name, is_label=False):
        pattern, words, longest = (LABEL, LABEL_WORDS, LABEL_LENGTH) \
            if is_label else (SUBDOMAIN, SUBDOMAIN_WORDS, NAME_LENGTH)
        if len(name) > longest:
            self.wrong(field, name, f"must be no more than {longest} bytes")
        elif not re.fullmatch(pattern, name):
            self.wrong(field, name, words)


def metadata_causes(resource, meta, causes):
    name = meta.get("name")
    if not name:
        causes.missing("metadata.name", "name or generateName is required")
    elif not resource.group.startswith("rbac."):
        causes.name("metadata.name", name, resource.plural in OF_LABEL)
    for key, value in meta.get("labels", {}).items():
        label_causes(key, value, causes)


def label_causes(key, value, causes):
    name = key.rpartition("/")[2]
    if len(name) > LABEL_LENGTH:
        causes.wrong("metadata.labels", key, "name part must be no more than "
                     f"{LABEL_LENGTH} bytes")
    elif not re.fullmatch(KEY_NAME, name):
        causes.wrong("metadata.labels", key, KEY_WORDS)
    if len(value) > LABEL_LENGTH:
        causes.wrong("metadata.labels", value, "must be no more than "
                     f"{LABEL_LENGTH} bytes")
    elif not re.fullmatch(VALUE, value):
        causes.wrong("metadata.labels", value, VALUE_WORDS)


def check_metadata(resource, meta):
    causes = Causes()
    metadata_causes(resource, meta, causes)
    refuse(resource, meta, causes)


def refuse(resource, meta, causes):
    if causes:
        raise invalid(resource, meta.get("name", ""), causes)


# ---- Pods

def check_pod(request, pod):
    meta, spec, causes = pod["metadata"], pod["spec"], Causes()
    metadata_causes(PODS, meta, causes)
    volumes = volume_causes(spec.get("volumes", []), causes)
    if not spec.get("containers"):
        causes.missing("spec.containers")
    seen = set()
    for part in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(part, [])):
            at = f"spec.{part}[{i}]"
            container_causes(container, at, volumes, causes)
            if container.get("restartPolicy"):
                # Of the real server's it is, but not of this one.
                causes.wrong(f"{at}.restartPolicy", container[
                    "restartPolicy"], "the test cluster has no sidecars")
            if container.get("name") in seen:
                causes.twice(f"{at}.name", container["name"])
            seen.add(container.get("name"))
    one_of(causes, "spec.restartPolicy", spec["restartPolicy"],
           ("Always", "OnFailure", "Never"))
    number_causes(spec, causes)
    refuse(PODS, meta, causes)
    warn_of_name(request, meta["name"])


def number_causes(spec, causes):
    for key in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        least = 1 if key.startswith("active") else 0
        if spec.get(key) is not None and spec[key] < least:
            causes.wrong(f"spec.{key}", spec[key],
                         "must be between 1 and 2147483647, inclusive"
                         if least else "must be greater than or equal to 0")


def warn_of_name(request, name):
    if len(name) > LABEL_LENGTH or "." in name:
        why = f"must be no more than {LABEL_LENGTH} bytes" \
            if len(name) > LABEL_LENGTH else "must not contain dots"
        schema.warn(request, [
            "metadata.name: this is used in the Pod's hostname, which can "
            "result in surprising behavior; a DNS label is recommended: "
            f"[{why}]"])


def one_of(causes, field, value, known):
    if value not in known:
        causes.unsupported(field, value, known)


def volume_causes(volumes, causes):
    """Their names."""
    names = set()
    for i, volume in enumerate(volumes):
        name = volume.get("name", "")
        if not name:
            causes.missing(f"spec.volumes[{i}].name")
        else:
            causes.name(f"spec.volumes[{i}].name", name, is_label=True)
        if name in names:
            causes.twice(f"spec.volumes[{i}].name", name)
        names.add(name)
        empty = volume.get("emptyDir") or {}
        if empty.get("sizeLimit"):
            quantity_cause(empty["sizeLimit"],
                           f"spec.volumes[{i}].emptyDir.sizeLimit", causes)
    return names


def container_causes(container, at, volumes, causes):
    if not container.get("name"):
        causes.missing(f"{at}.name")
    else:
        causes.name(f"{at}.name", container["name"], is_label=True)
    if not container.get("image"):
        causes.missing(f"{at}.image")
    one_of(causes, f"{at}.imagePullPolicy", container["imagePullPolicy"],
           ("Always", "IfNotPresent", "Never"))
    mount_causes(container, at, volumes, causes)
    resource_causes(container["resources"], f"{at}.resources", causes)
    security_causes(container.get("securityContext") or {},
                    f"{at}.securityContext", causes)


def mount_causes(container, at, volumes, causes):
    paths = set()
    for i, mount in enumerate(container.get("volumeMounts", [])):
        where = f"{at}.volumeMounts[{i}]"
        if mount.get("name") not in volumes:
            causes.absent(f"{where}.name", mount.get("name", ""))
        path = mount.get("mountPath", "")
        if not path:
            causes.missing(f"{where}.mountPath")
        if path in paths:
            causes.wrong(f"{where}.mountPath", path, "must be unique")
        paths.add(path)


def security_causes(context, at, causes):
    if context.get("runAsUser", 0) < 0:
        causes.wrong(f"{at}.runAsUser", context["runAsUser"],
                     "must be between 0 and 2147483647, inclusive")
    if context.get("privileged") and \
            context.get("allowPrivilegeEscalation") is False:
        causes.wrong(at, "", "cannot set `allowPrivilegeEscalation` to false "
                     "and `privileged` to true")


def quantity_cause(text, field, causes):
    """The number, or None."""
    try:
        value = quantity.number(text)
    except ValueError:
        causes.wrong(field, text, "quantities must match the regular "
                     "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)"
                     "$'")
        return None
    if value < 0:
        causes.wrong(field, text, "must be greater than or equal to 0")
    return value


def resource_causes(resources, at, causes):
    limits = {}
    for part in ("limits", "requests"):
        for name, text in (resources.get(part) or {}).items():
            value = quantity_cause(text, f"{at}.{part}[{name}]", causes)
            if part == "limits":
                limits[name] = value
            elif None not in (value, limits.get(name, value)) and \
                    value > limits.get(name, value):
                causes.wrong(f"{at}.requests", text, "must be less than or "
                             f"equal to {name} limit of "
                             f"{resources['limits'][name]}")


# ---- others

def check_claim(resource, claim):
    causes = Causes()
    spec = claim.get("spec") or {}
    if not spec.get("accessModes"):
        causes.missing("spec.accessModes", "at least 1 access mode is "
                       "required")
    asked = spec.get("resources", {}).get("requests", {}).get("storage")
    if asked is None:
        causes.missing("spec.resources[storage]")
    else:
        quantity_cause(asked, "spec.resources[storage]", causes)
    refuse(resource, claim["metadata"], causes)


def check_policy(resource, policy):
    causes = Causes()
    for i, kind in enumerate((policy.get("spec") or {}).get("policyTypes",
                                                            [])):
        one_of(causes, f"spec.policyTypes[{i}]", kind, ("Egress", "Ingress"))
    refuse(resource, policy["metadata"], causes)


OF_KIND = {"persistentvolumeclaims": check_claim,
           "networkpolicies": check_policy}
