"""Lists and watches: what clients build their picture of the cluster on."""
import http.client
import json

import pytest

from .peer import Watch, wait_for


@pytest.fixture(autouse=True)
def held(cluster):
    """Pods that never come to a container: they are made and gone at once."""
    cluster.faults.hold_pods()


def versions(event):
    return int(event["object"]["metadata"]["resourceVersion"])


def test_a_watch_goes_on_where_a_create_left_off(cluster, pods):
    made = pods.made("later")
    cluster.faults.release_pods()
    with Watch(cluster, fieldSelector="metadata.name=later",
               resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        seen = [watch.event() for _ in range(4)]
    assert [e["type"] for e in seen] == ["MODIFIED"] * 4
    phases = [e["object"]["status"]["phase"] for e in seen]
    assert phases == ["Pending", "Pending", "Pending", "Running"]
    assert [c["type"] for c in seen[0]["object"]["status"]["conditions"]] == \
        ["PodScheduled"]
    assert seen[1]["object"]["status"]["containerStatuses"][0]["state"] == \
        {"waiting": {"reason": "ContainerCreating"}}
    assert [versions(e) for e in seen] == sorted({versions(e) for e in seen})


def test_a_watch_from_nowhere_tells_what_is_there(cluster, pods):
    pods.made("there")
    for query in ({}, {"resourceVersion": "0"}):
        with Watch(cluster, timeoutSeconds=0, **query) as watch:
            event = watch.event()
            assert (event["type"], event["object"]["metadata"]["name"]) == \
                ("ADDED", "there")


def test_initial_events_end_with_a_bookmark(cluster, pods):
    pods.made("initial")
    with Watch(cluster, sendInitialEvents="true", allowWatchBookmarks="true",
               resourceVersionMatch="NotOlderThan") as watch:
        assert watch.event()["type"] == "ADDED"
        mark = watch.event()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {
        "k8s.io/initial-events-end": "true"}


def test_a_bookmark_comes_before_the_end(cluster, pods):
    version = pods.made("marked")["metadata"]["resourceVersion"]
    with Watch(cluster, resourceVersion=version, allowWatchBookmarks="true",
               fieldSelector="metadata.name=none",
               timeoutSeconds="1.7") as watch:
        mark = watch.event()
    assert mark["type"] == "BOOKMARK"
    assert versions(mark) >= int(version)


def test_what_comes_into_sight_is_added_and_what_leaves_is_deleted(
        cluster, pods):
    version = pods.made("turning")["metadata"]["resourceVersion"]
    with Watch(cluster, labelSelector="turned=yes",
               resourceVersion=version) as watch:
        for value in ("yes", None):
            status, said = pods.ask(
                "PATCH", "/turning", {"metadata": {"labels": {
                    "turned": value}}},
                Content_Type="application/merge-patch+json")
            assert status == 200, said
        assert [watch.event()["type"] for _ in range(2)] == \
            ["ADDED", "DELETED"]


def test_a_watch_of_the_future_waits(cluster):
    with Watch(cluster, resourceVersion="999999999",
               timeoutSeconds="0.1") as watch:
        assert watch.event() is None


def test_a_list_comes_in_pieces(pods):
    for name in ("b", "a", "c"):
        pods.made(name)
    status, first = pods.ask("GET", "?limit=2")
    assert status == 200
    assert [p["metadata"]["name"] for p in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    status, rest = pods.ask(
        "GET", f"?limit=2&continue={first['metadata']['continue']}")
    assert [p["metadata"]["name"] for p in rest["items"]] == ["c"]
    assert "continue" not in rest["metadata"]
    assert {"kind", "apiVersion"}.isdisjoint(rest["items"][0])


def test_a_piece_that_is_too_old_is_gone(cluster, pods):
    for name in ("a", "b"):
        pods.made(name)
    token = pods.ask("GET", "?limit=1")[1]["metadata"]["continue"]
    cluster.faults.compact()
    status, said = pods.ask("GET", f"?limit=1&continue={token}")
    assert (status, said["reason"]) == (410, "Expired")
    status, said = pods.ask("GET", "?limit=1&continue=abc")
    assert (status, said["reason"]) == (400, "BadRequest")
    assert said["message"].startswith("invalid continue token: ")


@pytest.mark.parametrize("selector, names", [
    ("app=x", ["a", "b"]), ("app!=x", ["c"]), ("app in (x,y)",
                                               ["a", "b", "c"]),
    ("app,!extra", ["a", "c"]), ("app notin (x), app", ["c"]),
    ("app==x,extra=1", ["b"])])
def test_labels_select(pods, selector, names):
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "x",
                                                     "extra": "1"}),
                         ("c", {"app": "y"})):
        pods.made(name, labels=labels)
    status, said = pods.ask("GET", "?labelSelector=" +
                            selector.replace(" ", "%20").replace("=", "%3D"))
    assert status == 200, said
    assert [p["metadata"]["name"] for p in said["items"]] == names


@pytest.mark.parametrize("query, code, reason, words", [
    ("?fieldSelector=spec.bogus%3Dx", 400, "BadRequest",
     "field label not supported: spec.bogus"),
    ("?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", 504,
     "Timeout", "Timeout: Too large resource version: 99999999, current: "),
    ("?resourceVersion=2&resourceVersionMatch=Exact", 410, "Expired",
     "The resourceVersion for the provided list is too old.")])
def test_lists_that_cannot_be(cluster, pods, query, code, reason, words):
    cluster.faults.compact()
    status, said = pods.ask("GET", query)
    assert (status, said["code"], said["reason"]) == (code, code, reason)
    assert said["message"].startswith(words)


def test_lines_may_come_in_pieces_and_be_cut(cluster, pods):
    pods.made("pieces")
    cluster.faults.split_lines(size=100)
    with Watch(cluster, timeoutSeconds=20) as watch:
        assert watch.event()["object"]["metadata"]["name"] == "pieces"
        cluster.faults.split_lines(size=0)
        assert cluster.faults.cut_watches() == 1
        with pytest.raises(http.client.IncompleteRead) as cut:
            watch.answer.read()
    assert cut.value.partial.startswith(b'{"type":"MODIFIED",')
    assert not cut.value.partial.endswith(b"\n")


def test_a_storm_of_410_ends(cluster, pods):
    version = pods.made("storm")["metadata"]["resourceVersion"]
    cluster.faults.expire_watches(times=2)
    codes = []
    for _ in range(3):
        with Watch(cluster, resourceVersion=version,
                   timeoutSeconds="0.1") as watch:
            event = watch.event()
            codes.append(event and event["object"].get("code"))
    assert codes[:2] == [410, 410]
    assert codes[2] is None


def test_only_metadata_where_no_more_is_wanted(pods):
    pods.made("meta")
    status, said = pods.ask("GET", "/meta", Accept="application/json;"
                            "as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert said["kind"] == "PartialObjectMetadata"
    assert "spec" not in said and said["metadata"]["name"] == "meta"
    status, said = pods.ask("GET", "/meta", Accept="text/csv")
    assert (status, said["reason"]) == (406, "NotAcceptable")


def test_a_deleted_pod_is_told_with_its_last_version(cluster, pods):
    version = pods.made("gone")["metadata"]["resourceVersion"]
    with Watch(cluster, resourceVersion=version) as watch:
        cluster.faults.delete_pod(pod="gone")
        event = watch.until(lambda kind, o: kind == "DELETED")
    assert versions(event) > int(version)
    wait_for(lambda: pods.ask("GET", "/gone")[0] == 404, "a 404")
    assert json.dumps(event).count('"resourceVersion"') == 1
