"""Selectors: which objects a list, a watch or a policy is about."""
import re

from .answers import bad_request

FIELDS = {
    "pods": {"metadata.name", "metadata.namespace", "spec.nodeName",
             "spec.restartPolicy", "spec.schedulerName",
             "spec.serviceAccountName", "status.phase", "status.podIP"},
    "events": {"metadata.name", "metadata.namespace", "involvedObject.kind",
               "involvedObject.name", "involvedObject.namespace",
               "involvedObject.uid", "involvedObject.apiVersion",
               "involvedObject.resourceVersion", "involvedObject.fieldPath",
               "reason", "reportingComponent", "source", "type"},
}
OF_ALL = {"metadata.name", "metadata.namespace"}
REQUIREMENT = re.compile(
    r"\s*(?:(?P<not>!)\s*(?P<absent>[^\s,!=()]+)"
    r"|(?P<key>[^\s,!=()]+)\s*(?:(?P<op>==?|!=)\s*(?P<value>[^\s,()]*)"
    r"|\s(?P<in>in|notin)\s*\((?P<set>[^)]*)\))?)\s*(?:,|$)")


def matches_labels(wanted, labels):
    return all((labels or {}).get(k) == v for k, v in wanted.items())


def matches_selector(selector, labels):
    """A LabelSelector of an object; an empty one is of all."""
    labels = labels or {}
    for r in selector.get("matchExpressions") or ():
        there, values = labels.get(r["key"]), r.get("values") or ()
        good = {"In": there in values and r["key"] in labels,
                "NotIn": there not in values,
                "Exists": r["key"] in labels,
                "DoesNotExist": r["key"] not in labels}[r["operator"]]
        if not good:
            return False
    return matches_labels(selector.get("matchLabels") or {}, labels)


def label_selector(text):
    """A function of an object, of the text that a query has."""
    tests, at = [], 0
    while at < len(text):
        match = REQUIREMENT.match(text, at)
        if match is None:
            raise bad_request(f"unable to parse requirement: {text[at:]}")
        tests.append(requirement(match))
        at = match.end()
    return lambda o: all(
        test(o["metadata"].get("labels") or {}) for test in tests)


def requirement(match):
    key, value = match["key"], match["value"]
    if match["absent"]:
        return lambda labels: match["absent"] not in labels
    if match["in"]:
        values = {v.strip() for v in match["set"].split(",")}
        if match["in"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match["op"] is None:
        return lambda labels: key in labels
    if match["op"] == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def field_of(obj, path):
    for word in path.split("."):
        obj = obj.get(word) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)


def field_selector(plural, text):
    tests = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"([\w.]+)(==|=|!=)(.*)", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; "
                              f"can't understand '{part}'")
        path, op, value = match.groups()
        if path not in FIELDS.get(plural, set()) | OF_ALL:
            raise bad_request(f"field label not supported: {path}")
        tests.append((path, op != "!=", value))
    return lambda o: all((field_of(o, path) == value) == equal
                         for path, equal, value in tests)


def of_query(plural, request):
    by_label = label_selector(request.param("labelSelector"))
    by_field = field_selector(plural, request.param("fieldSelector"))
    return lambda o: by_label(o) and by_field(o)
