#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/xmalloc.h"
#include "images/agent/places.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/hosts-XXXXXX";

static char *
path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void
make(const char *name, const char *text)
{
	AUTO(auto_free) char *path = path_of(name);
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void
assert_text(const char *name, const char *want)
{
	AUTO(auto_free) char *path = path_of(name);
	AUTO(auto_free) char *text = NULL;
	size_t n;

	assert_int_equal(fd_read_file(path, 4096, &text, &n, NULL), 0);
	assert_string_equal(text, want);
}

static void
fill(const char *name)
{
	AUTO(auto_free) char *path = path_of(name);

	places_fill_hosts(path);
}

TEST(an_empty_file_gets_both_addresses)
{
	make("empty", "");
	fill("empty");
	assert_text(
	    "empty", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
	fill("empty"); /* and not again */
	assert_text(
	    "empty", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
}

TEST(what_the_image_or_the_engine_wrote_stays)
{
	make("own", "10.0.0.1 x\n");
	fill("own");
	assert_text("own", "10.0.0.1 x\n");
}

TEST(a_link_or_a_missing_file_is_not_followed_or_made)
{
	AUTO(auto_free) char *link = path_of("link");
	AUTO(auto_free) char *missing = path_of("missing");

	make("target", "");
	assert_int_equal(symlink("target", link), 0);
	fill("link");
	assert_text("target", "");
	fill("missing");
	assert_int_equal(access(missing, F_OK), -1);
	places_fill_hosts("/dev/null");
}

static int
make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_dir(void **state)
{
	AUTO(auto_free) char *command = xasprintf("rm -r '%s'", dir);

	(void)state;
	return system(command); /* NOLINT(cert-env33-c): our own directory */
}

int
main(void)
{
	return tests_run(NULL, NULL, make_dir, remove_dir);
}
