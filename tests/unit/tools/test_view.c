/* test_view.c - however much there is to show, a view stays below its bound,
 * says exactly what it leaves out, and leaves what is short whole */
#include <stdio.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/js.h"
#include "supervisor/tools/view.h"
#include "tests/unit/core/log_fixture.h"
#include "tests/unit/test.h"

#define COMMANDS 64
#define LONG 100000
#define ARTIFACTS 5000
#define PATH 1000

struct kind {
	const char *name;
	uint8_t byte;
};
static const struct kind kinds[] = {
    {"letters", 'x'}, {"control characters", 1}, {"no text", 0xff}};

static char none[] = "", path_of_all[PATH + 1];
static struct store_command commands[COMMANDS];
static struct store_artifact artifacts[ARTIFACTS];
static struct store_run row;

/* All that a run may be, at its largest. */
static void
fill_row(char c, size_t shell)
{
	memset(path_of_all, c, PATH);
	row = (struct store_run){.tool = none,
	    .language = none,
	    .identifier = none,
	    .container_id = none,
	    .sandbox_name = none,
	    .artifacts_error = none,
	    .error = none,
	    .commands = commands,
	    .ncommands = COMMANDS,
	    .artifacts = artifacts,
	    .nartifacts = ARTIFACTS,
	    .artifacts_total = ARTIFACTS};
	for (uint32_t i = 0; i < COMMANDS; i++) {
		commands[i] = (struct store_command){.index = i,
		    .shell = xcalloc(1, shell + 1),
		    .argv_json = none,
		    .env_json = none,
		    .cwd = (char *)(uintptr_t) "/",
		    .error = none};
		memset(commands[i].shell, c, shell);
	}
	for (uint32_t i = 0; i < ARTIFACTS; i++)
		artifacts[i] = (struct store_artifact){.path = path_of_all};
}

static void
clear_row(void)
{
	for (uint32_t i = 0; i < COMMANDS; i++)
		free(commands[i].shell);
}

static void
put_bytes(struct made_log *l, enum runlog_type type, uint8_t byte, size_t n)
{
	static uint8_t bytes[LONG];

	memset(bytes, byte, n);
	for (size_t at = 0; at < n; at += 50000)
		put_record(
		    l, type, bytes + at, n - at < 50000 ? n - at : 50000);
}

/* Every command prints n bytes on either stream, the last one five. */
static struct log_digest *
digest_of_prints(uint8_t byte, size_t n, const struct log_caps *caps)
{
	struct log_digest *d = log_digest_new(COMMANDS, caps);
	const struct log_work work = {NULL, 0};
	struct runlog_source source = {-1, NULL};
	struct made_log l;
	struct err e;

	begin_log(&l);
	for (uint8_t i = 0; i < COMMANDS; i++) {
		l.command = i;
		put_record(&l, RUNLOG_COMMAND_STARTED, "", 0);
		put_bytes(&l, RUNLOG_STDOUT, byte, i < COMMANDS - 1 ? n : 5);
		put_bytes(&l, RUNLOG_STDERR, byte, i < COMMANDS - 1 ? n : 5);
		l.bytes[0] = l.bytes[1] = i < COMMANDS - 1 ? n : 5;
		put_ended(&l);
	}
	put_run_ended(&l);
	source.mem = buf_data(&l.b);
	assert_int_equal(
	    log_digest_advance(d, &source, buf_len(&l.b), &work, &e), 0);
	assert_false(d->broken);
	assert_in_range(log_digest_held(d), 1, LOG_HEADS_MAX * 2);
	buf_clear(&l.b);
	return d;
}

static json_int_t
number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* Bytes of a stream that are shown; of no text those that base64 has. */
static json_int_t
shown(const json_t *o, const char *key, const char *exact)
{
	const json_t *b = json_object_get(o, exact);
	const char *text = json_string_value(b);
	json_int_t n = (json_int_t)json_string_length(b);

	if (b == NULL)
		return (json_int_t)json_string_length(json_object_get(o, key));
	while (n > 0 && text[n - 1] == '=')
		n--;
	return n * 3 / 4;
}

static void
check_counts(const json_t *view, json_int_t n)
{
	const json_t *c, *all = json_object_get(view, "commands");
	size_t i;

	json_array_foreach (all, i, c) {
		json_int_t head = shown(c, "stdout", "stdout_base64");
		json_int_t tail = shown(c, "stdout_tail", "stdout_tail_base64");

		if (i == COMMANDS - 1) {
			assert_int_equal(head, 5);
			assert_true(json_is_false(
			    json_object_get(c, "stdout_truncated")));
			assert_null(json_object_get(c, "stdout_dropped"));
			continue;
		}
		assert_int_equal(head + tail + number(c, "stdout_dropped"), n);
		assert_int_equal(number(c, "stdout_bytes"), n);
		assert_true(
		    json_is_true(json_object_get(c, "stdout_truncated")));
	}
}

