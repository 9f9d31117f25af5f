#include "tests/unit/worker/fixture.h"
#include "tests/unit/world.h"

#include "worker/backend.h"
#include "worker/link/linkdir.h"

static char dir[64], agent[96];
static struct linkdirs *links;

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
open_links(void)
{
	struct err e = {0};
	int rc = linkdirs_open(dir, &links, &e);

	if (rc == 0)
		rc = linkdirs_take_agent(links, agent, &e);
	if (rc != 0)
		print_error("%s\n", e.msg);
	assert_int_equal(rc, 0);
}

static int
setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/worker-links-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(agent, sizeof(agent), "%s/the-agent", dir);
	write_file(agent, "#!agent");
	open_links();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	linkdirs_close(links);
	links = NULL;
	world_remove_dir(dir);
	return 0;
}

static struct stat
stat_of(const char *directory, const char *name)
{
	char path[512];
	struct stat st = {0};

	(void)snprintf(path, sizeof(path), "%s%s", directory, name);
	(void)stat(path, &st);
	return st;
}

TEST(a_sandbox_has_the_agent_and_no_copy_of_it)
{
	struct uuid one = {{1}}, two = {{2}};
	char *first, *second;
	struct stat a, b;
	struct err e;
	int fd;

	fd = linkdirs_make(links, &one, &first, &e);
	assert_true(fd >= 0);
	(void)close(fd);
	fd = linkdirs_make(links, &two, &second, &e);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(first[0], '/');
	a = stat_of(first, "/agent");
	b = stat_of(second, "/agent");
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_mode & 07777, 0755);
	assert_int_equal(a.st_size, 7);
	assert_int_equal(stat_of(first, "").st_mode & 07777, 0711);
	assert_int_not_equal(a.st_ino, stat_of(agent, "").st_ino);
	free(first);
	free(second);
}

TEST(making_it_again_keeps_the_directory_that_is_bound)
{
	struct uuid u = {{1}};
	char *path, *again;
	struct stat before;
	struct err e;
	int fd;

	fd = linkdirs_make(links, &u, &path, &e);
	(void)close(fd);
	before = stat_of(path, "");
	fd = linkdirs_make(links, &u, &again, &e);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(before.st_ino, stat_of(again, "").st_ino);
	free(path);
	free(again);
}

TEST(remove_leaves_nothing_and_may_come_twice)
{
	struct uuid u = {{1}};
	char *path;
	struct err e;
	int fd = linkdirs_make(links, &u, &path, &e);

	(void)close(fd);
	linkdirs_remove(links, &u);
	assert_int_equal(stat_of(path, "").st_ino, 0);
	linkdirs_remove(links, &u);
	free(path);
}

static bool
keep_first(const struct uuid *u, void *arg)
{
	(void)arg;
	return u->b[0] == 1;
}

TEST(sweep_takes_what_is_old_and_not_kept)
{
	struct uuid one = {{1}}, two = {{2}};
	char *first, *second;
	struct err e;

	(void)close(linkdirs_make(links, &one, &first, &e));
	(void)close(linkdirs_make(links, &two, &second, &e));
	assert_int_equal(
	    linkdirs_sweep(links, clock_wall_ms() - 60000, keep_first, NULL),
	    0);
	assert_int_equal(
	    linkdirs_sweep(links, clock_wall_ms() + 60000, keep_first, NULL),
	    1);
	assert_int_not_equal(stat_of(first, "").st_ino, 0);
	assert_int_equal(stat_of(second, "").st_ino, 0);
	free(first);
	free(second);
}

TEST(an_agents_copy_that_nobody_has_goes_with_the_sweep)
{
	struct uuid u = {{1}};
	char *path;
	struct err e;
	uint64_t old;

	(void)close(linkdirs_make(links, &u, &path, &e));
	old = stat_of(path, "/agent").st_ino;
	linkdirs_close(links);
	write_file(agent, "#!new agent");
	open_links();
	(void)linkdirs_sweep(links, clock_wall_ms() + 60000, keep_first, NULL);
	assert_int_equal(stat_of(path, "/agent").st_nlink, 2);
	linkdirs_remove(links, &u);
	(void)linkdirs_sweep(links, clock_wall_ms() + 60000, keep_first, NULL);
	free(path);
	(void)close(linkdirs_make(links, &u, &path, &e));
	assert_int_not_equal(stat_of(path, "/agent").st_ino, old);
	assert_int_equal(stat_of(path, "/agent").st_size, 11);
	free(path);
}

TEST(a_damaged_copy_is_made_anew)
{
	struct uuid u = {{1}};
	char *path, copy[512];
	struct err e;

	(void)close(linkdirs_make(links, &u, &path, &e));
	(void)snprintf(copy, sizeof(copy), "%s/agent", path);
	write_file(copy, "forged!"); /* the same inode, the same size */
	linkdirs_close(links);
	open_links();
	linkdirs_remove(links, &u);
	free(path);
	(void)close(linkdirs_make(links, &u, &path, &e));
	(void)snprintf(copy, sizeof(copy), "%s/agent", path);
	{
		FILE *f = fopen(copy, "re");
		char text[16] = "";

		assert_non_null(f);
		assert_non_null(fgets(text, sizeof(text), f));
		assert_string_equal(text, "#!agent");
		(void)fclose(f);
	}
	free(path);
}

