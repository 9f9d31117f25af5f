#include "tests/unit/store/fixture.h"

#include "common/log.h"
#include "supervisor/core/acts.h"

/* What becomes of acts: rows, and of refusals few rows. */

struct listed {
	unsigned int calls;
	size_t n;
	struct {
		uint32_t times;
		char what[32], origin[64], detail[256];
	} rows[256];
};

static void
listed_cb(int rc, const struct store_audit_page *page, const struct err *why,
    void *arg)
{
	struct listed *l = arg;

	(void)why;
	assert_int_equal(rc, 0);
	assert_in_range(page->n, 0, ARRAY_LEN(l->rows));
	l->calls++;
	l->n = page->n;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_audit *r = &page->rows[i];

		l->rows[i].times = r->times;
		(void)snprintf(l->rows[i].what, 32, "%s", r->what);
		(void)snprintf(l->rows[i].origin, 64, "%s", r->origin);
		(void)snprintf(l->rows[i].detail, 256, "%s", r->detail);
	}
}

static struct listed
list(struct fixture *f)
{
	struct listed l = {0};

	store_audit_list(f->store, &(struct store_audit_filter){.limit = 256},
	    listed_cb, &l);
	fixture_wait(f, &l.calls, 1);
	return l;
}

static struct bus bus;

static struct acts *
begin(struct fixture *f)
{
	log_set_level(LOG_ERROR);
	bus_init(&bus);
	return acts_new(f->base, NULL, f->store, &bus);
}

/* Behind all that was told before. */
static void
settle(struct fixture *f, struct acts *t)
{
	struct result done = {0};

	acts_tell(t, &(struct act){.what = "last"}, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	assert_int_equal(done.rc, 0);
}

static void
refuse(struct acts *t, const char *origin, const char *why)
{
	acts_refused(t,
	    &(struct act){
		.what = "auth.failure", .origin = origin, .detail = why});
}

TEST(a_flood_of_an_address_is_two_rows)
{
	struct acts *t = begin(f);
	struct listed l;

	for (int i = 0; i < 1000; i++)
		refuse(t, "192.0.2.1", "no token");
	settle(f, t);
	l = list(f);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.rows[1].times, 1);
	acts_flush(t);
	settle(f, t);
	l = list(f);
	assert_int_equal(l.n, 4);
	assert_int_equal(l.rows[1].times, 999);
	assert_string_equal(l.rows[1].origin, "192.0.2.1");
	assert_string_equal(l.rows[1].detail, "no token");
	/* A new minute tells its first at once. */
	refuse(t, "192.0.2.1", "no token");
	settle(f, t);
	l = list(f);
	assert_int_equal(l.n, 6);
	assert_int_equal(l.rows[1].times, 1);
	acts_free(t);
}

TEST(a_flood_of_many_addresses_is_bounded)
{
	struct acts *t = begin(f);
	struct listed l;

	for (int i = 0; i < 1000; i++) {
		char origin[64];

		(void)snprintf(origin, sizeof(origin), "192.0.2.%d", i);
		refuse(t, origin, "no token");
	}
	acts_flush(t);
	settle(f, t);
	l = list(f);
	assert_int_equal(l.n, ACTS_REFUSALS_MAX + 2);
	assert_string_equal(l.rows[1].origin, "*");
	assert_int_equal(l.rows[1].times, 1000 - ACTS_REFUSALS_MAX);
	acts_free(t);
}

TEST(refusals_of_a_quota_are_one_row_a_minute)
{
	static const char *const tenants[] = {"acme", "apex"};
	struct acts *t = begin(f);
	struct listed l;

	/* Strangers do not take their places. */
	for (int i = 0; i < 100; i++) {
		char origin[64];

		(void)snprintf(origin, sizeof(origin), "192.0.2.%d", i);
		refuse(t, origin, "no token");
	}
	acts_flush(t);
	settle(f, t);
	l = list(f);
	for (int i = 0; i < 1000; i++)
		acts_count(t,
		    &(struct act){.what = "quota.refusal",
			.tenant = tenants[i % 2],
			.subject = i < 500 ? "streams" : "sandboxes"});
	settle(f, t);
	assert_int_equal(list(f).n, l.n + 1);
	acts_flush(t);
	settle(f, t);
	assert_int_equal(list(f).n, l.n + 1 + 4 + 1);
	l = list(f);
	for (size_t i = 1; i <= 4; i++) {
		assert_string_equal(l.rows[i].what, "quota.refusal");
		assert_int_equal(l.rows[i].times, 250);
	}
	acts_free(t);
}

TEST(a_long_text_is_cut)
{
	struct acts *t = begin(f);
	char text[1000];
	struct listed l;

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	acts_note(t, &(struct act){.what = "x", .detail = text});
	settle(f, t);
	l = list(f);
	assert_int_equal(l.n, 2);
	assert_int_equal(strlen(l.rows[1].detail), ACTS_TEXT_MAX);
	acts_free(t);
}

TEST_MAIN(fixture_setup, fixture_teardown)
