/* Runs as spans: what is odd in a row makes no span that is not one. */
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/front/span_text.h"
#include "tests/unit/test.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define SPANS_MAX 8
#define DEPTH_MAX 8

struct taken {
	json_t *spans[SPANS_MAX];
	size_t n;
};

static void
take_cb(const char *text, void *arg)
{
	struct taken *t = arg;
	struct err e;

	assert_true(t->n < SPANS_MAX);
	assert_true(strlen(text) <= SPAN_TEXT_MAX);
	assert_int_equal(js_parse(text, strlen(text), SPAN_TEXT_MAX, DEPTH_MAX,
			     &t->spans[t->n++], &e),
	    0);
}

static void
drop_all(struct taken *t)
{
	while (t->n > 0)
		json_decref(t->spans[--t->n]);
}

/* Texts are not to be written to. */
static struct store_run
a_run(void)
{
	struct store_run row = {.tool = (char *)(uintptr_t) "run_sandbox",
	    .identifier = (char *)(uintptr_t) "box",
	    .sandbox_name = (char *)(uintptr_t) "name",
	    .language = (char *)(uintptr_t) "",
	    .request_id = (char *)(uintptr_t) "",
	    .error = (char *)(uintptr_t) "",
	    .trace = (char *)(uintptr_t)TRACE,
	    .span = (char *)(uintptr_t)SPAN,
	    .parent_span = (char *)(uintptr_t) "",
	    .state = RUN_STATE_COMPLETED,
	    .end_reason = RUNLOG_EXIT,
	    .created_ms = 1000,
	    .started_ms = 1500,
	    .ended_ms = 2000};

	return row;
}

TEST(a_run_without_a_good_trace_is_no_span)
{
	struct store_run row = a_run();
	struct taken t = {.n = 0};

	row.trace = (char *)(uintptr_t) "";
	span_text_each(&row, "acme", take_cb, &t);
	row.trace = (char *)(uintptr_t)TRACE TRACE;
	span_text_each(&row, "acme", take_cb, &t);
	row = a_run();
	row.span = (char *)(uintptr_t) "1";
	span_text_each(&row, "acme", take_cb, &t);
	row = a_run();
	row.parent_span = (char *)(uintptr_t)TRACE;
	span_text_each(&row, "acme", take_cb, &t);
	assert_int_equal(t.n, 0);
}

TEST(times_stay_within_the_run)
{
	struct store_command commands[] = {
	    {.started_ms = INT64_MIN, .ended_ms = INT64_MAX},
	    {.index = 1, .started_ms = INT64_MAX, .ended_ms = INT64_MIN},
	    {.index = 2, .started_ms = 1200, .ended_ms = 0},
	    {.index = 3, .started_ms = 0, .ended_ms = 1900}, /* never began */
	};
	static const char *const want[][2] = {{"1000000000", "2000000000"},
	    {"1000000000", "2000000000"}, {"2000000000", "2000000000"},
	    {"1200000000", "2000000000"}};
	struct store_run row = a_run();
	struct taken t = {.n = 0};

	row.commands = commands;
	row.ncommands = ARRAY_LEN(commands);
	span_text_each(&row, "acme", take_cb, &t);
	assert_int_equal(t.n, ARRAY_LEN(want));
	for (size_t i = 0; i < t.n; i++) {
		assert_string_equal(
		    js_text(t.spans[i], "startTimeUnixNano"), want[i][0]);
		assert_string_equal(
		    js_text(t.spans[i], "endTimeUnixNano"), want[i][1]);
	}
	assert_string_equal(js_text(t.spans[1], "parentSpanId"), SPAN);
	assert_string_not_equal(js_text(t.spans[1], "spanId"), SPAN);
	drop_all(&t);
	/* A clock that was set back while it ran. */
	row.ncommands = 0;
	row.ended_ms = 1;
	span_text_each(&row, "acme", take_cb, &t);
	assert_string_equal(
	    js_text(t.spans[0], "endTimeUnixNano"), "1000000000");
	drop_all(&t);
}

TEST(a_text_that_is_long_or_no_utf8_fits)
{
	struct store_run row = a_run();
	struct taken t = {.n = 0};
	char error[5000];

	memset(error, 1, sizeof(error));
	error[10] = '\xff';
	error[sizeof(error) - 1] = '\0';
	row.error = error;
	row.state = RUN_STATE_FAILED;
	row.end_reason = RUNLOG_INTERNAL;
	span_text_each(&row, "acme", take_cb, &t);
	assert_int_equal(t.n, 1);
	assert_int_equal(json_integer_value(json_object_get(
			     json_object_get(t.spans[0], "status"), "code")),
	    2);
	drop_all(&t);
}

TEST(head_and_tail_make_a_request)
{
	AUTO(auto_free) char *head = span_text_head("1.0", "a \"b\"");
	AUTO(auto_free) char *text = xasprintf("%s%s", head, span_text_tail);
	json_t *o = NULL;
	struct err e;

	assert_int_equal(
	    js_parse(text, strlen(text), SPAN_TEXT_MAX, 12, &o, &e), 0);
	assert_int_equal(
	    json_array_size(json_object_get(o, "resourceSpans")), 1);
	json_decref(o);
}

TEST_MAIN(NULL, NULL)
