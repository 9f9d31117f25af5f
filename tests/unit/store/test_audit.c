#include "tests/unit/store/fixture.h"

#include <sys/prctl.h>

#include <openssl/evp.h>

#include "supervisor/store/audit_walk.h"
#include "supervisor/store/db.h"

/*
 * The audit's chain: whatever is changed in its table behind the server's back
 * is found, with the number of the first row that is wrong.
 */

#define ROWS 8

static void
row(struct store_audit *r, const char *what)
{
	static const uint8_t digest[32] = {1, 2, 3};

	*r = (struct store_audit){.at_ms = 1700000000000,
	    .times = 1,
	    .what = (char *)(uintptr_t)what,
	    .actor_tenant = (char *)(uintptr_t) "acme",
	    .actor = (char *)(uintptr_t) "abc",
	    .origin = (char *)(uintptr_t) "192.0.2.1",
	    .request_id = (char *)(uintptr_t) "r1",
	    .tenant = (char *)(uintptr_t) "acme",
	    .subject = (char *)(uintptr_t) "box",
	    .detail = (char *)(uintptr_t) "why",
	    .digest = (uint8_t *)(uintptr_t)digest,
	    .digest_len = sizeof(digest)};
}

static void
put(struct fixture *f, const char *what)
{
	struct result done = {0};
	struct store_audit r;

	row(&r, what);
	store_audit_put(f->store, &r, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	assert_int_equal(done.rc, 0);
}

static void
fill(struct fixture *f)
{
	for (int i = 0; i < ROWS; i++)
		put(f, i % 2 == 0 ? "even" : "odd");
}

struct checked {
	unsigned int calls;
	struct store_audit_check found;
};

static void
checked_cb(int rc, const struct store_audit_check *found, const struct err *why,
    void *arg)
{
	struct checked *c = arg;

	(void)why;
	assert_int_equal(rc, 0);
	c->calls++;
	c->found = *found;
}

static struct store_audit_check
check(struct fixture *f)
{
	struct checked c = {0};
	uint64_t rows = 0;

	do {
		struct store_audit_mark at = c.found.at;
		bool is_first = c.calls == 0;

		c.calls = 0;
		store_audit_check(
		    f->store, is_first ? NULL : &at, NULL, checked_cb, &c);
		fixture_wait(f, &c.calls, 1);
		rows += c.found.rows;
	} while (!c.found.is_over && !c.found.is_bad);
	c.found.rows = rows;
	return c.found;
}

static void
sql(struct fixture *f, const char *text)
{
	AUTO(auto_free) char *path = xasprintf("%s/" DB_FILE, f->dir);
	char *why = NULL;
	sqlite3 *h;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(h, 5000), SQLITE_OK);
	if (sqlite3_exec(h, text, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", text, why);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

static void
assert_good(struct fixture *f, uint64_t rows)
{
	struct store_audit_check found = check(f);

	if (found.is_bad)
		fail_msg("row %llu: %s", (unsigned long long)found.bad_seq,
		    found.what);
	assert_int_equal(found.rows, rows);
}

static void
assert_bad(struct fixture *f, uint64_t seq, const char *what)
{
	struct store_audit_check found = check(f);

	assert_true(found.is_bad);
	assert_int_equal(found.bad_seq, seq);
	assert_non_null(strstr(found.what, what));
}

TEST(a_chain_that_nobody_touched_is_good)
{
	assert_good(f, 0);
	fill(f);
	assert_good(f, ROWS);
	fixture_reopen(f);
	put(f, "later");
	assert_good(f, ROWS + 1);
}

TEST(a_change_of_any_column_is_found)
{
	static const char *const changes[] = {"at_ms = at_ms + 1", "times = 2",
	    "what = 'eve'", "actor_tenant = 'acmf'", "actor = 'abd'",
	    "origin = '192.0.2.2'", "request_id = ''", "tenant = 'acmE'",
	    "subject = 'boy'", "detail = detail || char(0) || 'x'",
	    "detail = 'wh', subject = 'boxy'", "digest = NULL", "digest = x''",
	    "digest = zeroblob(32)", "hash = zeroblob(32)"};

	fill(f);
	sql(f, "CREATE TABLE audit_kept AS SELECT * FROM audit");
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		for (unsigned int seq = 1; seq <= ROWS; seq += ROWS - 4) {
			AUTO(auto_free)
			char *text =
			    xasprintf("UPDATE audit SET %s WHERE seq = %u",
				changes[i], seq);

			sql(f, text);
			assert_bad(f, seq, "not as it was written");
			sql(f,
			    "DELETE FROM audit;"
			    "INSERT INTO audit SELECT * FROM audit_kept");
			assert_good(f, ROWS);
		}
}

/* One byte of a text or blob; false: there is none so far on. */
static bool
flip(struct fixture *f, const char *column, unsigned int seq, int at)
{
	AUTO(auto_free) char *path = xasprintf("%s/" DB_FILE, f->dir);
	bool is_there;
	sqlite3_blob *b;
	sqlite3 *h;
	uint8_t byte;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(h, 5000), SQLITE_OK);
	assert_int_equal(
	    sqlite3_blob_open(h, "main", "audit", column, seq, 1, &b),
	    SQLITE_OK);
	is_there = at < sqlite3_blob_bytes(b);
	if (is_there) {
		assert_int_equal(sqlite3_blob_read(b, &byte, 1, at), SQLITE_OK);
		byte ^= 1;
		assert_int_equal(
		    sqlite3_blob_write(b, &byte, 1, at), SQLITE_OK);
	}
	assert_int_equal(sqlite3_blob_close(b), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	return is_there;
}

TEST(each_flipped_byte_is_found)
{
	static const char *const columns[] = {"what", "actor_tenant", "actor",
	    "origin", "request_id", "tenant", "subject", "detail", "digest",
	    "hash"};
	int flipped = 0;

	fill(f);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		for (int at = 0; flip(f, columns[i], 5, at); at++) {
			assert_bad(f, 5, "not as it was written");
			assert_true(flip(f, columns[i], 5, at));
			flipped++;
		}
	assert_true(flipped > 64 + 20);
	assert_good(f, ROWS);
}

TEST(rows_that_are_taken_away_are_missed)
{
	fill(f);
	sql(f,
	    "CREATE TABLE audit_kept AS SELECT * FROM audit;"
	    "DELETE FROM audit WHERE seq = 4");
	assert_bad(f, 4, "missing");
	sql(f,
	    "INSERT INTO audit SELECT * FROM audit_kept WHERE seq = 4;"
	    "DELETE FROM audit WHERE seq > 6");
	assert_bad(f, 7, "missing");
	sql(f, "DELETE FROM audit WHERE seq = 1");
	assert_bad(f, 1, "missing");
	sql(f, "DELETE FROM audit");
	assert_bad(f, 1, "missing");
}

TEST(rows_that_change_places_are_found)
{
	fill(f);
	sql(f,
	    "UPDATE audit SET seq = 100 WHERE seq = 3;"
	    "UPDATE audit SET seq = 3 WHERE seq = 6;"
	    "UPDATE audit SET seq = 6 WHERE seq = 100");
	assert_bad(f, 3, "not as it was written");
}

#define COPY                                                                   \
	", at_ms, times, what, actor_tenant, actor, origin, request_id,"       \
	" tenant, subject, detail, digest, hash FROM audit WHERE seq = "

TEST(a_row_that_is_put_in_is_found)
{
	fill(f);
	sql(f, "INSERT INTO audit SELECT 9" COPY "8");
	assert_bad(f, 9, "behind the newest");
	sql(f, "DELETE FROM audit WHERE seq = 9");
	sql(f, "INSERT INTO audit SELECT -3" COPY "8");
	assert_bad(f, (uint64_t)-3, "trimmed");
	sql(f, "DELETE FROM audit WHERE seq < 0");
	sql(f,
	    "UPDATE audit SET seq = -seq - 1 WHERE seq > 4;"
	    "UPDATE audit SET seq = -seq WHERE seq < 0;"
	    "INSERT INTO audit SELECT 5" COPY "2");
	assert_bad(f, 5, "not as it was written");
}

TEST(ends_that_are_changed_are_found)
{
	fill(f);
	sql(f, "UPDATE tenant SET audit_head_seq = 7");
	assert_bad(f, 8, "behind the newest");
	sql(f, "UPDATE tenant SET audit_head_seq = 9");
	assert_bad(f, 9, "missing");
	sql(f,
	    "UPDATE tenant SET audit_head_seq = 8,"
	    " audit_head_hash = zeroblob(32)");
	assert_bad(f, 8, "written last");
	sql(f, "UPDATE tenant SET audit_base_hash = randomblob(32)");
	assert_bad(f, 1, "not as it was written");
	sql(f, "UPDATE tenant SET audit_base_seq = 2");
	assert_bad(f, 1, "trimmed");
	sql(f, "UPDATE tenant SET audit_head_seq = NULL");
	assert_bad(f, 0, "where it ends");
}

/* Where it ended when the server wrote last is not where it ends. */
TEST(the_chain_goes_on_behind_what_others_wrote)
{
	fill(f);
	sql(f,
	    "DELETE FROM audit WHERE seq > 4;"
	    "UPDATE tenant SET audit_head_seq = 4,"
	    " audit_head_hash = (SELECT hash FROM audit WHERE seq = 4)");
	fill(f);
	assert_good(f, 4 + ROWS);
}

/* One digest of one text, put together here. */
static void
assert_hash(size_t len)
{
	AUTO(auto_free) uint8_t *text = xcalloc(1, len + 1);
	AUTO(auto_free) uint8_t *all = xcalloc(1, 32 + 24 + 9 * 8 + len);
	struct audit_content c = {.seq = 1, .at_ms = 0x0203, .times = 4};
	uint8_t want[32], hash[32] = {7}, *p = all + 32 + 24;

	memset(text, 'x', len);
	all[0] = 7;
	all[32] = 1;
	all[40] = 3;
	all[41] = 2;
	all[48] = 4;
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++, p += 8)
		if (i == 2) {
			c.texts[i] = (struct span){text, len};
			for (size_t k = 0; k < 8; k++)
				p[k] = (uint8_t)(len >> (8 * k));
			memcpy(p + 8, text, len);
			p += len;
		} else {
			memset(p, 0xff, 8); /* NULL */
		}
	assert_int_equal(
	    EVP_Digest(all, (size_t)(p - all), want, NULL, EVP_sha256(), NULL),
	    1);
	audit_chain_next(hash, &c, hash);
	assert_memory_equal(hash, want, sizeof(want));
}

TEST(the_hash_is_of_all_bytes_however_many)
{
	assert_hash(0);
	assert_hash(1);
	assert_hash(5000);
}

TEST(old_rows_go_and_the_rest_is_still_a_chain)
{
	struct store_audit_check found;
	struct store_audit r;

	store_audit_keep(f->store, 1000);
	row(&r, "many");
	for (int i = 0; i < 6000; i++)
		store_audit_put(f->store, &r, NULL, NULL);
	put(f, "last");
	found = check(f);
	assert_false(found.is_bad);
	assert_int_equal(found.head.seq, 6001);
	assert_true(found.base.seq > 0);
	assert_int_equal(found.rows, found.head.seq - found.base.seq);
	assert_in_range(found.rows, 1000, 1000 + 1024);
}

TEST(a_long_chain_is_checked_in_pieces)
{
	const unsigned int n = STORE_AUDIT_PIECE * 2;
	struct store_audit r;

	row(&r, "many");
	for (unsigned int i = 1; i < n; i++)
		store_audit_put(f->store, &r, NULL, NULL);
	put(f, "last");
	assert_good(f, n);
	sql(f, "UPDATE audit SET times = 2 WHERE seq = 9999");
	assert_bad(f, 9999, "not as it was written");
}

/* ---- the list */

struct listed {
	unsigned int calls;
	size_t n;
	uint64_t seqs[64];
	uint64_t next;
};

static void
listed_cb(int rc, const struct store_audit_page *page, const struct err *why,
    void *arg)
{
	struct listed *l = arg;

	(void)why;
	assert_int_equal(rc, 0);
	assert_in_range(page->n, 0, ARRAY_LEN(l->seqs));
	l->calls++;
	l->n = page->n;
	l->next = page->next;
	for (size_t i = 0; i < page->n; i++)
		l->seqs[i] = page->rows[i].seq;
}

static struct listed
list(struct fixture *f, const struct store_audit_filter *filter)
{
	struct listed l = {0};

	store_audit_list(f->store, filter, listed_cb, &l);
	fixture_wait(f, &l.calls, 1);
	return l;
}

TEST(the_list_has_pages_and_filters)
{
	struct listed l;

	fill(f);
	l = list(f, &(struct store_audit_filter){.limit = 5});
	assert_int_equal(l.n, 5);
	assert_int_equal(l.seqs[0], 8);
	assert_int_equal(l.next, 4);
	l = list(f, &(struct store_audit_filter){.limit = 5, .before = 4});
	assert_int_equal(l.n, 3);
	assert_int_equal(l.seqs[2], 1);
	assert_int_equal(l.next, 0);
	l = list(f, &(struct store_audit_filter){.limit = 50, .what = "odd"});
	assert_int_equal(l.n, 4);
	l = list(f, &(struct store_audit_filter){.limit = 50, .tenant = "x"});
	assert_int_equal(l.n, 0);
	l = list(f,
	    &(struct store_audit_filter){
		.limit = 50, .since_ms = 1700000000001});
	assert_int_equal(l.n, 0);
}

/* ---- a crash */

struct teller {
	struct fixture *f;
	int fd; /* told when the first rows are there; -1: told */
};

static void write_on_cb(int rc, const struct err *why, void *arg);

static void
write_on(struct teller *t)
{
	struct store_audit r;

	row(&r, "crash");
	for (int i = 0; i < 7; i++)
		store_audit_put(t->f->store, &r, NULL, NULL);
	store_audit_put(t->f->store, &r, write_on_cb, t);
}

static void
write_on_cb(int rc, const struct err *why, void *arg)
{
	struct teller *t = arg;

	(void)why;
	if (rc != 0 || (t->fd != -1 && write(t->fd, "x", 1) != 1))
		_exit(3);
	t->fd = -1;
	write_on(t);
}

static void
write_until_killed(struct fixture *f, int ready)
{
	struct teller t = {.f = f, .fd = ready};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	f->base = event_base_new();
	fixture_open(f);
	write_on(&t);
	(void)event_base_dispatch(f->base);
	_exit(3);
}

TEST(a_writer_that_is_killed_leaves_a_good_chain)
{
	struct store_audit_check found = {0};

	for (unsigned int round = 0; round < 4; round++) {
		int ready[2];
		char byte;
		pid_t pid;

		fixture_close(f);
		assert_int_equal(pipe(ready), 0);
		pid = fork();
		if (pid == 0)
			write_until_killed(f, ready[1]);
		assert_true(pid > 0);
		(void)close(ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		(void)close(ready[0]);
		(void)usleep(round * 7000);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		fixture_open(f);
		found = check(f);
		assert_false(found.is_bad);
		assert_int_equal(found.rows, found.head.seq);
		assert_true(found.rows >= 8 * (round + 1));
	}
}

TEST_MAIN(fixture_setup, fixture_teardown)
