#include "tests/unit/store/fixture.h"

#include "supervisor/core/event_feed.h"
#include "supervisor/store/store_int.h"

/*
 * Readers of a tenant's events: each is told all, once and in order, from the
 * past into what is committed, at its own pace.
 */

struct reading {
	struct event_feeds *feeds;
	struct event_reader *r;
	unsigned int pages;
	uint64_t seqs[4096];
	unsigned int n;
	struct event_gap gap;
	size_t take;   /* of a page, at most; 0: all */
	bool is_eager; /* asks for the next page at once */
	bool is_placed;
	unsigned int failed;
};

static size_t
on_page(struct event_reader *r, const struct event_page *page, void *arg)
{
	struct reading *g = arg;
	size_t n = g->take != 0 && page->n > g->take ? g->take : page->n;

	g->pages++;
	if (page->gap.from != 0)
		g->gap = page->gap;
	for (size_t i = 0; i < n; i++)
		g->seqs[g->n++] = page->rows[i]->seq;
	if (g->is_eager)
		event_reader_next(r);
	return n;
}

static void
on_place(struct event_reader *r, void *arg)
{
	(void)r;
	((struct reading *)arg)->is_placed = true;
}

static void
on_failed(struct event_reader *r, const struct err *why, void *arg)
{
	struct reading *g = arg;

	(void)r;
	if (g->failed++ > 0)
		fail_msg("%s", why->msg);
}

static const struct event_reader_ops ops = {on_page, on_place, on_failed};

static void
open_reader(struct reading *g, struct event_feeds *feeds, uint64_t after,
    const struct store_events_filter *filter)
{
	const struct event_place at = {.seq = after};

	*g = (struct reading){.feeds = feeds, .is_eager = true};
	g->r = event_reader_open(feeds, 1, &at, filter, &ops, g);
}

static void
happen(struct fixture *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		store_event_tell(f->store,
		    &(struct store_news){.tenant = 1,
			.kind =
			    i % 2 == 0 ? EVENT_QUOTA_REFUSED : EVENT_DISK_FREE,
			.quota = "streams",
			.times = 1});
}

