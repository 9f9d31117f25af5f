"""Nothing of a tenant is to be had by another; tests/tenancy is the long
form of this."""
import os

import pytest

import tenancy

pytestmark = pytest.mark.own

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


def make_tenants(server, n, sandboxes):
    made = []
    for i in range(n):
        name = f"tenant{i}"
        server.ctl("tenant", "add", name)
        made.append(tenancy.Tenant(server, name, server.ctl.token(name)))
    for tenant in made:
        tenant.settle(sandboxes)
    return made


def test_no_id_of_another_tenant_is_good_for_anything(server):
    tenants = make_tenants(server, 2, 1)
    tenancy.check_lists(TOP, tenants[0].client)
    tally, rng = tenancy.Tally(), tenancy.rng_of(1)
    for _ in range(5):
        for me, victim in (tenants, tenants[::-1]):
            tenancy.attack(me, victim, [victim], tally, rng)
    assert not tally.wrong, "\n".join(tally.wrong[:10])
    for tenant in tenants:
        # Nothing of it was canceled, deleted or ended.
        tenant.client.wait_state(tenant.runs[-1])
        names = [s["identifier"]
                 for s in tenant.client.call("list_sandboxes")["sandboxes"]]
        assert names == tenant.identifiers
    used = server.ctl.json("usage")["tenants"]
    assert {u["tenant"]: u["sandboxes"] for u in used} == {
        "default": 0, "tenant0": 1, "tenant1": 1}
