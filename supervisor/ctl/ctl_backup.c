#include "supervisor/ctl/ctl_call.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "common/fd.h"
#include "common/js.h"
#include "common/layout.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_archive.h"
#include "supervisor/ctl/ctl_helper.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/store/backup.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unreleased"
#endif
#define INSTANCE_MAX 64
#define DAMAGED_NAMED_MAX 1000

struct job {
	const char *dir;       /* the server's own */
	const char *artifacts; /* "": below it */
	uint64_t reserve;      /* of its disk, that stays free */
	char instance[INSTANCE_MAX + 1];
	int fd; /* of the archive */
};

/* ---- as the user that owns it */

static int
add_manifest(struct ctl_archive *a, const struct job *j, struct err *e)
{
	time_t now = time(NULL);
	char at[32];
	struct tm tm;
	AUTO(auto_json) json_t *o = NULL;
	AUTO(auto_free) char *text = NULL;

	(void)gmtime_r(&now, &tm);
	(void)strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &tm);
	o = json_pack("{s:s, s:i, s:s, s:s, s:s}", "format",
	    "mcp-sandboxd backup", "version", 1, "program", PACKAGE_VERSION,
	    "made_at", at, "instance", j->instance);
	text = js_dump(o);
	return ctl_archive_add_text(a, CTL_ARCHIVE_MANIFEST, text, e);
}

static int
add_file(struct ctl_archive *a, const struct backup_file *f, struct err *e)
{
	int rc = ctl_archive_add(a, f->name, f->fd, f->size, e);

	(void)close(f->fd);
	return rc;
}

static int
add_all(struct ctl_archive *a, struct backup *b, char *said, struct err *e)
{
	uint64_t files = 0, bytes = 0;
	struct backup_file f;
	int rc;

	while ((rc = backup_next(b, &f, e)) == 1) {
		rc = add_file(a, &f, e);
		if (rc != 0)
			return rc;
		files++;
		bytes += f.size;
		ctl_print_progress("backup: files", bytes, 0);
	}
	if (rc == 0)
		rc = backup_finish(b, &f, e);
	if (rc == 0)
		rc = add_file(a, &f, e);
	(void)snprintf(said, CTL_HELPER_TEXT,
	    "{\"files\": %llu, \"file_bytes\": %llu, \"database_bytes\": %llu, "
	    "\"given_up_meanwhile\": %llu, \"damaged\": %llu}",
	    (unsigned long long)files, (unsigned long long)bytes,
	    (unsigned long long)f.size, (unsigned long long)backup_missing(b),
	    (unsigned long long)backup_damaged(b));
	return rc;
}

static void
told_cb(uint64_t done, uint64_t all, void *arg)
{
	(void)arg;
	ctl_print_progress("backup: database", done, all);
}

/* In the process that reads: standard error is ours. */
static void
damaged_cb(const char *name, const char *why, void *arg)
{
	uint64_t *n = arg;

	ctl_print_progress_end();
	if (++*n <= DAMAGED_NAMED_MAX)
		(void)fprintf(
		    stderr, "sandboxctl: %s is left out: %s\n", name, why);
	else if (*n == DAMAGED_NAMED_MAX + 1)
		(void)fprintf(stderr, "sandboxctl: and more\n");
}

static int
read_all(char *said, void *arg, struct err *e)
{
	const struct job *j = arg;
	struct ctl_archive *a = NULL;
	struct backup *b = NULL;
	uint64_t named = 0;
	int rc = backup_open(j->dir, j->artifacts, &b, e);

	if (rc == 0) {
		backup_on_damaged(b, damaged_cb, &named);
		rc = backup_copy(b, j->reserve, told_cb, NULL, e);
	}
	if (rc == 0)
		rc = ctl_archive_begin(j->fd, &a, e);
	if (rc == 0)
		rc = add_manifest(a, j, e);
	if (rc == 0)
		rc = add_all(a, b, said, e);
	if (rc == 0)
		rc = ctl_archive_end(a, e);
	ctl_archive_free(a);
	backup_close(b);
	ctl_print_progress_end();
	return rc;
}

static int
sweep(char *said, void *arg, struct err *e)
{
	const struct job *j = arg;

	(void)e;
	said[0] = '\0';
	backup_sweep(j->dir);
	return 0;
}

/* ---- as we are */

/* A file of ours alone, and still of that name: whoever locked it before may
 * have put it in its place meanwhile. */
static bool
is_own_partial(int fd, const char *partial)
{
	struct stat st, named;

	return fstat(fd, &st) == 0 && lstat(partial, &named) == 0 &&
	    S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
	    st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

static int
open_partial(const char *partial, struct err *e)
{
	int fd = open(partial,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd == -1)
		return err_set(
		    e, ERR_INVAL, "%s: %s", partial, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == -1 ||
	    !is_own_partial(fd, partial) || ftruncate(fd, 0) == -1 ||
	    fchmod(fd, 0600) == -1) {
		(void)close(fd);
		return err_set(e, ERR_CONFLICT,
		    "%s: another backup writes it, or it is no file of ours",
		    partial);
	}
	return fd;
}

static int
put_in_place(
    int fd, const char *partial, const struct ctl_call *c, struct err *e)
{
	const char *file = c->words[0];

	if (fsync(fd) == -1)
		return err_errno(e, "%s: sync", partial);
	if (renameat2(AT_FDCWD, partial, AT_FDCWD, file,
		c->o->force ? 0 : RENAME_NOREPLACE) == -1)
		return err_set(e, ERR_SYS, "%s: %s", file,
		    errno == EEXIST ? "is there: --force replaces it" :
				      strerror(errno));
	return fd_sync_above(file) == -1 ? err_errno(e, "%s: sync", file) : 0;
}

/* The id that the server's sandboxes bear; none, none. */
static void
read_instance(const char *data_dir, char id[INSTANCE_MAX + 1])
{
	AUTO(auto_free) char *path = xasprintf("%s/instance", data_dir);
	FILE *f = fopen(path, "re");
	char line[256];

	id[0] = '\0';
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "id=%64[0-9a-f]", id) == 1)
			break;
	if (f != NULL)
		(void)fclose(f);
}

