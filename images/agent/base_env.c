#include "images/agent/base_env.h"

#include "common/fd.h"
#include "images/agent/say.h"

#define PASSWD_BYTES_MAX (1u << 20)

static struct base_env {
	const char *path, *home; /* NULL: the image says none */
	/* the environment's own strings, or literals */
	char *rest[BASE_ENV_MAX + 1];
	size_t n;
	size_t bytes;
	size_t dropped;
} base;

static bool
is_named(const char *pair, const char *name, size_t len)
{
	return strncmp(pair, name, len) == 0 && pair[len] == '=';
}

/* ---- HOME */

/* The home of a line "name:password:uid:gid:comment:home:shell" of user 0;
 * NULL: it is another's.  The line is cut. */
static char *
roots_home_of(char *line)
{
	char *field[6];

	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		field[i] = strsep(&line, ":");
	return field[5] != NULL && strcmp(field[2], "0") == 0 ? field[5] : NULL;
}

/* The first line of user 0 counts, as it does for engines. */
static bool
is_roots_home(const char *home, const char *passwd)
{
	AUTO(auto_free) char *text = NULL;
	char *rest, *line, *found = NULL;
	size_t n;

	if (fd_read_file(passwd, PASSWD_BYTES_MAX, &text, &n, NULL) != 0)
		return false;
	rest = text;
	while (found == NULL && (line = strsep(&rest, "\n")) != NULL)
		found = roots_home_of(line);
	return found != NULL && strcmp(found, home) == 0;
}

static bool
is_engines_home(const char *home, const char *passwd)
{
	return home[0] == '\0' || strcmp(home, "/") == 0 ||
	    is_roots_home(home, passwd);
}

/* ---- the others */

/* Its place in rest; n: there is none of that name. */
static size_t
place_of(const char *name, size_t len)
{
	size_t i = 0;

	while (i < base.n && !is_named(base.rest[i], name, len))
		i++;
	return i;
}

static void
put(char *pair, size_t len)
{
	size_t at = place_of(pair, len), bytes = strlen(pair) + 1;

	if (at < base.n) {
		base.bytes -= strlen(base.rest[at]) + 1;
	} else if (base.n == BASE_ENV_IMAGE_MAX) {
		base.dropped++;
		return;
	}
	if (bytes > BASE_ENV_BYTES_MAX - base.bytes) {
		/* what it replaces is not what the image says */
		if (at < base.n)
			base.rest[at] = base.rest[--base.n];
		base.dropped++;
		return;
	}
	base.rest[at] = pair;
	base.n += at == base.n;
	base.bytes += bytes;
}

static void
take(char *pair, const char *passwd)
{
	static const char *const facts[] = {"USER", "LOGNAME", "PWD"};
	const char *eq = strchr(pair, '=');
	size_t len = eq == NULL ? 0 : (size_t)(eq - pair);

	if (len == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (is_named(pair, facts[i], strlen(facts[i])))
			return;
	if (is_named(pair, "PATH", strlen("PATH")))
		base.path = eq[1] != '\0' ? eq + 1 : NULL;
	else if (is_named(pair, "HOME", strlen("HOME")))
		base.home = is_engines_home(eq + 1, passwd) ? NULL : eq + 1;
	else
		put(pair, len);
}

/* Below the image's. */
static void
add_ours(void)
{
	static char lang[] = "LANG=C.UTF-8";
	static char unbuffered[] = "PYTHONUNBUFFERED=1";
	char *const ours[] = {lang, unbuffered};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (place_of(ours[i], strcspn(ours[i], "=")) == base.n)
			base.rest[base.n++] = ours[i];
	base.rest[base.n] = NULL;
}

void
base_env_init(char *const *env, const char *passwd)
{
	memset(&base, 0, sizeof(base));
	for (; *env != NULL; env++)
		take(*env, passwd);
	if (base.dropped > 0)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_NOT_PREPARED,
		    NULL,
		    "%zu of the image's variables are left out: commands get "
		    "%d at most, with %u bytes in all",
		    base.dropped, BASE_ENV_IMAGE_MAX, BASE_ENV_BYTES_MAX);
	add_ours();
}

const char *
base_env_path(void)
{
	return base.path != NULL ? base.path : BASE_ENV_PATH;
}

const char *
base_env_home(void)
{
	return base.home;
}

char *const *
base_env_rest(void)
{
	return base.rest;
}