TEST(a_path_that_cannot_be_bound_is_refused)
{
	char odd[96];
	struct linkdirs *l;
	struct err e;

	(void)snprintf(odd, sizeof(odd), "%s/a:b", dir);
	assert_int_equal(mkdir(odd, 0700), 0);
	assert_int_equal(linkdirs_open(odd, &l, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "DATA_DIR"));
	assert_int_equal(linkdirs_open("/nowhere/at/all", &l, &e), ERR_SYS);
}

TEST(one_directory_is_mounted_once_whoever_needs_it)
{
	struct backend_wishes wishes = {.nmounts = 0};
	struct uuid u = {{3}};
	char source[128];
	struct err e;

	assert_int_equal(linkdirs_mount(links, &u, &wishes, &e), 0);
	assert_int_equal(linkdirs_mount(links, &u, &wishes, &e), 0);
	assert_int_equal(wishes.nmounts, 1);
	(void)snprintf(source, sizeof(source),
	    "%s/links/03000000-0000-0000-0000-000000000000", dir);
	assert_string_equal(wishes.mounts[0].source, source);
}

TEST(without_a_delivery_there_is_no_agent_in_it)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_close) int fd = -1;
	struct linkdirs *l;
	struct uuid u = {{4}};
	struct err e;

	assert_int_equal(linkdirs_open(dir, &l, &e), 0);
	fd = linkdirs_make(l, &u, &path, &e);
	assert_true(fd >= 0);
	assert_int_equal(faccessat(fd, "agent", F_OK, 0), -1);
	linkdirs_close(l);
}

/* ---- what a front that fell may have planted */

static int
try_make(struct err *e)
{
	struct uuid u = {{1}};
	char *path = NULL;
	int fd = linkdirs_make(links, &u, &path, e);

	if (fd >= 0)
		(void)close(fd);
	free(path);
	return fd;
}

TEST(a_planted_link_is_not_mounted)
{
	struct uuid u = {{1}};
	char name[UUID_TEXT_LEN + 1], planted[256];
	struct err e;

	uuid_format(&u, name);
	(void)snprintf(planted, sizeof(planted), "%s/links/%s", dir, name);
	assert_int_equal(symlink("/etc", planted), 0);
	assert_true(try_make(&e) < 0);
	assert_int_equal(stat_of("/etc", "/agent").st_ino, 0);
}

TEST(a_directory_of_another_user_is_not_mounted)
{
	struct uuid u = {{1}};
	char name[UUID_TEXT_LEN + 1], planted[256];
	struct err e;

	if (geteuid() != 0)
		skip();
	uuid_format(&u, name);
	(void)snprintf(planted, sizeof(planted), "%s/links/%s", dir, name);
	assert_int_equal(mkdir(planted, 0711), 0);
	assert_int_equal(chown(planted, 12345, 12345), 0);
	assert_int_equal(try_make(&e), ERR_POLICY);
	assert_non_null(strstr(e.msg, "uid 12345"));
}

/* Attack H4: links renamed, another put in its place. */
TEST(a_path_that_leads_elsewhere_is_not_mounted)
{
	char now[256], then[256];
	struct err e;

	(void)snprintf(now, sizeof(now), "%s/links", dir);
	(void)snprintf(then, sizeof(then), "%s/links.was", dir);
	assert_int_equal(rename(now, then), 0);
	assert_int_equal(mkdir(now, 0711), 0);
	assert_int_equal(try_make(&e), ERR_POLICY);
	assert_non_null(strstr(e.msg, "exchanged"));
}

TEST(links_of_another_user_are_refused_at_the_start)
{
	char path[256];
	struct linkdirs *l = NULL;
	struct err e;

	if (geteuid() != 0)
		skip();
	(void)snprintf(path, sizeof(path), "%s/links", dir);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(linkdirs_open(dir, &l, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "uid 12345"));
}

TEST(an_agents_copy_of_another_user_is_made_anew)
{
	struct uuid u = {{1}};
	char *path;
	char copy[512];
	struct err e;

	if (geteuid() != 0)
		skip();
	(void)close(linkdirs_make(links, &u, &path, &e));
	(void)snprintf(copy, sizeof(copy), "%s/agent", path);
	assert_int_equal(chown(copy, 12345, 12345), 0); /* all its names */
	assert_int_equal(chmod(copy, 0755), 0);
	linkdirs_close(links);
	open_links();
	linkdirs_remove(links, &u);
	free(path);
	(void)close(linkdirs_make(links, &u, &path, &e));
	assert_int_equal(stat_of(path, "/agent").st_uid, 0);
	free(path);
}

TEST_MAIN(setup, teardown)
