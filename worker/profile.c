#include "worker/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <jansson.h>

#include "common/embed.h"
#include "common/fd.h"
#include "common/js.h"
#include "common/log.h"
#include "common/place.h"
#include "common/xmalloc.h"

#define KEY "SANDBOX_SECCOMP"
#define PROFILE_MAX (256u << 10)
#define DEPTH_MAX 8

#ifndef PKGDATADIR
#define PKGDATADIR "/usr/local/share/mcp-sandboxd"
#endif

/* Whoever may write the file, or put another in its place, decides what
 * sandboxes may do: that is root, or who started the server. */
static int
check_file(const char *path, const struct stat *st, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(
		    e, ERR_INVAL, KEY ": %.200s is no regular file", path);
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(e, ERR_INVAL,
		    KEY ": %.200s may be written by others than its owner: "
			"chmod go-w it",
		    path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(e, ERR_INVAL,
		    KEY ": %.200s belongs to uid %u: it must be root's", path,
		    (unsigned int)st->st_uid);
	if (st->st_size > PROFILE_MAX)
		return err_set(e, ERR_INVAL,
		    KEY ": %.200s has more than %u bytes", path, PROFILE_MAX);
	return 0;
}

/* The caller frees; the file that was looked at is the one that is read. */
static int
read_file(const char *path, char **out, size_t *len, struct err *e)
{
	AUTO(auto_close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO(auto_free) char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd == -1 || fstat(fd, &st) == -1)
		return err_set(
		    e, ERR_INVAL, KEY ": %.200s: %s", path, strerror(errno));
	if (check_file(path, &st, e) != 0)
		return ERR_INVAL;
	text = xcalloc(1, (size_t)st.st_size + 1);
	n = fd_pread_all(fd, text, (size_t)st.st_size, 0, e);
	if (n < 0) {
		(void)err_wrap(e, KEY ": %.200s", path);
		return ERR_INVAL;
	}
	*len = (size_t)n;
	*out = text; /* the caller's */
	text = NULL;
	return 0;
}

/* A default that lets through, and no rule that denies. */
static bool
is_open(const json_t *o)
{
	const char *by_default =
	    json_string_value(json_object_get(o, "defaultAction"));
	const json_t *rules = json_object_get(o, "syscalls"), *rule;
	size_t i;

	if (strcmp(by_default, "SCMP_ACT_ALLOW") != 0 &&
	    strcmp(by_default, "SCMP_ACT_LOG") != 0)
		return false;
	json_array_foreach (rules, i, rule) {
		const char *action =
		    json_string_value(json_object_get(rule, "action"));

		if (action != NULL && strcmp(action, "SCMP_ACT_ALLOW") != 0 &&
		    strcmp(action, "SCMP_ACT_LOG") != 0)
			return false;
	}
	return true;
}

static int
refuse_open(const struct conf *c, const char *what, struct err *e)
{
	if (!conf_bool(c, CONF_SANDBOX_ALLOW_UNCONFINED))
		return err_set(e, ERR_INVAL,
		    KEY ": %.200s denies no system call; set "
			"SANDBOX_ALLOW_UNCONFINED=true if that is meant",
		    what);
	log_warn(KEY ": %.200s denies no system call", what);
	return 0;
}

static int
load_file(const struct conf *c, const char *path, char **out, struct err *e)
{
	AUTO(auto_free) char *given = NULL;
	AUTO(auto_json) json_t *o = NULL;
	size_t len;

	if (read_file(path, &given, &len, e) != 0)
		return ERR_INVAL;
	if (js_parse(given, len, PROFILE_MAX, DEPTH_MAX, &o, e) != 0) {
		(void)err_wrap(e, KEY ": %.200s", path);
		return ERR_INVAL;
	}
	if (!json_is_string(json_object_get(o, "defaultAction")) ||
	    !json_is_array(json_object_get(o, "syscalls")))
		return err_set(e, ERR_INVAL,
		    KEY ": %.200s is no seccomp profile: it lacks "
			"defaultAction or syscalls",
		    path);
	if (is_open(o) && refuse_open(c, path, e) != 0)
		return ERR_INVAL;
	*out = js_dump(o);
	return 0;
}

int
profile_load(const struct conf *c, char **out, char **path, struct err *e)
{
	const char *setting = conf_str(c, CONF_SANDBOX_SECCOMP);
	const char *ours = embed_seccomp[0].data;

	*path = NULL;
	if (strcmp(setting, "default") == 0) {
		*out = xstrndup(ours, strcspn(ours, "\n"));
		*path = place_find(
		    "schema/seccomp.json", PKGDATADIR "/seccomp.json");
		return 0;
	}
	if (strcmp(setting, "unconfined") == 0) {
		if (refuse_open(c, setting, e) != 0)
			return ERR_INVAL;
		*out = xstrdup(setting);
		return 0;
	}
	if (setting[0] != '/')
		return err_set(e, ERR_INVAL,
		    KEY " is \"%.64s\", want default or the absolute path of a "
			"profile",
		    setting);
	if (load_file(c, setting, out, e) != 0)
		return ERR_INVAL;
	*path = xstrdup(setting);
	return 0;
}
