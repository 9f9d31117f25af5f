"""Who changes something can say which state of it it has seen."""
import functools

import pytest

from client import at_once
from server import Admin


@pytest.fixture(name="admin")
def fixture_admin(make_server):
    admin = Admin(make_server())
    status, _, _ = admin.ask("POST", "/api/v1/tenants", {"name": "acme"})
    assert status == 201
    return admin


TENANT = "/api/v1/tenants/acme"
SECRET = TENANT + "/secrets/key"


def refused(answer, status, code):
    assert answer[0] == status, answer
    assert answer[1]["Content-Type"] == "application/problem+json"
    assert answer[2]["code"] == code and answer[2]["status"] == status
    return answer[2]["detail"]


def test_what_is_as_it_was_is_not_sent_again(admin):
    for path in (TENANT, "/api/v1/tenants", TENANT + "/tokens",
                 TENANT + "/secrets", "/api/v1/tokens"):
        status, headers, first = admin.ask("GET", path)
        tag = headers["ETag"]
        assert status == 200 and first is not None
        assert tag.startswith('"') and tag.endswith('"')
        for tags in (tag, f'"old", {tag}', "W/" + tag, "*"):
            status, headers, body = admin.ask("GET", path, if_none_match=tags)
            assert (status, headers["ETag"], body) == (304, tag, None), tags
        status, headers, body = admin.ask("GET", path, if_none_match='"old"')
        assert (status, headers["ETag"], body) == (200, tag, first)


def test_a_stale_change_is_refused_and_changes_nothing(admin):
    _, headers, _ = admin.ask("GET", TENANT)
    seen = headers["ETag"]
    status, headers, body = admin.ask(
        "PATCH", TENANT, {"quotas": {"sandboxes": 3}}, if_match=seen)
    assert status == 200 and body["quotas"]["sandboxes"] == 3
    now = headers["ETag"]
    assert now != seen and admin.ask("GET", TENANT)[1]["ETag"] == now
    for method, change in (("PATCH", {"disabled": True}), ("DELETE", None)):
        text = refused(admin.ask(method, TENANT, change, if_match=seen),
                       412, "precondition_failed")
        assert "If-Match" in text
        refused(admin.ask(method, TENANT, change, if_match="W/" + now),
                412, "precondition_failed")
        refused(admin.ask(method, TENANT, change, if_match="unquoted"),
                400, "bad_request")
    assert admin.ask("GET", TENANT)[1]["ETag"] == now
    assert admin.ask("PATCH", TENANT, {"disabled": True},
                     if_match=f'"other", {now}')[0] == 200
    assert admin.ask("DELETE", TENANT, if_match="*")[0] == 202


def test_a_secret_is_made_once_by_who_asks_for_that(admin):
    refused(admin.ask("PUT", SECRET, "one", if_match="*"),
            412, "precondition_failed")
    status, headers, body = admin.ask("PUT", SECRET, "one",
                                      if_none_match="*")
    assert status == 201
    first = headers["ETag"]
    refused(admin.ask("PUT", SECRET, "two", if_none_match="*"),
            412, "precondition_failed")
    status, headers, shown = admin.ask("GET", SECRET)
    assert (status, headers["ETag"], shown) == (200, first, body)
    status, headers, _ = admin.ask("PUT", SECRET, "three", if_match=first)
    assert status == 200
    refused(admin.ask("DELETE", SECRET, if_match=first),
            412, "precondition_failed")
    assert admin.ask("DELETE", SECRET, if_match=headers["ETag"])[0] == 200
    refused(admin.ask("GET", SECRET), 404, "not_found")
    refused(admin.ask("DELETE", SECRET, if_match=first), 404, "not_found")


def test_a_token_is_revoked_as_it_was_seen(admin):
    status, headers, made = admin.ask("POST", TENANT + "/tokens", {})
    # What is told once is no state of it.
    assert status == 201 and "ETag" not in headers
    path = "/api/v1/tokens/" + made["id"]
    seen = admin.ask("GET", path)[1]["ETag"]
    refused(admin.ask("DELETE", path, if_match='"0"'),
            412, "precondition_failed")
    status, headers, _ = admin.ask("DELETE", path, if_match=seen)
    assert status == 200
    assert admin.ask("GET", path)[1]["ETag"] == headers["ETag"] != seen


def test_of_many_who_change_the_same_state_one_does(admin):
    seen = admin.ask("GET", TENANT)[1]["ETag"]
    answers = at_once([functools.partial(admin.ask, "PATCH", TENANT, {
        "quotas": {"sandboxes": n}}, if_match=seen) for n in range(1, 17)])
    assert sorted(a[0] for a in answers) == [200] + 15 * [412]
