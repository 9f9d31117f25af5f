"""Quantities, as "500m" or "64Mi", and what a Pod asks of a node."""
import decimal
import re

SUFFIXES = {"": 1, "n": decimal.Decimal("1e-9"), "u": decimal.Decimal("1e-6"),
            "m": decimal.Decimal("1e-3"), "k": 10**3, "M": 10**6, "G": 10**9,
            "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20,
            "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
PATTERN = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)")


def number(quantity):
    """A Decimal; ValueError where it is none."""
    match = PATTERN.fullmatch(str(quantity))
    if match is None:
        raise ValueError(quantity)
    digits, exponent, suffix = match.groups()
    return decimal.Decimal(digits + (exponent or "")) * \
        SUFFIXES[suffix or ""]


def whole(quantity):
    return int(number(quantity).to_integral_value(decimal.ROUND_CEILING))


def added(quantities):
    """The sum of some, written as the first of them could be."""
    total = sum(map(number, quantities), decimal.Decimal(0))
    return written(total, next(iter(quantities), ""))


def written(total, like=""):
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki") \
            if str(like).endswith("i") else ():
        if total and total % SUFFIXES[suffix] == 0:
            return f"{int(total / SUFFIXES[suffix])}{suffix}"
    if total == total.to_integral_value():
        return str(int(total))
    return f"{int(total * 1000)}m"


def asked_of_node(spec, part, name):
    """What a Pod's containers ask together; init containers run alone."""
    def of(container):
        return number(container.get("resources", {}).get(part, {})
                      .get(name, 0))

    together = sum(map(of, spec["containers"]), decimal.Decimal(0))
    return max([together, *map(of, spec.get("initContainers", ()))])
