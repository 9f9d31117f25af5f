#include "common/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "common/xmalloc.h"

/* The real path of what exists of it, the first *used bytes; NULL and errno. */
static char *
find_real(const char *path, size_t *used)
{
	size_t n = strlen(path);

	for (;;) {
		AUTO(auto_free) char *way = xstrndup(path, n);
		struct stat st;
		char *real;

		if (n == 0)
			real = realpath(path[0] == '/' ? "/" : ".", NULL);
		else
			real = realpath(way, NULL);
		*used = n;
		/* Of a link that leads nowhere mkdir would say EEXIST. */
		if (real != NULL || n == 0 || errno != ENOENT ||
		    lstat(way, &st) == 0)
			return real;
		while (n > 0 && path[n - 1] != '/')
			n--;
		while (n > 0 && path[n - 1] == '/')
			n--;
	}
}

static bool
is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Of a link that leads through a shut directory the link's name is told. */
static bool
is_shut(const char *path)
{
	struct stat st;

	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 || errno != EACCES)
		return false;
	return stat(path, &st) == -1 || S_ISDIR(st.st_mode);
}

int
place_check_way(const char *path, struct err *e)
{
	AUTO(auto_free) char *way = xstrdup(path);
	const char *first = path[0] == '/' ? "/" : ".";
	const char *shut = is_shut(first) ? first : NULL;

	for (char *p = way; shut == NULL && *p != '\0'; p++) {
		if (*p != '/' || p == way)
			continue;
		*p = '\0';
		if (is_shut(way))
			shut = way;
		else
			*p = '/';
	}
	if (shut == NULL)
		return 0;
	return err_set(e, ERR_INVAL, "uid %u may not pass through %s",
	    (unsigned int)geteuid(), shut);
}

/* Why it has no real path, which errno says: the first used bytes of it. */
static void
explain(const char *path, size_t used, struct err *e)
{
	const int why = errno;

	if (why == EACCES && place_check_way(path, e) != 0)
		return;
	(void)err_set(e, ERR_INVAL, "%.*s%s%s", (int)used,
	    path[used] == '\0' ? "" : path, path[used] == '\0' ? "" : ": ",
	    why == ENOENT ? "a link that leads nowhere" : strerror(why));
}

char *
place_resolve(const char *path, size_t *above, struct err *e)
{
	AUTO(auto_free) char *real = NULL;
	const char *rest;
	size_t used, n;

	real = find_real(path, &used);
	if (real == NULL) {
		explain(path, used, e);
		return NULL;
	}
	if (!is_directory(real)) {
		(void)err_set(e, ERR_INVAL, "%s is no directory", real);
		return NULL;
	}
	*above = strlen(real);
	rest = path + used + strspn(path + used, "/");
	for (n = strlen(rest); n > 0 && rest[n - 1] == '/'; n--)
		;
	if (n == 0)
		return xstrdup(real);
	return xasprintf(
	    "%s/%.*s", strcmp(real, "/") == 0 ? "" : real, (int)n, rest);
}

int
place_check(const char *path, enum place_state *state, struct err *e)
{
	AUTO(auto_free) char *real = NULL;
	size_t above = 0;
	bool is_there;

	real = place_resolve(path, &above, e);
	if (real == NULL)
		return e->code;
	is_there = real[above] == '\0';
	*state = is_there ? PLACE_IS_THERE : PLACE_IS_MISSING;
	real[above] = '\0';
	if (faccessat(AT_FDCWD, real, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	return err_set(e, ERR_INVAL, "uid %u may not %s in %s (%s)",
	    (unsigned int)geteuid(),
	    is_there ? "write" : "make it, or what is above it,", real,
	    strerror(errno));
}

char *
place_beside(const char *name)
{
	char self[PATH_MAX] = "/";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self));

	if (n < 1)
		n = 1;
	while (n > 1 && self[n - 1] != '/')
		n--;
	return xasprintf("%.*s%s", (int)n, self, name);
}

char *
place_find(const char *name, const char *installed)
{
	char *path = place_beside(name);

	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return access(installed, R_OK) == 0 ? xstrdup(installed) : NULL;
}
