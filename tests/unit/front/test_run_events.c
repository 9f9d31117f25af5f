#include <stdio.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "common/buf.h"
#include "common/js.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "supervisor/front/run_events.h"
#include "tests/unit/test.h"

static const uint8_t key[SIPHASH_KEY_BYTES] = {1, 2, 3};

#define AT 1000 /* the offset of the first record */

static char none[] = "";
static struct store_command commands[2] = {
    {.shell = none, .argv_json = none, .cwd = none},
    {.shell = none, .argv_json = none, .cwd = none}};
static const struct store_run row = {.identifier = none,
    .container_id = none,
    .commands = commands,
    .ncommands = 2};

static void
put(struct buf *b, enum runlog_type type, uint16_t command, const char *p,
    size_t n)
{
	const struct runlog_header h = {type, command, (uint32_t)n, 1};

	runlog_put_header(b, &h);
	assert_int_equal(buf_append(b, p, n), 0);
}

/* The events of b, each as "ID NAME CHUNK;". */
static char *
told(const struct buf *b)
{
	const struct log_records records = {.p = buf_data(b),
	    .n = buf_len(b),
	    .next = AT + buf_len(b),
	    .from = {AT, 0}};
	struct log_at at;
	struct evbuffer *out = evbuffer_new();
	char *text = xstrdup(""), *line, *more, *chunk;

	run_events_add(
	    &(struct run_events_to){out, &row, key}, &records, 1u << 20, &at);
	assert_int_equal(at.offset, records.next);
	assert_int_equal(at.skip, 0);
	while ((line = evbuffer_readln(out, NULL, EVBUFFER_EOL_LF)) != NULL) {
		more = NULL;
		if (strncmp(line, "id: ", 4) == 0)
			more = xasprintf("%s%.*s", text,
			    (int)strcspn(line + 4, "-"), line + 4);
		else if (strncmp(line, "event: ", 7) == 0)
			more = xasprintf("%s %s", text, line + 7);
		else if ((chunk = strstr(line, "\"chunk\":\"")) != NULL)
			more = xasprintf("%s %.*s;", text,
			    (int)strcspn(chunk + 9, "\""), chunk + 9);
		else if (line[0] == 'd')
			more = xasprintf("%s;", text);
		if (more != NULL) {
			free(text);
			text = more;
		}
		free(line);
	}
	evbuffer_free(out);
	return text;
}

struct part {
	struct evbuffer *out;
	struct log_at at;
	size_t room;
	bool called;
};

static void
part_cb(
    int rc, const struct log_records *records, const struct err *why, void *arg)
{
	struct part *p = arg;

	(void)why;
	assert_int_equal(rc, 0);
	assert_true(records->n > 0);
	run_events_add(&(struct run_events_to){p->out, &row, key}, records,
	    p->room, &p->at);
	p->called = true;
}

/* Bytes of text in the chunks, once read as JSON again. */
static size_t
chunks_length(struct evbuffer *out)
{
	size_t n = 0;
	char *line;

	while ((line = evbuffer_readln(out, NULL, EVBUFFER_EOL_LF)) != NULL) {
		json_t *o = strncmp(line, "data: ", 6) == 0 ?
		    json_loads(line + 6, 0, NULL) :
		    NULL;

		assert_null(json_object_get(o, "chunk_base64"));
		n += json_string_length(json_object_get(o, "chunk"));
		json_decref(o);
		free(line);
	}
	return n;
}

static void
tell_in_parts(
    struct event_base *base, struct log_view *v, size_t room, size_t end)
{
	struct part p = {evbuffer_new(), {0, 0}, room, false};
	unsigned int parts = 0;

	while (p.at.offset < end) {
		p.called = false;
		log_view_read(
		    v, &p.at, UINT64_MAX, 300 + room, part_cb, &p, NULL);
		while (!p.called)
			(void)event_base_loop(base, EVLOOP_ONCE);
		assert_true(++parts < 400);
	}
	assert_true(parts > (room < 300 ? 20 : 1));
	assert_int_equal(chunks_length(p.out), 20 * 10);
	evbuffer_free(p.out);
}

static void
assert_told(struct buf *b, const char *want)
{
	AUTO(auto_free) char *text = told(b);

	assert_string_equal(text, want);
	buf_clear(b);
}

