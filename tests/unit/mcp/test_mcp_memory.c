/* test_mcp_memory.c - what clients leave behind costs nothing */
#include "supervisor/mcp/mcp.h"

#include <malloc.h>

#include "supervisor/mcp/listeners.h"
#include "tests/unit/mcp/ladder.h"

#define SESSIONS 10000
#define SLACK 4096 /* bytes: of the allocator, not of sessions */

/* Bytes of the heap in use; the sanitizers' says 0. */
static size_t
allocated(void)
{
	struct mallinfo2 all = mallinfo2();

	return all.uordblks + all.hblkhd;
}

#define SET_LEVEL                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"logging/setLevel\","       \
	"\"params\":{\"level\":\"debug\"}}"

/* Sessions are begun, asked this, and left without a word. */
static void
begin_and_leave(struct mcp *m, unsigned int n, const char *request)
{
	for (unsigned int i = 0; i < n; i++) {
		char *session = fake_session(m);
		struct fake_client c = fake_client(session);
		struct fake_answer a;

		fake_ask(m, &c, request, 200, 0);
		fake_post(m, &c, NOTIFY, &a);
		assert_int_equal(a.status, 202);
		fake_clear(&a);
		free(session);
	}
}

static void
test_sessions_that_were_left_cost_nothing(void **state)
{
	size_t before;

	begin_and_leave(*state, 10, LIST); /* lists are made once */
	before = allocated();
	begin_and_leave(*state, SESSIONS, LIST);
	assert_true(allocated() <= before + SLACK);
}

/* What they have said is kept for those that were heard of last. */
static void
test_sessions_that_set_a_level_and_were_left_are_bounded(void **state)
{
	size_t before;

	begin_and_leave(*state, 2 * LISTENERS_IDLE_MAX, SET_LEVEL);
	before = allocated();
	begin_and_leave(*state, SESSIONS, SET_LEVEL);
	assert_true(allocated() <= before + SLACK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_sessions_that_were_left_cost_nothing, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_sessions_that_set_a_level_and_were_left_are_bounded, setup,
		teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
