#include "common/conf.h"
#include "tests/unit/test.h"

static const char *const keys[] = {"SANDBOX_NETWORK_MODE", "SANDBOX_RUNTIME",
    "SANDBOX_RUNTIMES_ALLOWED", "SANDBOX_OUTPUT_MB_S", "SANDBOX_OUTPUT",
    "WORKERS", "MAX_QUEUED_BYTES", "MAX_RUNS"};

static const char *
key_at(size_t i)
{
	return keys[i];
}

/* want NULL: none is near */
static void
expect(const char *name, const char *want)
{
	const char *got = conf_nearest(name, key_at, ARRAY_LEN(keys));

	if (want == NULL && got != NULL)
		fail_msg("%s is near to %s", name, got);
	if (want != NULL && (got == NULL || strcmp(got, want) != 0))
		fail_msg("%s: want %s, got %s", name, want, got ? got : "none");
}

TEST(a_slip_of_two_characters_is_near)
{
	expect("WORKER", "WORKERS");
	expect("MAX_RUMS", "MAX_RUNS");
	expect("SANDBOX_NETWRK_MOD", "SANDBOX_NETWORK_MODE");
	expect("WORKING_SET", NULL);
}

TEST(a_key_cut_short_is_near_to_the_whole_one)
{
	expect("SANDBOX_NETWORK", "SANDBOX_NETWORK_MODE");
	expect("SANDBOX_NETW", "SANDBOX_NETWORK_MODE");
	expect("MAX_QUEUED", "MAX_QUEUED_BYTES");
	expect("SANDBOX_RUNTIMES", "SANDBOX_RUNTIME"); /* a slip comes first */
	expect("SANDBOX_RUNTIMES_A", "SANDBOX_RUNTIMES_ALLOWED");
	expect("SANDBOX_OUT", "SANDBOX_OUTPUT"); /* the least cut */
}

/* Others have variables that begin with the same word. */
TEST(one_word_is_no_key_cut_short)
{
	expect("SANDBOX", NULL);
	expect("SANDBOX_", NULL);
	expect("NETWORK_MODE", NULL);
	expect("SANDBOX_NETWORK_MODE", NULL);
	expect("SANDBOX_NETWORK_POLICY", NULL);
}

TEST_MAIN(NULL, NULL)
