#include "tests/unit/store/fixture.h"

#define SEEN_MAX 64

/* What the last list had. */
struct seen {
	unsigned int calls;
	int rc;
	size_t n;
	bool has_more;
	struct uuid next;
	struct uuid ids[SEEN_MAX];
};

static void
seen_cb(int rc, const struct store_sandbox_list *list, const struct err *why,
    void *arg)
{
	struct seen *s = arg;

	assert_true((rc == 0) == (why == NULL));
	s->calls++;
	s->rc = rc;
	if (rc != 0)
		return;
	s->n = list->n;
	s->has_more = list->has_more;
	s->next = list->next;
	assert_in_range(list->n, 0, SEEN_MAX);
	for (size_t i = 0; i < list->n; i++)
		s->ids[i] = list->rows[i].uuid;
}

static struct seen
list(struct fixture *f, uint64_t tenant, const struct store_sandbox_filter *of)
{
	struct seen s = {0};

	store_sandbox_list(
	    f->store, (struct tenant_id){tenant}, of, seen_cb, &s);
	fixture_wait(f, &s.calls, 1);
	return s;
}

/* Sandbox id, made at 1000 + id; the odd ones are removed, and called "old",
 * the others are ready. */
static struct uuid
add_sandbox(struct fixture *f, uint64_t id)
{
	struct result result = {0};
	struct store_sandbox s;
	char identifier[24];
	struct uuid uuid;

	(void)snprintf(
	    identifier, sizeof(identifier), "box-%llu", (unsigned long long)id);
	fixture_sandbox(&s, id, id % 2 == 1 ? "old" : identifier);
	s.created_ms = (int64_t)(1000 + id);
	s.state = id % 2 == 1 ? SANDBOX_IS_REMOVED : SANDBOX_IS_READY;
	uuid = s.uuid;
	fixture_put_row(f, &s, &result);
	assert_int_equal(result.rc, 0);
	return uuid;
}

static void
fill(struct fixture *f, struct uuid *ids, uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++)
		ids[i] = add_sandbox(f, i);
}

/* All pages of a question, as one. */
static struct seen
list_all(struct fixture *f, struct store_sandbox_filter of)
{
	struct seen all = {0}, s;
	struct uuid after;

	do {
		s = list(f, STORE_TENANT_DEFAULT, &of);
		assert_int_equal(s.rc, 0);
		assert_in_range(s.n, 0, of.limit);
		for (size_t i = 0; i < s.n; i++)
			all.ids[all.n++] = s.ids[i];
		after = s.next;
		of.after = &after;
		assert_in_range(++all.calls, 1, SEEN_MAX);
	} while (s.has_more);
	return all;
}

TEST(pages_are_newest_first_and_leave_nothing_out)
{
	struct uuid ids[12];

	fill(f, ids, 11);
	for (size_t limit = 1; limit <= 12; limit++) {
		struct seen s =
		    list_all(f, (struct store_sandbox_filter){.limit = limit});

		assert_int_equal(s.n, 11);
		assert_int_equal(s.calls, (11 + limit - 1) / limit);
		for (size_t i = 0; i < s.n; i++)
			assert_memory_equal(
			    &s.ids[i], &ids[11 - i], sizeof(ids[0]));
	}
}

TEST(a_filter_gives_what_it_says)
{
	static const struct {
		struct store_sandbox_filter filter;
		size_t first, last, step; /* ids, from the newest down */
	} cases[] = {
	    {{.states = 1u << SANDBOX_IS_READY}, 10, 2, 2},
	    {{.states = 1u << SANDBOX_IS_REMOVED}, 11, 1, 2},
	    {{.identifier = "old"}, 11, 1, 2},
	    {{.identifier = "box-4"}, 4, 4, 1},
	    {{.since_ms = 1009}, 11, 9, 1},
	    {{.until_ms = 1003}, 2, 1, 1},
	    {{.since_ms = 1004, .until_ms = 1007}, 6, 4, 1},
	    {{.identifier = "old", .since_ms = 1008}, 11, 9, 2},
	};
	struct uuid ids[12];

	fill(f, ids, 11);
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		struct store_sandbox_filter of = cases[c].filter;
		size_t id = cases[c].first;
		struct seen s;

		of.limit = 2;
		s = list_all(f, of);
		assert_int_equal(
		    s.n, (cases[c].first - cases[c].last) / cases[c].step + 1);
		for (size_t i = 0; i < s.n; i++, id -= cases[c].step)
			assert_memory_equal(
			    &s.ids[i], &ids[id], sizeof(ids[0]));
	}
	assert_int_equal(
	    list_all(f,
		(struct store_sandbox_filter){.identifier = "none", .limit = 5})
		.n,
	    0);
}

TEST(another_tenant_sees_neither_sandboxes_nor_cursors)
{
	struct uuid ids[4], unknown;
	struct seen s;

	fill(f, ids, 3);
	s = list(f, 77, &(struct store_sandbox_filter){.limit = 50});
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.n, 0);
	s = list(f, 77,
	    &(struct store_sandbox_filter){.after = &ids[2], .limit = 50});
	assert_int_equal(s.rc, ERR_INVAL);
	uuid_random(&unknown);
	s = list(f, STORE_TENANT_DEFAULT,
	    &(struct store_sandbox_filter){.after = &unknown, .limit = 50});
	assert_int_equal(s.rc, ERR_INVAL);
}

TEST(what_the_store_does_not_outlive_is_not_told)
{
	static struct seen s;

	store_sandbox_list(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    &(struct store_sandbox_filter){.identifier = "a", .limit = 1},
	    seen_cb, &s);
}

TEST_MAIN(fixture_setup, fixture_teardown)
