#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_labels.h"
#include "worker/kubernetes/pod_volume.h"
#include "tests/unit/test.h"

#define HOUR_MS INT64_C(3600000)
#define NOW_MS INT64_C(1700000000000)

static struct pod_settings settings;
static struct backend_spec spec;
static json_t *claim;
static const struct pod_ours ours = {
    .prefix = "mcp", .id = "5eed", .container = "sandbox", .tenant = ""};
static const struct uuid mine = {{1}}, other = {{2}};

static int
setup(void **state)
{
	static char prefix[] = "mcp", class[] = "fast";

	(void)state;
	settings = (struct pod_settings){
	    .prefix = prefix, .volume_class = class, .volume_bytes = 5};
	spec = (struct backend_spec){.name = "mcp-sbx-a-1",
	    .identity = {.uuid = mine, .tenant = "acme"},
	    .claim = {.identifier = "My_box"}};
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	json_decref(claim);
	claim = NULL;
	return 0;
}

static const struct pod_volume_wish *
wish(void)
{
	static struct pod_volume_wish w;

	w = (struct pod_volume_wish){.settings = &settings,
	    .ns = "boxes",
	    .instance = "inst",
	    .id = "5eed",
	    .spec = &spec,
	    .now_ms = NOW_MS};
	return &w;
}

static json_t *
parsed(char *text)
{
	json_t *o = NULL;
	struct err e;

	assert_int_equal(js_parse(text, strlen(text), 65536, 16, &o, &e), 0);
	free(text);
	return o;
}

/* As the cluster shows the one that was just made. */
static json_t *
meta(void)
{
	json_t *o;

	if (claim == NULL) {
		claim = parsed(pod_volume_body(wish()));
		o = json_object_get(claim, "metadata");
		(void)json_object_set_new(o, "uid", json_string("ab-1"));
		(void)json_object_set_new(
		    o, "resourceVersion", json_string("7"));
	}
	return json_object_get(claim, "metadata");
}

static void
put(const char *of, const char *word, const char *value)
{
	char name[POD_LABEL_MAX + 1];

	pod_label("mcp", word, name);
	(void)json_object_set_new(
	    json_object_get(meta(), of), name, json_string(value));
}

static struct pod_volume
seen(void)
{
	struct pod_volume v;
	struct err e;

	(void)meta();
	assert_int_equal(pod_volume_view(claim, &ours, &v, &e), 0);
	return v;
}

/* ---- names */

TEST(a_name_is_a_sandboxs_and_no_other_ones)
{
	char name[POD_NAME_MAX + 1], again[POD_NAME_MAX + 1];

	pod_volume_name("5eed", "acme", "My_box", name);
	assert_true(pod_name_is_label(name));
	assert_ptr_equal(strstr(name, "mcp-sandbox-my-box-"), name);
	pod_volume_name("5eed", "acme", "My_box", again);
	assert_string_equal(name, again);
	pod_volume_name("5eed", "acme", "My-box", again);
	assert_string_not_equal(name, again);
	pod_volume_name("5eed", "beta", "My_box", again);
	assert_string_not_equal(name, again);
	pod_volume_name("feed", "acme", "My_box", again);
	assert_string_not_equal(name, again);
}

TEST(a_long_identifier_makes_a_name_that_fits)
{
	char name[POD_NAME_MAX + 1];

	pod_volume_name("5eed", "acme",
	    "______________________________________________________________",
	    name);
	assert_true(pod_name_is_label(name));
	assert_int_equal(strlen(name), POD_NAME_MAX);
}

/* ---- what is made, and seen again */

TEST(what_is_made_is_seen_as_ours)
{
	struct pod_volume v = seen();

	assert_true(v.is_ours);
	assert_false(v.is_removing);
	assert_string_equal(v.tenant, "acme");
	assert_string_equal(v.pod, "mcp-sbx-a-1");
	assert_string_equal(v.uid, "ab-1");
	assert_string_equal(v.version, "7");
	assert_true(uuid_is_equal(&v.box, &mine));
	assert_true(pod_volume_is_new(&v, &mine));
	assert_int_equal(v.taken_ms, NOW_MS);
	assert_int_equal(v.unused_ms, 0);
}

TEST(one_that_is_taken_over_is_another_boxs)
{
	AUTO(auto_json) json_t *patch = NULL;
	struct pod_volume v;

	put("annotations", POD_NOTE_UNUSED, "1699999999999");
	spec.identity.uuid = other;
	spec.name = "mcp-sbx-a-2";
	patch = parsed(pod_volume_body_taken(wish(), "7"));
	assert_int_equal(json_object_update_recursive(claim, patch), 0);
	v = seen();
	assert_true(v.is_ours);
	assert_true(uuid_is_equal(&v.box, &other));
	assert_false(pod_volume_is_new(&v, &other));
	assert_string_equal(v.pod, "mcp-sbx-a-2");
	assert_int_equal(v.unused_ms, 0);
}

