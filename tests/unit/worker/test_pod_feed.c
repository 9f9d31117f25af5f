#include "worker/kubernetes/pod_feed.h"

#include "tests/unit/worker/cluster_ground.h"

/* ---- what the server says: to lists and to watches, one after the other */

#define TURNS_MAX 8
#define FORBIDDEN "{\"kind\":\"Status\",\"message\":\"no\"}"
#define CHUNKED "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"

static struct {
	const char *lists[TURNS_MAX];   /* bodies; NULL: the last again */
	const char *watches[TURNS_MAX]; /* lines; NULL: the last again */
	bool holds;                     /* a watch stays open */
	unsigned int nlists, nwatches;
	char path[4096]; /* of the last */
	char reply[4096];
} script;

static const char *
turn(const char *const *all, unsigned int *n)
{
	unsigned int at = (*n)++;

	while (at > 0 && (at >= TURNS_MAX || all[at] == NULL))
		at--;
	return all[at];
}

static const char *
answer_script(struct fake_engine *f, const char *method, const char *path)
{
	const char *lines;

	(void)method;
	(void)snprintf(script.path, sizeof(script.path), "%s", path);
	if (strstr(path, "watch=true") == NULL) {
		lines = turn(script.lists, &script.nlists);
		return fake_engine_reply(
		    strcmp(lines, FORBIDDEN) == 0 ? 403 : 200, lines);
	}
	lines = turn(script.watches, &script.nwatches);
	f->close_after = !script.holds;
	(void)snprintf(script.reply, sizeof(script.reply),
	    CHUNKED "%zx\r\n%s\r\n%s", strlen(lines), lines,
	    script.holds ? "" : "0\r\n\r\n");
	return script.reply;
}

#define META(name, uid)                                                        \
	"\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid                   \
	"\",\"resourceVersion\":\"9\"}"
#define POD(name, uid) "{" META(name, uid) "}"
#define LIST(more, items)                                                      \
	"{\"metadata\":{\"resourceVersion\":\"5\"" more "},\"items\":[" items  \
	"]}"
#define EVENT(type, name, uid)                                                 \
	"{\"type\":\"" type "\",\"object\":" POD(name, uid) "}\n"
#define BOOKMARK                                                               \
	"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"                    \
	"\"resourceVersion\":\"77\"}}}\n"
#define EXPIRED                                                                \
	"{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"old\"}}\n"

/* ---- what is told: "+name" there, "-name/uid" gone, "^" up, "v" away, "x"
 * refused, "." a list is told */

static struct {
	char text[512];
	const char *want; /* it ends with that */
	bool met;
	const char *stop_at;
	struct pod_feed *f;
} told;

static void
tell(const char *mark, const char *name, const char *uid)
{
	size_t n = strlen(told.text), end;

	(void)snprintf(told.text + n, sizeof(told.text) - n, "%s%s%s%s ", mark,
	    name, uid[0] != '\0' ? "/" : "", uid);
	n = strlen(told.text);
	end = told.want != NULL ? strlen(told.want) : 0;
	told.met = told.want != NULL && n >= end &&
	    strcmp(told.text + n - end, told.want) == 0;
	if (told.stop_at != NULL && strcmp(told.stop_at, mark) == 0) {
		pod_feed_stop(told.f);
		told.f = NULL;
		told.met = true;
	}
}

static void
on_pod(const json_t *pod, void *arg)
{
	(void)arg;
	tell("+",
	    json_string_value(
		json_object_get(json_object_get(pod, "metadata"), "name")),
	    "");
}

static void
on_gone(const char *name, const char *uid, void *arg)
{
	(void)arg;
	tell("-", name, uid);
}

static void
on_state(enum pod_feed_state state, const char *detail, void *arg)
{
	static const char *const marks[] = {[POD_FEED_AWAY] = "v",
	    [POD_FEED_REFUSED] = "x",
	    [POD_FEED_UP] = "^"};

	(void)arg;
	assert_int_equal(state == POD_FEED_UP, detail[0] == '\0');
	tell(marks[state], "", "");
}

static void
on_listed(void *arg)
{
	(void)arg;
	tell(".", "", "");
}

static const struct pod_feed_user user = {on_pod, on_gone, on_state, on_listed};

static void
begin(struct ground *g, const char *stop_at)
{
	memset(&told, 0, sizeof(told));
	told.stop_at = stop_at;
	g->server.answer = answer_script;
	told.f = pod_feed_start(
	    g->base, g->cluster, "boxes", "a=b,c=d", &user, NULL);
	assert_string_equal(told.text, "");
}

static void
expect(struct ground *g, const char *want)
{
	size_t n = strlen(told.text), end = strlen(want);

	told.want = want;
	told.met = n >= end && strcmp(told.text + n - end, want) == 0;
	fixture_loop(g->base, &told.met);
}

