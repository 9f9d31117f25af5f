#include <fcntl.h>
#include <stdio.h>

#include "common/xmalloc.h"
#include "images/agent/base_env.h"
#include "images/agent/env.h"
#include "images/agent/say.h"
#include "tests/unit/test.h"

static char passwd[] = "/tmp/passwd-XXXXXX";

static int
set_up(void **state)
{
	static const char users[] = "\n"
				    "daemon:x:1:1:daemon:/usr/sbin:/bin/sh\n"
				    "cut:x:0\n"
				    "admin:x:0:0:Admin:/var/admin:/bin/sh\n"
				    "root:x:0:0:root:/root:/bin/sh\n";
	int fd = mkstemp(passwd);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(
	    write(fd, users, sizeof(users) - 1), (ssize_t)sizeof(users) - 1);
	assert_int_equal(close(fd), 0);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return unlink(passwd);
}

/* As an environment has its type; nobody writes to it. */
#define STRINGS(...)                                                           \
	((char *const *)(uintptr_t)(const char *const[]){__VA_ARGS__, NULL})

/* The image's variables; the last of them is NULL. */
static void
start(char *const *env)
{
	base_env_init(env, passwd);
}
#define START(...) start(STRINGS(__VA_ARGS__))

static void
assert_rest(char *const *want)
{
	char *const *got = base_env_rest();

	for (; *want != NULL; want++, got++) {
		assert_non_null(*got);
		assert_string_equal(*got, *want);
	}
	assert_null(*got);
}
#define REST(...) assert_rest(STRINGS(__VA_ARGS__))

/* One variable of what a command would be given; NULL: it is not there. */
static const char *
given(const struct env_start *s, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (char **v = s->env; *v != NULL; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=') {
			assert_null(found); /* twice */
			found = *v + n + 1;
		}
	return found;
}

static void
build(struct env_start *s, enum runspec_user user, char *const *env)
{
	env_build(s,
	    &(struct proc_spec){.argv = STRINGS("true"),
		.env = env,
		.cwd = "/tmp",
		.user = user});
}

TEST(the_images_variables_are_kept)
{
	START("FROM_IMAGE=a b", "PATH=/bin:/opt/bin", "PYTHONPATH=/opt/lib",
	    "EMPTY=", "odd\x01\xff name=\xfe");
	REST("FROM_IMAGE=a b", "PYTHONPATH=/opt/lib",
	    "EMPTY=", "odd\x01\xff name=\xfe", "LANG=C.UTF-8",
	    "PYTHONUNBUFFERED=1");
	assert_string_equal(base_env_path(), "/bin:/opt/bin");
}

TEST(what_is_no_variable_is_left_out)
{
	START("NOTHING", "=nameless", "", "A=1");
	REST("A=1", "LANG=C.UTF-8", "PYTHONUNBUFFERED=1");
	assert_string_equal(base_env_path(), BASE_ENV_PATH);
	assert_false(say_is_waiting());
}

TEST(ours_give_way_to_the_images)
{
	START("LANG=de_DE.UTF-8", "PYTHONUNBUFFERED=");
	REST("LANG=de_DE.UTF-8", "PYTHONUNBUFFERED=");
}

TEST(the_last_of_one_name_counts)
{
	START("A=1", "AB=2", "A=3");
	REST("A=3", "AB=2", "LANG=C.UTF-8", "PYTHONUNBUFFERED=1");
}

TEST(an_engines_home_is_not_the_images)
{
	START("HOME=/var/admin"); /* of the first user 0 */
	assert_null(base_env_home());
	START("HOME=/");
	assert_null(base_env_home());
	START("HOME=");
	assert_null(base_env_home());
	START("A=1");
	assert_null(base_env_home());
	START("HOME=/app");
	assert_string_equal(base_env_home(), "/app");
}

TEST(a_command_has_the_images_then_ours_then_its_own)
{
	struct env_start s;

	START("A=image", "B=image", "USER=image", "PWD=/image", "HOME=/app",
	    "PATH=/image");
	build(&s, RUNSPEC_USER_SANDBOX, STRINGS("B=call"));
	assert_string_equal(given(&s, "A"), "image");
	assert_string_equal(given(&s, "B"), "call");
	assert_string_equal(given(&s, "USER"), "sandbox");
	assert_string_equal(given(&s, "LOGNAME"), "sandbox");
	assert_string_equal(given(&s, "PWD"), "/tmp");
	assert_string_equal(given(&s, "HOME"), "/app");
	assert_string_equal(given(&s, "PATH"), "/image");
	assert_string_equal(given(&s, "LANG"), "C.UTF-8");
	assert_string_equal(given(&s, "PYTHONUNBUFFERED"), "1");
	env_clear(&s);
}

TEST(a_call_can_say_otherwise_of_all)
{
	char *const *own = STRINGS("PATH=/x", "HOME=/x", "USER=x", "LOGNAME=x",
	    "PWD=/x", "LANG=x", "PYTHONUNBUFFERED=");
	struct env_start s;
	size_t n = 0;

	START("HOME=/app");
	build(&s, RUNSPEC_USER_ROOT, own);
	for (; own[n] != NULL; n++)
		assert_ptr_equal(s.env[n], own[n]);
	assert_null(s.env[n]);
	assert_string_equal(s.search, "/x");
	env_clear(&s);
}

/* One too many, and one whose bytes are too many beside the first. */
TEST(what_an_image_may_have_is_bounded_and_said)
{
	char *env[BASE_ENV_IMAGE_MAX + 3] = {NULL};
	static char large[BASE_ENV_BYTES_MAX];
	struct frame_said line;
	size_t n = 0;

	memset(large, 'x', sizeof(large) - 1);
	memcpy(large, "LARGE=", strlen("LARGE="));
	for (size_t i = 0; i < BASE_ENV_IMAGE_MAX + 1; i++)
		env[i] = xasprintf("V%zu=secret", i);
	env[BASE_ENV_IMAGE_MAX + 1] = large;
	start(env);
	while (base_env_rest()[n] != NULL)
		n++;
	assert_int_equal(n, BASE_ENV_MAX);
	assert_string_equal(base_env_rest()[n - 3], env[n - 3]);
	assert_true(say_is_waiting());
	say_take(&line);
	assert_non_null(strstr(line.text, "2 of the image's variables"));
	assert_null(strstr(line.text, "secret"));
	for (size_t i = 0; i < BASE_ENV_IMAGE_MAX + 1; i++)
		free(env[i]);
	START("A=1", large); /* together one byte too many */
	REST("A=1", "LANG=C.UTF-8", "PYTHONUNBUFFERED=1");
	say_take(&line);
	START(large);
	assert_ptr_equal(base_env_rest()[0], large);
	assert_false(say_is_waiting());
}

int
main(void)
{
	return tests_run(NULL, NULL, set_up, tear_down);
}