static void
check_artifacts(const json_t *view, uint32_t from)
{
	size_t n = json_array_size(json_object_get(view, "artifacts"));
	json_int_t dropped = number(view, "artifacts_dropped");

	assert_int_equal((json_int_t)n + dropped + from, ARTIFACTS);
	assert_true(n > 0);
	if (dropped > 0)
		assert_int_equal(
		    number(view, "artifacts_next"), (json_int_t)n + from);
}

TEST(the_largest_run_has_a_view_below_its_bound)
{
	const struct log_caps caps = {
	    {1 << 20, 1 << 20}, LOG_TAIL_BYTES, 0, LOG_HEADS_MAX};
	struct log_digest *d;
	size_t size;
	json_t *o;
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		/* A request's text is UTF-8: no text cannot be in it. */
		fill_row(
		    kinds[i].byte < 0x80 ? (char)kinds[i].byte : 'x', 32000);
		d = digest_of_prints(kinds[i].byte, LONG, &caps);
		o = view_run(&row, d, &(struct view_wish){.waits = 0});
		text = js_dump(o);
		size = strlen(text);
		if (size > VIEW_MAX || size < VIEW_MAX / 2)
			fail_msg("%s: %zu bytes", kinds[i].name, size);
		check_counts(o, LONG);
		check_artifacts(o, 0);
		free(text);
		json_decref(o);
		log_digest_free(d);
		clear_row();
	}
}

TEST(a_list_of_artifacts_goes_on_where_it_was_cut)
{
	const struct log_caps caps = {{100, 100}, 20, 0, LOG_HEADS_MAX};
	struct log_digest *d = digest_of_prints('x', 50, &caps);
	uint32_t from = 0, pages = 0;
	const json_t *next;
	json_t *o;

	fill_row(1, 10);
	do {
		o = view_run(
		    &row, d, &(struct view_wish){.artifacts_from = from});
		check_artifacts(o, from);
		next = json_object_get(o, "artifacts_next");
		from = (uint32_t)json_integer_value(next);
		json_decref(o);
		pages++;
	} while (from != 0);
	assert_in_range(pages, 10, 40);
	o = view_run(&row, d, &(struct view_wish){.artifacts_from = ARTIFACTS});
	assert_int_equal(json_array_size(json_object_get(o, "artifacts")), 0);
	json_decref(o);
	log_digest_free(d);
	clear_row();
}

TEST(a_request_that_is_too_long_says_so)
{
	const struct log_caps caps = {{100, 100}, 20, 0, LOG_HEADS_MAX};
	struct log_digest *d = digest_of_prints('x', 50, &caps);
	const json_t *all, *c;
	json_t *o;

	fill_row('x', 32000);
	commands[3].shell[10] = '\0';
	o = view_run(&row, d, &(struct view_wish){.waits = 0});
	all = json_object_get(o, "commands");
	c = json_array_get(all, 3);
	assert_int_equal(json_string_length(json_object_get(c, "shell")), 10);
	assert_null(json_object_get(c, "request_truncated"));
	c = json_array_get(all, 4);
	assert_true(json_is_true(json_object_get(c, "request_truncated")));
	assert_in_range(json_string_length(json_object_get(c, "shell")),
	    VIEW_WISHES_MAX / COMMANDS, 31999);
	json_decref(o);
	log_digest_free(d);
	clear_row();
}

TEST(merged_output_has_its_bound_and_its_count)
{
	struct log_caps caps = {
	    {1 << 20, 1 << 20}, LOG_TAIL_BYTES, LOG_HEADS_MAX, LOG_HEADS_MAX};
	struct log_digest *d;
	json_t *o;

	d = digest_of_prints(1, LONG, &caps);
	o = json_object();
	view_merged(o, d, 0);
	assert_int_equal(number(o, "output_dropped") +
		(json_int_t)json_string_length(json_object_get(o, "output")),
	    (COMMANDS - 1) * 2 * LONG + 10);
	assert_in_range(json_string_length(json_object_get(o, "output")),
	    VIEW_OUTPUT_MAX / 6 - 1, VIEW_OUTPUT_MAX / 6);
	json_decref(o);
	log_digest_free(d);
}