static int
setup(void **state)
{
	memset(&script, 0, sizeof(script));
	script.holds = true;
	script.watches[0] = BOOKMARK;
	return ground_setup(state);
}

static int
teardown(void **state)
{
	pod_feed_stop(told.f);
	told.f = NULL;
	return ground_teardown(state);
}

TEST(a_list_is_read_page_by_page)
{
	script.lists[0] = LIST(",\"continue\":\"a/b=\"", POD("one", "1"));
	script.lists[1] = LIST("", POD("two", "2"));
	begin(g, NULL);
	expect(g, "+one +two . ");
	assert_string_equal(told.text, "^ +one +two . ");
	while (script.nwatches == 0)
		fixture_settle(g->base);
	assert_non_null(strstr(script.path,
	    "/api/v1/namespaces/boxes/pods?labelSelector=a%3Db%2Cc%3Dd"
	    "&watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
	    "&resourceVersion=5"));
}

TEST(events_are_told_once_each)
{
	script.lists[0] = LIST("", POD("one", "1"));
	script.watches[0] = EVENT("MODIFIED", "one", "1")
	    EVENT("ADDED", "one", "2") EVENT("DELETED", "one", "1")
		EVENT("LATER", "x", "x") EVENT("DELETED", "one", "2")
		    EVENT("DELETED", "never", "3") EVENT("ADDED", "end", "4");
	begin(g, NULL);
	expect(g, "+end ");
	assert_string_equal(
	    told.text, "^ +one . +one -one/1 +one -one/2 +end ");
}

TEST(what_a_list_does_not_have_is_gone)
{
	script.lists[0] = LIST("", POD("one", "1") "," POD("two", "2"));
	script.lists[1] = LIST("", POD("two", "3"));
	script.watches[0] = EXPIRED;
	script.watches[1] = BOOKMARK;
	script.holds = false;
	begin(g, NULL);
	expect(g, "-two/2 +two -one/1 . ");
	assert_string_equal(told.text, "^ +one +two . -two/2 +two -one/1 . ");
}

TEST(a_watch_goes_on_where_the_one_before_ended)
{
	script.lists[0] = LIST("", "");
	script.watches[1] = EVENT("ADDED", "one", "1");
	script.holds = false;
	begin(g, NULL);
	expect(g, "+one ");
	assert_string_equal(told.text, "^ . +one ");
	assert_int_equal(script.nlists, 1);
	assert_non_null(strstr(script.path, "resourceVersion=77"));
}

TEST(watches_that_end_at_once_are_not_asked_for_without_a_pause)
{
	script.lists[0] = LIST("", "");
	script.watches[0] = "\n";
	script.holds = false;
	begin(g, NULL);
	expect(g, ". . ");
	assert_int_equal(script.nlists, 2);
	assert_string_equal(told.text, "^ . . ");
}

TEST(a_silent_watch_is_given_up)
{
	script.lists[0] = LIST("", "");
	script.watches[0] = "\n";
	begin(g, NULL);
	pod_feed_set_watch_ms(told.f, 10);
	expect(g, ". . ");
	assert_string_equal(told.text, "^ . . ");
}

TEST(a_line_that_cannot_be_read_is_made_good_by_a_list)
{
	script.lists[0] = LIST("", "");
	script.lists[1] = LIST("", POD("one", "1"));
	script.watches[0] = "{\"type\":\"ADDED\",\"object\":{\n";
	begin(g, NULL);
	expect(g, "+one . ");
	assert_string_equal(told.text, "^ . +one . ");
}

TEST(what_is_no_list_is_an_outage)
{
	script.lists[0] = "{}";
	script.lists[1] = LIST("", "{},{\"metadata\":{\"name\":\"x\"}}");
	begin(g, NULL);
	expect(g, "^ . ");
	assert_string_equal(told.text, "v ^ . ");
}

TEST(a_refusal_is_no_outage)
{
	script.lists[0] = FORBIDDEN;
	script.lists[1] = LIST("", "");
	begin(g, NULL);
	expect(g, "^ . ");
	assert_string_equal(told.text, "x ^ . ");
}

TEST(it_may_be_left_in_each_of_its_calls)
{
	static const char *const marks[] = {"^", "+", "-", ".", "v"};

	script.lists[0] = LIST("", POD("one", "1"));
	script.watches[0] = EVENT("DELETED", "one", "1");
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		if (strcmp(marks[i], "v") == 0)
			script.lists[0] = "{}";
		begin(g, marks[i]);
		fixture_loop(g->base, &told.met);
		assert_null(told.f);
		fixture_settle(g->base);
	}
}

TEST_MAIN(setup, teardown)
