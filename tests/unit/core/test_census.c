/* test_census.c - a database that is new, and what workers find of its instance
 * on the engine: also when several were asked and answer at once */
#include "tests/unit/core/core_ground.h"

#include "supervisor/core/census.h"

struct refusal {
	unsigned int n;
	char why[800];
};

static void
refuse_cb(const char *why, void *arg)
{
	struct refusal *r = arg;

	r->n++;
	(void)snprintf(r->why, sizeof(r->why), "%s", why);
}

/* Of another instance than the one that the ground's database is of. */
static struct census *
begin(struct refusal *r)
{
	const struct census_parts parts = {.conf = g.conf,
	    .store = g.store,
	    .sandboxes = core_sandboxes(g.core),
	    .tenants = core_tenants(g.core),
	    .instance = "another",
	    .refuse = refuse_cb,
	    .arg = r};
	struct census *c = census_new(&parts);
	struct err e;

	assert_int_equal(census_open(c, &e), 0);
	assert_false(census_is_settled(c));
	return c;
}

static void
find(struct census *c, uint8_t which)
{
	census_on_found(c,
	    &(struct msg_sweep_found){.uuid = {{which}},
		.name = "mcp-sbx-keep",
		.tenant = "default",
		.identifier = "keep",
		.container_id = "c",
		.image = "image",
		.running = true});
}

static bool
sweep(struct census *c, bool is_known)
{
	return census_on_swept(c, &(struct msg_swept){.is_known = is_known});
}

/* Both were asked, and one twice. */
TEST(what_two_workers_find_is_counted_once)
{
	struct refusal r = {0};
	struct census *c = begin(&r);

	find(c, 1);
	find(c, 1);
	find(c, 2);
	find(c, 1);
	assert_true(sweep(c, true));
	assert_int_equal(r.n, 1);
	assert_non_null(strstr(r.why, " 2 sandboxes of this instance"));
	assert_true(sweep(c, true));
	assert_int_equal(r.n, 1);
	assert_false(census_is_settled(c));
	census_free(c);
}

/* Else the other's end would make the database the instance's, beside a sandbox
 * that it does not know, and the next sweep would stop that. */
TEST(who_could_not_look_takes_nothing_from_who_could)
{
	struct refusal r = {0};
	struct census *c = begin(&r);

	find(c, 1);
	assert_false(sweep(c, false));
	assert_int_equal(r.n, 0);
	assert_true(sweep(c, true));
	assert_int_equal(r.n, 1);
	assert_non_null(strstr(r.why, " 1 sandboxes of this instance"));
	assert_false(census_is_settled(c));
	census_free(c);
}

TEST(a_database_beside_nothing_is_the_instances)
{
	struct refusal r = {0};
	struct census *c = begin(&r);

	assert_false(sweep(c, false));
	assert_false(census_is_settled(c));
	assert_true(sweep(c, true));
	assert_true(census_is_settled(c));
	assert_int_equal(r.n, 0);
	census_free(c);
}

TEST_MAIN(ground_set_up, ground_tear_down)