static void
assert_all(const struct reading *g, uint64_t from, unsigned int n)
{
	assert_int_equal(g->n, n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(g->seqs[i], from + i);
}

TEST(the_past_goes_over_into_what_is_committed)
{
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	struct reading g;

	happen(f, 300);
	open_reader(&g, feeds, 0, NULL);
	event_reader_next(g.r);
	fixture_wait(f, &g.n, 300);
	happen(f, 200);
	fixture_wait(f, &g.n, 500);
	assert_all(&g, 1, 500);
	event_reader_close(g.r);
	event_feeds_free(feeds);
}

TEST(one_that_takes_little_is_told_the_rest_again)
{
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	struct reading slow, quick;

	open_reader(&slow, feeds, 0, NULL);
	open_reader(&quick, feeds, 0, NULL);
	slow.take = 7;
	event_reader_next(slow.r);
	event_reader_next(quick.r);
	happen(f, 500);
	fixture_wait(f, &quick.n, 500);
	fixture_wait(f, &slow.n, 500);
	assert_all(&slow, 1, 500);
	assert_all(&quick, 1, 500);
	event_reader_close(slow.r);
	event_reader_close(quick.r);
	event_feeds_free(feeds);
}

TEST(one_that_does_not_ask_is_not_told)
{
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	struct reading idle, other;

	open_reader(&idle, feeds, 0, NULL);
	open_reader(&other, feeds, 0, NULL);
	idle.is_eager = false;
	event_reader_next(other.r);
	happen(f, 10);
	fixture_wait(f, &other.n, 10);
	assert_int_equal(idle.pages, 0);
	event_reader_next(idle.r);
	fixture_wait(f, &idle.n, 10);
	happen(f, 10);
	fixture_wait(f, &other.n, 20);
	assert_int_equal(idle.pages, 1);
	event_reader_close(idle.r);
	event_reader_close(other.r);
	event_feeds_free(feeds);
}

#define CROWD 200

/* What came while nobody could read is not passed over by those behind. */
TEST(a_read_that_failed_leaves_no_hole)
{
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	struct reading slow, quick;

	open_reader(&slow, feeds, 0, NULL);
	open_reader(&quick, feeds, 0, NULL);
	event_reader_next(quick.r);
	happen(f, 1);
	fixture_wait(f, &quick.n, 1);
	happen(f, 9); /* the feed's rows */
	fixture_wait(f, &quick.n, 10);
	slow.is_eager = false;
	slow.take = 8;
	event_reader_next(slow.r);
	fixture_wait(f, &slow.n, 8);
	fixture_exec(f, "ALTER TABLE event RENAME TO away");
	f->store->on_events(1, f->store->on_events_arg);
	fixture_wait(f, &quick.failed, 1);
	fixture_exec(f,
	    "ALTER TABLE away RENAME TO event;"
	    "INSERT INTO event SELECT tenant, seq + 2, at_ms, kind, identifier,"
	    " run, data FROM event WHERE seq > 8");
	event_reader_next(quick.r);
	fixture_wait(f, &quick.n, 12);
	happen(f, 1);
	fixture_wait(f, &quick.n, 13);
	slow.take = 0;
	event_reader_next(slow.r);
	fixture_wait(f, &slow.pages, 2);
	assert_all(&slow, 1, slow.n);
	assert_all(&quick, 1, 13);
	event_reader_close(slow.r);
	event_reader_close(quick.r);
	event_feeds_free(feeds);
}

TEST(a_crowd_at_the_newest_hears_all_from_there_on)
{
	static struct reading crowd[CROWD];
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	const struct store_events_filter filter = {
	    .kinds = UINT64_C(1) << EVENT_DISK_FREE};

	happen(f, 2);
	event_feeds_free(feeds);
	fixture_reopen(f);
	feeds = event_feeds_new(f->base, f->store);
	for (size_t i = 0; i < CROWD; i++) {
		open_reader(&crowd[i], feeds, EVENT_PLACE_NOW,
		    i % 2 == 0 ? NULL : &filter);
		event_reader_next(crowd[i].r);
	}
	while (!crowd[CROWD - 1].is_placed)
		assert_int_equal(event_base_loop(f->base, EVLOOP_ONCE), 0);
	happen(f, 100);
	for (size_t i = 0; i < CROWD; i++)
		fixture_wait(f, &crowd[i].n, i % 2 == 0 ? 100 : 50);
	for (size_t i = 0; i < CROWD; i++) {
		assert_int_equal(crowd[i].seqs[0], i % 2 == 0 ? 3 : 4);
		assert_int_equal(event_reader_at(crowd[i].r).seq, 102);
		event_reader_close(crowd[i].r);
	}
	event_feeds_free(feeds);
}

TEST(what_was_trimmed_is_told_as_a_gap)
{
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	struct reading g;

	happen(f, 50);
	event_feeds_free(feeds);
	fixture_reopen(f);
	fixture_exec(f, "DELETE FROM event WHERE seq <= 20");
	feeds = event_feeds_new(f->base, f->store);
	open_reader(&g, feeds, 5, NULL);
	event_reader_next(g.r);
	fixture_wait(f, &g.n, 30);
	assert_int_equal(g.gap.from, 6);
	assert_int_equal(g.gap.to, 20);
	assert_false(g.gap.is_restored);
	assert_all(&g, 21, 30);
	event_reader_close(g.r);
	event_feeds_free(feeds);
}

TEST(a_place_of_another_copy_is_told)
{
	struct event_feeds *feeds = event_feeds_new(f->base, f->store);
	struct reading ahead, other;
	const struct event_place at = {.seq = 3, .at_ms = 1};

	happen(f, 10);
	event_feeds_free(feeds);
	fixture_reopen(f);
	feeds = event_feeds_new(f->base, f->store);
	open_reader(&ahead, feeds, 99, NULL);
	event_reader_next(ahead.r);
	fixture_wait(f, &ahead.pages, 1);
	assert_true(ahead.gap.is_restored);
	assert_int_equal(ahead.gap.from, 11);
	assert_int_equal(ahead.gap.to, 99);
	other = (struct reading){.feeds = feeds, .is_eager = true};
	other.r = event_reader_open(feeds, 1, &at, NULL, &ops, &other);
	event_reader_next(other.r);
	fixture_wait(f, &other.n, 10);
	assert_true(other.gap.is_restored);
	assert_all(&other, 1, 10);
	happen(f, 1);
	fixture_wait(f, &ahead.n, 1);
	assert_int_equal(ahead.seqs[0], 11);
	event_reader_close(ahead.r);
	event_reader_close(other.r);
	event_feeds_free(feeds);
}

TEST_MAIN(fixture_setup, fixture_teardown)