TEST(records_of_one_stream_are_one_event_behind_the_last)
{
	struct buf b = {0};

	put(&b, RUNLOG_RUN_STARTED, 0, "", 0);
	put(&b, RUNLOG_COMMAND_STARTED, 0, "", 0);
	put(&b, RUNLOG_STDOUT, 0, "ab", 2);
	put(&b, RUNLOG_STDOUT, 0, "", 0);
	put(&b, RUNLOG_STDOUT, 0, "c", 1);
	put(&b, RUNLOG_STDERR, 0, "E", 1);
	put(&b, RUNLOG_STDOUT, 0, "d", 1);
	put(&b, RUNLOG_STDOUT, 1, "e", 1);
	put(&b, RUNLOG_COMMAND_STARTED, 1, "", 0);
	put(&b, RUNLOG_STDERR, 1, "", 0);
	assert_told(&b,
	    "1016 run_started;1032 command_started;"
	    "1083 command_stdout abc;1100 command_stderr E;"
	    "1117 command_stdout d;1134 command_stdout e;"
	    "1150 command_started;1166 command_stderr ;");
}

/* A log in memory, told in parts of any size: what comes out is what is in it,
 * and each place is one to go on from. */
TEST(parts_of_any_size_tell_the_same)
{
	static const char text[] = "a\xc3\xa4\xe2\x82\xac\n\x01\"z";
	struct event_base *base = event_base_new();
	const struct log_caps caps = {{100, 100}, 20, 0, 0};
	struct buf b = {0};
	struct log_view *v;
	struct logs *logs;
	struct err e;

	put(&b, RUNLOG_RUN_STARTED, 0, "", 0);
	put(&b, RUNLOG_COMMAND_STARTED, 0, "", 0);
	for (int i = 0; i < 20; i++)
		put(&b, i % 7 == 0 ? RUNLOG_STDERR : RUNLOG_STDOUT, 0, text,
		    sizeof(text) - 1);
	assert_int_equal(logs_new(base, 1, &logs, &e), 0);
	v = log_view_open_memory(logs, buf_data(&b), buf_len(&b), 1, &caps);
	for (size_t room = 0; room < 1000; room += 97)
		tell_in_parts(base, v, room, buf_len(&b));
	log_view_close(v);
	logs_free(logs);
	event_base_free(base);
	buf_clear(&b);
}

/* Nobody but us knows where a record begins. */
TEST(an_id_is_good_for_its_place_and_run_alone)
{
	const struct uuid run = {{1}}, other = {{2}};
	const struct store_run own = {.uuid = run, .ncommands = 1};
	const uint8_t other_key[SIPHASH_KEY_BYTES] = {4};
	struct log_records records = {.from = {70, 0}};
	struct evbuffer *out = evbuffer_new();
	struct run_events_at at;
	struct buf b = {0};
	struct log_at behind;
	char id[80];

	put(&b, RUNLOG_STDOUT, 0, "xyz", 3);
	records.p = buf_data(&b);
	records.n = buf_len(&b);
	records.next = 70 + records.n;
	run_events_add(
	    &(struct run_events_to){out, &own, key}, &records, 1000, &behind);
	assert_int_equal(evbuffer_remove(out, id, 79) > 30, true);
	id[79] = '\0';
	id[4 + strcspn(id + 4, "\n")] = '\0';
	assert_int_equal(run_events_parse_id(id + 4, &run, key, &at), 0);
	assert_int_equal(at.log.offset, 70 + RUNLOG_HEADER_BYTES + 3);
	assert_int_equal(at.log.skip, 0);
	assert_int_equal(
	    run_events_parse_id(id + 4, &other, key, &at), ERR_INVAL);
	assert_int_equal(
	    run_events_parse_id(id + 4, &run, other_key, &at), ERR_INVAL);
	id[4]++;
	assert_int_equal(
	    run_events_parse_id(id + 4, &run, key, &at), ERR_INVAL);
	assert_int_equal(run_events_parse_id("0", &run, key, &at), ERR_INVAL);
	assert_int_equal(run_events_parse_id("", &run, key, &at), 0);
	evbuffer_free(out);
	buf_clear(&b);
}

TEST_MAIN(NULL, NULL)