TEST(merged_output_that_is_no_text_is_exact_beside_it)
{
	static const struct log_caps caps = {
	    {4096, 4096}, 1024, LOG_HEADS_MAX, LOG_HEADS_MAX};
	struct log_digest *d;
	struct made_log l;
	json_t *o = json_object();

	begin_log(&l);
	put_started(&l, 0);
	put_record(&l, RUNLOG_STDOUT, "a\xff", 2);
	d = log_digest_new(1, &caps);
	assert_int_equal(
	    log_digest_advance(d, &(struct runlog_source){-1, buf_data(&l.b)},
		buf_len(&l.b), &(struct log_work){NULL, 0}, NULL),
	    0);
	view_merged(o, d, 0);
	assert_string_equal(js_text(o, "output"), "a\xef\xbf\xbd");
	assert_string_equal(js_text(o, "output_base64"), "Yf8=");
	json_decref(o);
	log_digest_free(d);
	buf_clear(&l.b);
}

/* 64 bytes of a stream: the first and the last half. */
TEST(a_stream_is_cut_to_what_the_wish_says)
{
	static const struct log_caps caps[] = {
	    {{4096, 4096}, 1024, LOG_HEADS_MAX, LOG_HEADS_MAX},
	    {{100, 100}, 50, LOG_HEADS_MAX, LOG_HEADS_MAX},
	    {{100, 100}, 20, LOG_HEADS_MAX, LOG_HEADS_MAX}};
	static const json_int_t tails[] = {32, 32, 20};
	const json_t *c;
	json_t *o;

	fill_row('x', 1);
	for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
		struct log_digest *d = digest_of_prints('x', 1000, &caps[i]);

		o = view_run(&row, d, &(struct view_wish){.stream_max = 64});
		c = json_array_get(json_object_get(o, "commands"), 0);
		assert_int_equal(shown(c, "stdout", "none"), 64 - tails[i]);
		assert_int_equal(shown(c, "stdout_tail", "none"), tails[i]);
		assert_int_equal(number(c, "stdout_dropped"), 1000 - 64);
		assert_true(
		    json_is_true(json_object_get(c, "stdout_truncated")));
		c = json_array_get(
		    json_object_get(o, "commands"), COMMANDS - 1);
		assert_int_equal(shown(c, "stdout", "none"), 5);
		assert_null(json_object_get(c, "stdout_dropped"));
		json_decref(o);
		o = json_object();
		view_merged(o, d, 64);
		assert_in_range(shown(o, "output", "none"), 1, 64);
		assert_int_equal(number(o, "output_dropped") +
			shown(o, "output", "none") +
			shown(o, "output_tail", "none"),
		    (COMMANDS - 1) * 2000 + 10);
		json_decref(o);
		log_digest_free(d);
	}
	clear_row();
}

TEST(a_share_leaves_the_small_ones_whole)
{
	static const size_t wants[] = {10, 1000, 20, 0, 500};

	assert_int_equal(view_share(wants, 5, 2000), 2000);
	assert_int_equal(view_share(wants, 5, 1530), 1530);
	assert_int_equal(view_share(wants, 5, 1030), 500);
	assert_int_equal(view_share(wants, 5, 430), 200);
	assert_int_equal(view_share(wants, 5, 40), 10);
	assert_int_equal(view_share(wants, 5, 0), 0);
}

/* The largest value that a setting takes. */
static size_t
most_of(const char *key)
{
	struct conf *conf = conf_new();
	size_t low = 1024, high = 1u << 30;
	char text[32];
	struct err e;

	while (low < high) {
		size_t mid = low + (high - low + 1) / 2;

		(void)snprintf(text, sizeof(text), "%zu", mid);
		if (conf_set(conf, key, text, &e) == 0)
			low = mid;
		else
			high = mid - 1;
	}
	conf_free(conf);
	return low;
}

