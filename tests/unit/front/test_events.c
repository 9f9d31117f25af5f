#include "tests/unit/front/fixture.h"

#include "supervisor/front/sse.h"
#include "supervisor/http/http_int.h"

/* GET /mcp/events?run_id=: a run's events, at the reader's pace. */

static char *run_id;

static int
setup_run(void **state)
{
	(void)state;
	fixture_open(NULL);
	fx.front->heartbeat_ms = 60000;
	run_id = fixture_start_run();
	return 0;
}

static int
teardown_run(void **state)
{
	(void)state;
	free(run_id);
	run_id = NULL;
	fixture_close();
	return 0;
}

static void
follow(struct raw *r, const char *query, const char *more, int rcvbuf)
{
	char *text = xasprintf("GET /mcp/events?run_id=%s%s HTTP/1.1\r\n"
			       "Host: localhost:%u\r\n%s\r\n",
	    run_id, query, fx.port, more);

	raw_open(r, fx.port, rcvbuf);
	raw_send(r, fx.base, text);
	free(text);
}

static void
end_run(void)
{
	worker_end(&fx.worker, 0);
}

TEST(a_run_is_told_as_it_goes)
{
	struct raw r;
	const char *text;

	follow(&r, "", "", 0);
	raw_wait_for(&r, fx.base, "event: command_started\n");
	text = raw_text(&r);
	assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"));
	assert_non_null(
	    strstr(text, "Cache-Control: no-cache, no-transform\r\n"));
	assert_non_null(strstr(text, "X-Accel-Buffering: no\r\n"));
	assert_non_null(strstr(text, ": ok\n\n"));
	worker_print(&fx.worker, "one", 3);
	raw_wait_for(&r, fx.base, "\"chunk\":\"one\"");
	worker_print(&fx.worker, "two", 3);
	raw_wait_for(&r, fx.base, "\"chunk\":\"two\"");
	end_run();
	raw_wait_for(&r, fx.base, "event: run_finished\n");
	raw_wait_for(&r, fx.base, "0\r\n\r\n");
	text = raw_text(&r);
	assert_true(strstr(text, "event: run_started\n") <
	    strstr(text, "event: command_started\n"));
	assert_true(strstr(text, "event: command_finished\n") <
	    strstr(text, "event: artifacts_extracted\n"));
	raw_close(&r);
}

/* The id of the event with this text in it. */
static void
id_of(struct raw *r, const char *text, char out[64])
{
	const char *all = raw_text(r), *p = strstr(all, text);

	assert_non_null(p);
	while (p > all && strncmp(p, "\nid: ", 5) != 0)
		p--;
	assert_int_equal(sscanf(p, "\nid: %60s", out), 1);
}

TEST(a_reader_goes_on_behind_the_last_event_it_saw)
{
	char id[64], more[100];
	struct raw r, again;

	follow(&r, "", "", 0);
	worker_print(&fx.worker, "first", 5);
	raw_wait_for(&r, fx.base, "first");
	id_of(&r, "first", id);
	raw_close(&r);
	worker_print(&fx.worker, "second", 6);
	end_run();
	(void)snprintf(more, sizeof(more), "Last-Event-ID: %s\r\n", id);
	follow(&again, "", more, 0);
	raw_wait_for(&again, fx.base, "event: run_finished\n");
	assert_true(raw_has(&again, "second"));
	assert_false(raw_has(&again, "first"));
	assert_false(raw_has(&again, "run_started"));
	raw_close(&again);
	(void)snprintf(more, sizeof(more), "&last_event_id=%s", id);
	follow(&again, more, "", 0);
	raw_wait_for(&again, fx.base, "event: run_finished\n");
	assert_false(raw_has(&again, "first"));
	raw_close(&again);
}

TEST(a_silent_stream_has_heartbeats)
{
	struct raw r;

	fx.front->heartbeat_ms = 20;
	follow(&r, "", "", 0);
	raw_wait_until(
	    fx.base, (raw_receive(&r), raw_count(&r, ": \n\n") >= 3));
	raw_close(&r);
	raw_wait_until(fx.base, sse_streams_count(fx.front->sse) == 0);
}