/* A server that runs writes down that it was done, and says where artifacts
 * are, and what of its disk stays free; none need run. */
static int
ask_server(const struct ctl_call *c, json_t **out, struct err *e)
{
	AUTO(auto_json)
	json_t *body = json_pack("{s:o}", "file",
	    js_string_bytes(c->words[0], strlen(c->words[0]), NULL));
	AUTO(auto_free)
	char *path = xasprintf("%s/" LAYOUT_ADMIN, c->o->data_dir);
	struct ctl_link *l = NULL;
	int rc;

	*out = NULL;
	if (access(path, F_OK) == -1 && errno == ENOENT)
		return 0;
	if (ctl_link_open(c->o, &l, e) != 0)
		return e->code;
	rc = ctl_request(l, "POST", "/api/v1/backups", body, out, e);
	ctl_link_close(l);
	return rc;
}

static int
find_owner(const char *dir, struct ctl_helper_user *user, struct err *e)
{
	struct stat st;

	if (lstat(dir, &st) == -1 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVAL,
		    "%s: no server ever ran there: name its DATA_DIR with "
		    "--data-dir",
		    dir);
	*user = (struct ctl_helper_user){st.st_uid, st.st_gid};
	return 0;
}

/* It is made, and good for what it has; who has it made by a timer is to hear
 * of what it has not. */
static int
check_whole(const json_t *o, struct err *e)
{
	json_int_t n = json_integer_value(json_object_get(o, "damaged"));

	return n == 0 ?
	    0 :
	    err_set(e, ERR_DAMAGED,
		"the backup is made without %lld files that are damaged: a "
		"server that begins with it says that they are lost, and an "
		"earlier backup may have them",
		n);
}

static int
print_made(const struct ctl_call *c, const char *said, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	json_int_t gone;
	json_t *size;

	if (js_parse(said, strlen(said), CTL_HELPER_TEXT, 4, &o, NULL) != 0)
		return 0;
	if (c->o->json) {
		ctl_print_json(o);
		return check_whole(o, e);
	}
	gone = json_integer_value(json_object_get(o, "given_up_meanwhile"));
	if (gone > 0)
		(void)fprintf(stderr,
		    "sandboxctl: %lld files were not there any more: their "
		    "runs are said to have given them up\n",
		    gone);
	size = ctl_print_bytes(
	    json_integer_value(json_object_get(o, "file_bytes")) +
	    json_integer_value(json_object_get(o, "database_bytes")));
	(void)printf("%s: the database and %lld files, %s\n", c->words[0],
	    json_integer_value(json_object_get(o, "files")),
	    json_string_value(size));
	json_decref(size);
	return check_whole(o, e);
}

static int
make(
    const struct ctl_call *c, struct job *j, const char *partial, struct err *e)
{
	struct ctl_helper_user user;
	char said[CTL_HELPER_TEXT], none[CTL_HELPER_TEXT];
	struct err ignored;
	int rc;

	read_instance(c->o->data_dir, j->instance);
	if (find_owner(j->dir, &user, e) != 0)
		return e->code;
	j->fd = open_partial(partial, e);
	if (j->fd < 0)
		return e->code;
	rc = ctl_helper_run(&user, read_all, j, said, e);
	if (rc == 0)
		rc = put_in_place(j->fd, partial, c, e);
	else
		(void)!ctl_helper_run(&user, sweep, j, none, &ignored);
	if (rc != 0)
		(void)unlink(partial);
	(void)close(j->fd);
	return rc == 0 ? print_made(c, said, e) : rc;
}

/* The log of each run that is under way is open at one moment. */
static void
raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int
ctl_backup_make(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_free)
	char *partial = xasprintf("%s.partial", c->words[0]);
	AUTO(auto_free)
	char *dir = xasprintf("%s/" LAYOUT_FRONT, c->o->data_dir);
	AUTO(auto_json) json_t *o = NULL;
	const char *set = getenv("ARTIFACTS_DIR");
	struct job j = {.dir = dir, .artifacts = set == NULL ? "" : set};
	struct stat st;

	if (c->o->url != NULL)
		return err_set(e, ERR_INVAL,
		    "a backup is read from DATA_DIR: make it on the server's "
		    "machine");
	raise_files();
	if (!c->o->force && lstat(c->words[0], &st) == 0)
		return err_set(e, ERR_SYS, "%s: is there: --force replaces it",
		    c->words[0]);
	if (ask_server(c, &o, e) != 0)
		return e->code;
	if (o != NULL) {
		j.artifacts = js_text(o, "artifacts_dir");
		j.reserve = (uint64_t)json_integer_value(
		    json_object_get(o, "reserve_bytes"));
	}
	return make(c, &j, partial, e);
}