TEST(a_note_is_put_and_taken_away)
{
	AUTO(auto_json)
	json_t *put_it = parsed(pod_volume_body_unused("mcp", NOW_MS, "7"));
	AUTO(auto_json)
	json_t *take_it = parsed(pod_volume_body_unused("mcp", 0, "7"));

	(void)meta();
	(void)json_object_update_recursive(claim, put_it);
	assert_int_equal(seen().unused_ms, NOW_MS);
	(void)json_object_update_recursive(claim, take_it);
	assert_int_equal(seen().unused_ms, 0);
}

TEST(what_is_not_whole_is_not_ours)
{
	static const struct {
		const char *of, *word, *value;
	} changes[] = {{"labels", POD_LABEL_ROLE, POD_ROLE},
	    {"labels", POD_LABEL_ID, "feed"},
	    {"labels", POD_LABEL_TENANT, "0123456789abcdef"},
	    {"labels", POD_LABEL_BOX, "none"},
	    {"annotations", POD_NOTE_TENANT, "beta"},
	    {"annotations", POD_NOTE_IDENTIFIER, "another"},
	    {"annotations", POD_NOTE_NAME, "../x"},
	    {"annotations", POD_NOTE_FIRST, ""}};

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		put(changes[i].of, changes[i].word, changes[i].value);
		assert_false(seen().is_ours);
		json_decref(claim);
		claim = NULL;
	}
}

TEST(in_a_tenants_namespace_no_other_tenant_is_believed)
{
	struct pod_ours its = ours;
	struct pod_volume v;
	struct err e;

	its.tenant = "acme";
	(void)meta();
	assert_int_equal(pod_volume_view(claim, &its, &v, &e), 0);
	assert_true(v.is_ours);
	its.tenant = "beta";
	assert_int_equal(pod_volume_view(claim, &its, &v, &e), 0);
	assert_false(v.is_ours);
}

TEST(what_could_not_stand_in_a_path_is_no_claim)
{
	struct pod_volume v;
	struct err e;

	(void)json_object_set_new(meta(), "uid", json_string("../x"));
	assert_int_equal(pod_volume_view(claim, &ours, &v, &e), ERR_BACKEND);
	(void)json_object_set_new(meta(), "uid", json_string("ab-1"));
	(void)json_object_set_new(meta(), "resourceVersion", json_string(""));
	assert_int_equal(pod_volume_view(claim, &ours, &v, &e), ERR_BACKEND);
}

/* ---- what a sweep does */

static void
check_fate(
    bool is_used, int64_t asof_ms, int64_t keep_ms, enum pod_volume_fate want)
{
	const struct pod_volume v = seen();

	assert_int_equal(pod_volume_judge(&v, is_used, asof_ms, keep_ms), want);
}

TEST(one_that_is_used_stays_and_loses_its_note)
{
	check_fate(true, NOW_MS + HOUR_MS, 0, POD_VOLUME_STAYS);
	put("annotations", POD_NOTE_UNUSED, "1700000000000");
	check_fate(true, NOW_MS + HOUR_MS, 0, POD_VOLUME_IS_CLEARED);
}

TEST(one_that_is_unused_is_noted_and_goes_in_time)
{
	const int64_t then = NOW_MS + HOUR_MS;

	check_fate(false, then, HOUR_MS, POD_VOLUME_IS_NOTED);
	put("annotations", POD_NOTE_UNUSED, "1700003600000");
	check_fate(false, then + HOUR_MS - 1, HOUR_MS, POD_VOLUME_STAYS);
	check_fate(false, then + HOUR_MS, HOUR_MS, POD_VOLUME_GOES);
}

TEST(one_that_is_not_kept_goes_at_once)
{
	check_fate(false, NOW_MS + HOUR_MS, 0, POD_VOLUME_GOES);
}

TEST(one_whose_box_is_on_its_way_stays)
{
	check_fate(false, NOW_MS + 999, 0, POD_VOLUME_STAYS);
	check_fate(false, NOW_MS - 60000, 0, POD_VOLUME_STAYS);
}

TEST(a_note_of_a_clock_that_was_wrong_is_written_anew)
{
	put("annotations", POD_NOTE_UNUSED, "1800000000000");
	check_fate(false, NOW_MS + HOUR_MS, HOUR_MS, POD_VOLUME_IS_NOTED);
}

TEST(one_that_is_being_removed_or_not_ours_is_left)
{
	(void)json_object_set_new(
	    meta(), "deletionTimestamp", json_string("2026-01-01T00:00:00Z"));
	check_fate(false, NOW_MS + HOUR_MS, 0, POD_VOLUME_STAYS);
	put("labels", POD_LABEL_ID, "feed");
	(void)json_object_del(meta(), "deletionTimestamp");
	check_fate(false, NOW_MS + HOUR_MS, 0, POD_VOLUME_STAYS);
}

TEST_MAIN(setup, teardown)
