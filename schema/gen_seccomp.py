#!/usr/bin/python3
"""gen_seccomp.py json LIST - the engine's seccomp profile

The list is schema/seccomp.txt, whose head says how it is written.  The JSON
is the engine's form (archMap, includes.caps), without a blank.  A line that
is malformed ends it with status 1, and so the build.
"""
import errno
import json
import re
import sys

# The machine's own ABI alone: what an engine elsewhere finds no line for, it
# takes without further ones.
MACHINES = ("X86_64", "AARCH64", "RISCV64")
ARGUMENTS = 6
LINE = re.compile(r"([A-Za-z0-9]+)((?: \S+)*): ([a-z0-9_]+(?: [a-z0-9_]+)*)\Z")
COMPARISON = re.compile(
    r"([0-9])(?:(==|!=|>)|&(0x[0-9a-f]+|[0-9]+)==)(0x[0-9a-f]+|[0-9]+)\Z")
OPERATORS = {"==": "SCMP_CMP_EQ", "!=": "SCMP_CMP_NE", ">": "SCMP_CMP_GT"}


def comparison(text):
    """An entry of args."""
    found = COMPARISON.match(text)
    if not found:
        raise ValueError(f'"{text}" is no condition')
    index, operator, mask, value = found.groups()
    if int(index) >= ARGUMENTS:
        raise ValueError(f'"{text}": arguments are 0 to {ARGUMENTS - 1}')
    if mask is None:
        return {"index": int(index), "value": int(value, 0),
                "op": OPERATORS[operator]}
    if int(value, 0) & ~int(mask, 0):
        raise ValueError(f'"{text}" never holds')
    return {"index": int(index), "value": int(mask, 0),
            "valueTwo": int(value, 0), "op": "SCMP_CMP_MASKED_EQ"}


def rule(line):
    """(how it acts, its calls) of one line."""
    found = LINE.match(line)
    if not found:
        raise ValueError("want ACTION [CONDITION...]: CALL...")
    action, conditions, calls = found.groups()
    acts = {"action": "SCMP_ACT_ALLOW"}
    if action != "allow":
        if not hasattr(errno, action):
            raise ValueError(f'"{action}" is neither allow nor an errno')
        acts = {"action": "SCMP_ACT_ERRNO",
                "errnoRet": getattr(errno, action)}
    caps = [c[4:] for c in conditions.split() if c.startswith("cap:")]
    args = [comparison(c) for c in conditions.split()
            if not c.startswith("cap:")]
    indices = [a["index"] for a in args]
    if len(set(indices)) != len(indices):
        raise ValueError("an argument is compared once only")
    if args:
        acts["args"] = args
    if caps:
        acts["includes"] = {"caps": ["CAP_" + c for c in caps]}
    return acts, calls.split()


def read(path):
    """[[how, calls]]: lines that act alike are one."""
    rules, plain = [], {}
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line == "" or line.startswith("#"):
                continue
            try:
                acts, calls = rule(line)
                for call in calls:
                    # A call without a condition has no second line.
                    known = plain.setdefault(call, "args" not in acts)
                    if (known or "args" not in acts) and \
                            any(call in r[1] for r in rules):
                        raise ValueError(f"{call} again")
            except ValueError as e:
                sys.exit(f"{path}:{number}: {e}")
            alike = [r for r in rules if r[0] == acts]
            if alike and "args" not in acts:
                alike[0][1].extend(calls)
            else:
                rules.append([acts, list(calls)])
    return rules


def profile(rules):
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.EPERM,
        "archMap": [{"architecture": "SCMP_ARCH_" + m, "subArchitectures": []}
                    for m in MACHINES],
        "syscalls": [{"names": calls, **acts} for acts, calls in rules]}


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "json":
        sys.exit("usage: gen_seccomp.py json LIST")
    print(json.dumps(profile(read(sys.argv[2])), separators=(",", ":")))


if __name__ == "__main__":
    main()
