"""Kubernetes' protobuf, as far as kubectl insists on it: reviews of rights.

A body is a magic, then an envelope that names the kind and has the message.
"""
MAGIC = b"k8s\0"
NAME = "application/vnd.kubernetes.protobuf"
OF_RESOURCE = {1: "namespace", 2: "verb", 3: "group", 4: "version",
               5: "resource", 6: "subresource", 7: "name"}
# {number: name of a string, or (name, fields of a message)}
KINDS = {
    "SelfSubjectAccessReview": {2: ("spec", {
        1: ("resourceAttributes", OF_RESOURCE),
        2: ("nonResourceAttributes", {1: "path", 2: "verb"})})},
    "SelfSubjectRulesReview": {2: ("spec", {1: "namespace"})},
    "SelfSubjectReview": {},
}


def fields_of(data):
    """(number, bytes) of each field that has a length; others are passed
    over."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        tag = varint()
        number, kind = tag >> 3, tag & 7
        if kind == 2:
            size = varint()
            yield number, data[at:at + size]
            at += size
        elif kind == 0:
            varint()
        else:
            at += 8 if kind == 1 else 4


def read(data, table):
    out = {}
    for number, value in fields_of(data):
        known = table.get(number)
        if isinstance(known, str):
            out[known] = value.decode()
        elif known is not None:
            out[known[0]] = read(value, known[1])
    return out


def decode(data):
    """The object, or None where its kind is none of these."""
    if not data.startswith(MAGIC):
        return None
    envelope = dict(fields_of(data[len(MAGIC):]))
    about = read(envelope.get(1, b""), {1: "apiVersion", 2: "kind"})
    if about.get("kind") not in KINDS:
        return None
    return {"metadata": {}, "spec": {}} | about | \
        read(envelope.get(2, b""), KINDS[about["kind"]])
