#include <unistd.h>

#include "common/xmalloc.h"
#include "supervisor/master/stdio_command.h"
#include "tests/unit/test.h"

static void
expect_dir(const char *want)
{
	AUTO(auto_free) char *have = stdio_command_data_dir();

	assert_string_equal(have, want);
}

TEST(data_of_a_person_is_where_state_is_kept)
{
	assert_int_equal(setenv("XDG_STATE_HOME", "/state", 1), 0);
	expect_dir("/state/mcp-sandboxd/stdio");
	assert_int_equal(setenv("XDG_STATE_HOME", "state", 1), 0);
	assert_int_equal(setenv("HOME", "/home/me", 1), 0);
	expect_dir(geteuid() == 0 ? "/var/lib/mcp-sandboxd/stdio" :
				    "/home/me/.local/state/mcp-sandboxd/stdio");
}

TEST_MAIN(NULL, NULL)