/* Of one command that prints so many letters. */
static size_t
shown_of(
    size_t printed, const struct log_caps *caps, const struct view_wish *wish)
{
	struct log_digest *d = log_digest_new(1, caps);
	const struct log_work work = {NULL, 0};
	struct runlog_source source = {-1, NULL};
	struct made_log l;
	const json_t *c;
	struct err e;
	json_int_t n;
	json_t *o;

	begin_log(&l);
	put_record(&l, RUNLOG_COMMAND_STARTED, "", 0);
	for (size_t at = 0; at < printed; at += LONG)
		put_bytes(&l, RUNLOG_STDOUT, 'x',
		    printed - at < LONG ? printed - at : LONG);
	l.bytes[0] = printed;
	put_ended(&l);
	put_run_ended(&l);
	source.mem = buf_data(&l.b);
	while (log_digest_advance(d, &source, buf_len(&l.b), &work, &e) > 0)
		;
	assert_false(d->broken);
	fill_row('x', 10);
	row.ncommands = 1;
	row.nartifacts = row.artifacts_total = 0;
	o = view_run(&row, d, wish);
	c = json_array_get(json_object_get(o, "commands"), 0);
	n = shown(c, "stdout", "none") + shown(c, "stdout_tail", "none");
	json_decref(o);
	clear_row();
	log_digest_free(d);
	buf_clear(&l.b);
	return (size_t)n;
}

TEST(as_much_of_a_stream_is_shown_as_may_be_set)
{
	const size_t in_result = most_of("RESULT_OUTPUT_MAX_BYTES");
	const size_t head = most_of("DEFAULT_STDOUT_MAX_BYTES");
	const struct log_caps usual = {
	    {1 << 20, 1 << 20}, LOG_TAIL_BYTES, 0, LOG_HEADS_MAX};
	const struct log_caps large = {
	    {(uint32_t)head, 1 << 20}, LOG_TAIL_BYTES, 0, LOG_HEADS_MAX};
	const struct view_wish result = {
	    .size = VIEW_FOR_TOOL, .stream_max = in_result};
	const struct view_wish status = {.size = VIEW_FOR_STATUS};

	for (size_t times = 1; times < 6; times++)
		assert_int_equal(
		    shown_of(times * in_result, &usual, &result), in_result);
	assert_int_equal(shown_of(head, &large, &status), head);
	assert_true(shown_of(2 * head, &large, &status) >= head);
	assert_int_equal(head, most_of("DEFAULT_STDERR_MAX_BYTES"));
}

/* As many as are asked for of the last that was printed, from both. */
TEST(what_goes_on_has_its_place_and_the_last_of_its_output)
{
	static const struct log_caps caps = {{10, 10}, LOG_TAIL_BYTES, 0, 0};
	const struct log_work work = {NULL, 0};
	struct runlog_source source = {-1, NULL};
	struct log_digest *d = log_digest_new(COMMANDS, &caps);
	struct made_log l;
	struct err e;
	json_t *o;

	fill_row('x', 10);
	row.state = RUN_STATE_RUNNING;
	row.started_ms = clock_wall_ms() - 5000;
	for (size_t i = 0; i < COMMANDS; i++)
		commands[i].timeout_ms = 60000;
	begin_log(&l);
	put_started(&l, 0);
	put_bytes(&l, RUNLOG_STDOUT, 'a', 3000);
	put_bytes(&l, RUNLOG_STDERR, 'b', 7);
	source.mem = buf_data(&l.b);
	assert_int_equal(
	    log_digest_advance(d, &source, buf_len(&l.b), &work, &e), 0);
	d->commands[0].started_us = clock_wall_us() - 5000000;
	o = view_so_far(&row, d, SCHED_NOTHING_WAITS, 2048);
	assert_int_equal(number(o, "command"), 0);
	assert_int_equal(number(o, "commands"), COMMANDS);
	assert_in_range(number(o, "elapsed_ms"), 5000, 20000);
	assert_in_range(number(o, "killed_in_ms"), 40000, 55000);
	assert_int_equal(number(o, "stdout_bytes"), 3000);
	assert_int_equal(
	    json_string_length(json_object_get(o, "stdout_tail")), 2041);
	assert_string_equal(
	    json_string_value(json_object_get(o, "stderr_tail")), "bbbbbbb");
	json_decref(o);
	o = view_so_far(&row, d, SCHED_NOTHING_WAITS, 0);
	assert_null(json_object_get(o, "stdout_bytes"));
	json_decref(o);
	row.state = RUN_STATE_QUEUED;
	row.started_ms = 0;
	row.created_ms = clock_wall_ms() - 3000;
	o = view_so_far(&row, NULL, SCHED_WAITS_FOR_LOCK, 2048);
	assert_string_equal(
	    json_string_value(json_object_get(o, "waits_for")), "lock");
	assert_in_range(number(o, "elapsed_ms"), 3000, 20000);
	assert_null(json_object_get(o, "command"));
	json_decref(o);
	log_digest_free(d);
	buf_clear(&l.b);
	clear_row();
}

TEST_MAIN(NULL, NULL)
