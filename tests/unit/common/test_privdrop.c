/* Changing users needs root: without it these tests fail, they do not skip. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>

#include "common/privdrop.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

static const struct privdrop_user someone = {.name = "someone",
    .uid = 54321,
    .gid = 54322,
    .groups = {54323, 54324},
    .ngroups = 2};

TEST(a_user_of_the_system_is_found)
{
	struct privdrop_user u;
	struct err e;

	assert_int_equal(privdrop_lookup("nobody", &u, &e), 0);
	assert_string_equal(u.name, "nobody");
	assert_true(u.uid != 0 && u.gid != 0);
	assert_int_equal(u.ngroups, 0);
}

TEST(a_missing_user_is_named)
{
	struct privdrop_user u = {.uid = 7};
	struct err e;

	assert_int_equal(
	    privdrop_lookup("no-such-user-here", &u, &e), ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, "no-such-user-here"));
	assert_int_equal(u.uid, 7);
}

TEST(root_is_no_user_to_drop_to)
{
	struct privdrop_user u;
	struct err e;

	assert_int_equal(privdrop_lookup("root", &u, &e), ERR_INVAL);
}

TEST(impossible_names_are_refused)
{
	char name[PRIVDROP_NAME_MAX + 2];
	struct privdrop_user u;
	struct err e;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(privdrop_lookup(name, &u, &e), ERR_INVAL);
	assert_int_equal(privdrop_lookup("", &u, &e), ERR_INVAL);
}

TEST(a_group_is_added_once)
{
	struct privdrop_user u = {.gid = 5};
	struct err e;

	assert_int_equal(privdrop_add_group(&u, 5, &e), 0);
	assert_int_equal(u.ngroups, 0);
	assert_int_equal(privdrop_add_group(&u, 6, &e), 0);
	assert_int_equal(privdrop_add_group(&u, 6, &e), 0);
	assert_int_equal(u.ngroups, 1);
}

TEST(a_full_table_of_groups_is_an_error)
{
	struct privdrop_user u = {.gid = 1};
	struct err e;

	for (gid_t g = 100; g < 100 + PRIVDROP_GROUPS_MAX; g++)
		assert_int_equal(privdrop_add_group(&u, g, &e), 0);
	assert_int_equal(privdrop_add_group(&u, 99, &e), ERR_LIMIT);
	assert_int_equal(u.ngroups, PRIVDROP_GROUPS_MAX);
}

static void
drop_and_look(void)
{
	uid_t r, eff, s;
	gid_t groups[8];
	struct err e;

	NEED(privdrop_apply(&someone, &e) == 0);
	NEED(getresuid(&r, &eff, &s) == 0);
	NEED(r == 54321 && eff == 54321 && s == 54321);
	NEED(getegid() == 54322);
	NEED(getgroups(8, groups) == 2);
	NEED(groups[0] == 54323 && groups[1] == 54324);
}

TEST(ids_and_groups_are_the_new_ones)
{
	assert_int_equal(forked_status(drop_and_look), 0);
}

static void
drop_and_try_to_return(void)
{
	struct err e;
	gid_t root = 0;

	NEED(privdrop_apply(&someone, &e) == 0);
	NEED(setuid(0) == -1 && errno == EPERM);
	NEED(setreuid(0, 0) == -1 && errno == EPERM);
	NEED(setgid(0) == -1 && errno == EPERM);
	NEED(setgroups(1, &root) == -1 && errno == EPERM);
	NEED(open("/etc/shadow", O_RDONLY) == -1 && errno == EACCES);
}

TEST(there_is_no_way_back_to_root)
{
	assert_int_equal(forked_status(drop_and_try_to_return), 0);
}

static void
drop_with_kept_capabilities(void)
{
	struct err e;

	NEED(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	NEED(privdrop_apply(&someone, &e) == ERR_SYS);
	NEED(strstr(e.msg, "capabilities") != NULL);
}

TEST(capabilities_that_would_stay_are_an_error)
{
	assert_int_equal(forked_status(drop_with_kept_capabilities), 0);
}

static void
drop_twice(void)
{
	struct privdrop_user other = someone;
	struct err e;

	NEED(privdrop_apply(&someone, &e) == 0);
	other.uid = 54333;
	NEED(privdrop_apply(&other, &e) == ERR_SYS);
	NEED(strstr(e.msg, "someone") != NULL);
}

TEST(an_ordinary_user_cannot_become_another)
{
	assert_int_equal(forked_status(drop_twice), 0);
}

static void
drop_to_root(void)
{
	struct privdrop_user root = {.name = "root"};
	struct err e;

	NEED(privdrop_apply(&root, &e) == ERR_SYS);
}

TEST(dropping_to_uid_0_fails_the_proof)
{
	assert_int_equal(forked_status(drop_to_root), 0);
}

TEST_MAIN(NULL, NULL)
