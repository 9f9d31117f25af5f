#!/usr/bin/python3
"""used.py - every metric and label that the rules and the dashboard use is in
schema/metrics.txt, every alert has its place in docs/operations.md, and every
alert is told in a test of promtool.
"""
import json
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "schema"))

from gen import Table, load  # noqa: E402

DIR = os.path.join(TOP, "docs", "prometheus")
# Of Prometheus itself, or of who scrapes.
FOREIGN_LABELS = {"instance", "job", "le"}
FOREIGN_METRICS = {"up"}
NAME = re.compile(r"\b((?:mcp|sandboxd)_[a-z_]+|up)\b(\{[^}]*\})?")
RECORDED = re.compile(r"\b[a-z]+:[a-z0-9_]+:[a-z0-9_]+\b")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring) \(([^)]*)\)")


def read(name):
    """A file of docs/prometheus."""
    with open(os.path.join(DIR, name), encoding="utf-8") as f:
        return f.read()


def expressions_of_rules(text):
    """-> what stands behind expr:, in one piece or in lines below it"""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        m = re.match(r"( *)expr: (.*)$", line)
        if not m:
            continue
        found = [m[2]] if m[2] != ">-" else []
        for more in lines[at + 1:]:
            if not more.startswith(m[1] + " "):
                break
            found.append(more.strip())
        yield " ".join(found)


def expressions_of_dashboard(text):
    """-> those of all panels, and the query of each variable"""
    board = json.loads(text)
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
            for label in re.findall(r"\{\{(\w+)\}\}",
                                    target["legendFormat"]):
                yield f"by ({label})"
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def series(families):
    """-> {name of a series: names of its labels}"""
    found = {}
    for f in families:
        labels = {x.name: x for x in f.labels}
        names = [f.name + s for s in ("_bucket", "_sum", "_count")] \
            if f.type == "histogram" else [f.name]
        for name in names:
            found[name] = labels
    return found


def check_matcher(name, text, labels):
    """-> what is wrong with {label="value",...}"""
    for label, value in re.findall(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"', text):
        if label in FOREIGN_LABELS:
            continue
        if label not in labels:
            yield f"{name} has no label {label}"
        elif labels[label].values:
            yield from (f"{name}: {label} is never {v}"
                        for v in value.split("|")
                        if v not in labels[label].values)


def check(where, expression, known, recorded):
    """-> what is wrong with one expression"""
    bare = RECORDED.sub(" ", expression)
    for name in RECORDED.findall(expression):
        if name not in recorded:
            yield f"{where}: no rule records {name}"
    grouped = re.sub(r'"[^"]*"', '""', bare)
    all_labels = {x for labels in known.values() for x in labels}
    for names in GROUPING.findall(grouped):
        for label in re.split(r",\s*", names):
            if label not in all_labels | FOREIGN_LABELS:
                yield f"{where}: no metric has the label {label}"
    for name, matcher in NAME.findall(bare):
        if name in FOREIGN_METRICS:
            continue
        if name not in known:
            yield f"{where}: there is no metric {name}"
        else:
            yield from (f"{where}: {x}" for x in
                        check_matcher(name, matcher, known[name]))


def check_alerts(text):
    """-> alerts without a place in the manual, or that no test tells"""
    with open(os.path.join(TOP, "docs", "operations.md"),
              encoding="utf-8") as f:
        manual = f.read()
    told = read("rules_test.yml")
    for name in re.findall(r"- alert: (\w+)", text):
        if f"\n### {name}\n" not in manual:
            yield f"docs/operations.md says nothing of {name}"
        anchor = f"docs/operations.md#{name.lower()}"
        if f"runbook: {anchor}\n" not in text:
            yield f"{name}: its runbook is not {anchor}"
        if f"runbook: {anchor}\n" not in told:
            yield f"docs/prometheus/rules_test.yml never tells {name}"


def main():
    """As the head says: a line for each fault, and status 1."""
    known = series(load("metrics", Table(os.path.join(
        TOP, "schema", "metrics.txt"))).families)
    rules = {n: read(n) for n in ("alerts.yml", "recording.yml")}
    recorded = set(re.findall(r"- record: (\S+)", rules["recording.yml"]))
    faults = list(check_alerts(rules["alerts.yml"]))
    count = 0
    for name, text in [*rules.items(), ("grafana.json", None)]:
        found = expressions_of_rules(text) if text else \
            expressions_of_dashboard(read(name))
        for expression in found:
            count += 1
            faults += check(f"docs/prometheus/{name}", expression, known,
                            recorded)
    if count < 40:
        faults.append(f"only {count} expressions were found")
    print("\n".join(sorted(set(faults))), end="\n" if faults else "")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
