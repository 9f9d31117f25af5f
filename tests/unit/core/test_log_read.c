/* link: -Wl,--wrap=fd_pread_all */
#include "tests/unit/core/logs_ground.h"
#include "tests/unit/test.h"

/* ---- records in parts */

struct part_answer {
	unsigned int calls;
	int rc;
	struct log_at at;
	struct buf output;
};

static void
part_cb(int rc, const struct log_records *got, const struct err *why, void *arg)
{
	struct part_answer *a = arg;
	struct runlog_header h;

	(void)why;
	a->calls++;
	a->rc = rc;
	for (size_t at = 0; rc == 0 && at < got->n;) {
		assert_int_equal(runlog_parse_header(got->p + at, &h, NULL), 0);
		at += RUNLOG_HEADER_BYTES;
		if (runlog_is_output(h.type))
			assert_int_equal(
			    buf_append(&a->output, got->p + at, h.length), 0);
		at += h.length;
	}
	if (rc == 0)
		a->at = (struct log_at){got->next, got->skip};
}

static void
read_part(struct log_view *v, struct part_answer *a, size_t max)
{
	const struct log_at from = a->at;

	a->calls = 0;
	log_view_read(v, &from, UINT64_MAX, max, part_cb, a, NULL);
	while (a->calls == 0)
		assert_int_equal(event_base_loop(g.base, EVLOOP_ONCE), 0);
}

TEST(parts_of_records_make_up_the_output)
{
	static const size_t sizes[] = {800, 1016, 5000, 200000};
	struct log_view *v;

	make_log(1, 1000);
	v = open_view();
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct part_answer a = {0};

		while (a.at.offset < buf_len(&g.log.b)) {
			size_t before = buf_len(&a.output);

			read_part(v, &a, sizes[i]);
			assert_int_equal(a.rc, 0);
			assert_true(buf_len(&a.output) <= before + sizes[i]);
		}
		assert_int_equal(a.at.skip, 0);
		assert_pattern(
		    &a.output, 0, (size_t)g.log.bytes[0], RUNLOG_STDOUT);
		buf_clear(&a.output);
	}
}

TEST(a_place_that_is_none_is_refused)
{
	static const struct log_at places[] = {
	    {0, 1}, {1, 0}, {2 * RUNLOG_HEADER_BYTES, 50}};
	struct log_view *v;

	begin_log(&g.log);
	put_started(&g.log, 0);
	put_output(&g.log, RUNLOG_STDOUT, 50);
	v = open_view();
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct part_answer a = {.at = places[i]};

		read_part(v, &a, 1000);
		assert_int_equal(a.rc, ERR_PROTO);
	}
}

TEST_MAIN(ground_set_up, ground_tear_down)