TEST(bad_questions_get_json_errors)
{
	struct raw r;

	fixture_expect("GET", "/mcp/events", "", 400);
	fixture_has("\"code\":\"bad_request\"");
	fixture_expect("GET", "/mcp/events?run_id=", "", 400);
	fixture_expect("GET", "/mcp/events?run_id=../../etc", "", 400);
	fixture_expect("GET",
	    "/mcp/events?run_id=00000000-0000-4000-8000-000000000000", "", 404);
	fixture_has("\"code\":\"not_found\"");
	/* Of a run that is not the asker's no id is looked at. */
	fixture_expect("GET",
	    "/mcp/events?run_id=00000000-0000-4000-8000-000000000000"
	    "&last_event_id=nonsense",
	    "", 404);
	follow(&r, "", "Last-Event-ID: nonsense\r\n", 0);
	raw_wait_for(&r, fx.base, " 400 ");
	raw_close(&r);
	follow(&r, "&last_event_id=16", "", 0); /* a record, not signed */
	raw_wait_for(&r, fx.base, " 400 ");
	raw_close(&r);
	follow(&r, "&last_event_id=999999999", "", 0);
	raw_wait_for(&r, fx.base, " 400 ");
	raw_close(&r);
	assert_true(sse_streams_count(fx.front->sse) == 0);
}

TEST(head_has_no_stream)
{
	char *path = xasprintf("/mcp/events?run_id=%s", run_id);

	fixture_expect("HEAD", path, "", 200);
	fixture_has("Content-Type: text/event-stream\r\n");
	fixture_expect("GET", "/healthz", "", 200);
	free(path);
}

TEST(clients_that_leave_are_let_go)
{
	struct raw early, late;

	follow(&early, "", "", 0);
	raw_close(&early); /* before it is answered */
	follow(&late, "", "", 0);
	raw_wait_for(&late, fx.base, "command_started");
	raw_close(&late);
	worker_print(&fx.worker, "x", 1);
	raw_wait_until(fx.base, sse_streams_count(fx.front->sse) == 0);
	end_run();
	fixture_wait_run_state(run_id, "completed");
}

#define PRINTS 60 /* of 30,000 bytes, 10 MB as JSON: a turn for 16 KiB */

/* Bytes of answers that wait in this process, all connections together. */
static size_t
waiting(void)
{
	const struct http_conn *conn;
	size_t n = 0;

	TAILQ_FOREACH (conn, &fx.front->http->conns, link)
		n += evbuffer_get_length(bufferevent_get_output(conn->bev));
	return n;
}

static size_t
larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Read, but keep only the end; true at the last event. */
static bool
read_on(struct raw *r, size_t *total)
{
	size_t n;

	raw_receive(r);
	n = buf_len(&r->in);
	if (raw_has(r, "event: run_finished\n")) {
		*total += n;
		return true;
	}
	n = n > 100 ? n - 100 : 0;
	*total += n;
	buf_consume(&r->in, n);
	return false;
}

TEST(a_reader_that_does_not_read_costs_no_memory)
{
	char *line = xcalloc(1, 30001);
	size_t most = 0, total = 0;
	struct raw r;

	memset(line, 1, 30000); /* six bytes each, as JSON */
	follow(&r, "", "", 4096);
	raw_wait_for(&r, fx.base, "command_started");
	for (unsigned int i = 0; i < PRINTS; i++) {
		worker_print(&fx.worker, line, 30000);
		(void)event_base_loop(fx.base, EVLOOP_NONBLOCK);
		most = larger(most, waiting());
	}
	/* Until the sockets take no more. */
	raw_wait_until(fx.base, (most = larger(most, waiting())) > 4096);
	for (unsigned int i = 0; i < 20; i++) {
		raw_turn(fx.base);
		most = larger(most, waiting());
	}
	assert_in_range(most, 1, 3 * HTTP_STREAM_HIGH / 2);
	end_run();
	raw_wait_until(fx.base, read_on(&r, &total));
	assert_true(total >= 6 * PRINTS * 30000);
	raw_close(&r);
	free(line);
}

TEST(draining_ends_streams_cleanly)
{
	struct raw r;

	follow(&r, "", "", 0);
	raw_wait_for(&r, fx.base, "command_started");
	front_drain(fx.front, fixture_idle_cb, NULL);
	raw_wait_end(&r, fx.base);
	assert_true(raw_has(&r, "0\r\n\r\n"));
	assert_false(r.reset);
	raw_close(&r);
	raw_close(&fx.c);
	raw_wait_until(fx.base, front_is_quiet(fx.front));
	raw_open(&fx.c, fx.port, 0);
}

TEST_MAIN(setup_run, teardown_run)
