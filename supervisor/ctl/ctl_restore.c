/*
 * ctl_restore.c - a backup becomes what a server begins with
 *
 *	DATA_DIR/restore.partial/front	unpacked and checked there, by the user
 *					it will belong to
 *	DATA_DIR/before-TIME/front	the same, when all of it is on disk
 *	DATA_DIR/instance		written, when there is none
 *	DATA_DIR/front			the two change places, in one step
 *
 * Whatever ends it, DATA_DIR/front is the old one or the new one, whole; what
 * was there stays in before-TIME.  A second try begins again.
 */
#include "supervisor/ctl/ctl_call.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/js.h"
#include "common/layout.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_archive.h"
#include "supervisor/ctl/ctl_helper.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/store/backup.h"

#define PARTIAL "restore.partial"
#define INSTANCE "instance"
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DEPTH_MAX 6
#define DROPPED_MAX 100000
#define PASS_MODE 0711 /* as datadir.c has it */
#define INSTANCE_DIGITS 32
#define FRONT_USER "mcp-front"

struct restore {
	const struct ctl_call *c;
	const char *data_dir;
	int archive;
	int data;     /* DATA_DIR, locked */
	int partial;  /* in it */
	int unpacked; /* partial/front */
	char before[40];
	char instance[INSTANCE_DIGITS + 1]; /* "": the backup has none */
	bool has_front, has_instance;
};

static int
fail(struct err *e, const char *path, const char *what)
{
	return err_errno(e, "%s: %s", path, what);
}

/* ---- taking away what a try left */

static int empty_dir(int dir, unsigned int depth, struct err *e);

static int
remove_at(int dir, const char *name, unsigned int depth, struct err *e)
{
	AUTO(auto_close) int fd = -1;

	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno == ENOENT ? 0 : fail(e, name, "remove");
	fd = openat(dir, name, DIR_FLAGS);
	if (fd == -1 || depth == 0)
		return fail(e, name, "remove");
	if (empty_dir(fd, depth - 1, e) != 0)
		return e->code;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 :
							fail(e, name, "remove");
}

static int
empty_dir(int dir, unsigned int depth, struct err *e)
{
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 3), rc = 0;
	DIR *d = fd == -1 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (d == NULL) {
		rc = fail(e, "a directory", "read");
		if (fd != -1)
			(void)close(fd);
		return rc;
	}
	rewinddir(d);
	while (rc == 0 && (entry = readdir(d)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			rc = remove_at(dir, entry->d_name, depth, e);
	(void)closedir(d);
	return rc;
}

/* ---- the directory */

static int
lock_data(struct restore *r, struct err *e)
{
	if (fd_mkdir_all(r->data_dir, PASS_MODE, e) != 0)
		return e->code;
	r->data = open(r->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->data == -1)
		return fail(e, r->data_dir, "open");
	if (flock(r->data, LOCK_EX | LOCK_NB) == -1)
		return err_set(e, ERR_CONFLICT,
		    "%s: a server runs there: stop it first", r->data_dir);
	return 0;
}

static void
read_instance(const struct restore *r, char id[INSTANCE_DIGITS + 1])
{
	AUTO(auto_close)
	int fd = openat(
	    r->data, INSTANCE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[4096 + 1] = "";
	const char *line;
	struct err ignored;

	id[0] = '\0';
	if (fd == -1 ||
	    fd_pread_all(fd, text, sizeof(text) - 1, 0, &ignored) < 0)
		return;
	line = strstr(text, "\nid=");
	if (line != NULL && strspn(line + 4, "0123456789abcdef") == 32)
		(void)snprintf(id, INSTANCE_DIGITS + 1, "%s", line + 4);
}

static int
look_at_data(struct restore *r, struct err *e)
{
	struct stat st;

	r->has_front =
	    fstatat(r->data, LAYOUT_FRONT, &st, AT_SYMLINK_NOFOLLOW) == 0;
	r->has_instance =
	    fstatat(r->data, INSTANCE, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (r->has_front && !r->c->o->force)
		return err_set(e, ERR_SYS,
		    "%s has the data of a server: with --force it is kept "
		    "beside what is restored",
		    r->data_dir);
	return 0;
}

/* Whose it will be: as it was, else as the server's settings say. */
static int
find_user(const struct restore *r, struct ctl_helper_user *user, struct err *e)
{
	const char *name = getenv("RUN_AS_FRONT");
	const struct passwd *pw;
	struct stat st;

	*user = (struct ctl_helper_user){geteuid(), getegid()};
	if (geteuid() != 0)
		return 0;
	if (fstatat(r->data, LAYOUT_FRONT, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		*user = (struct ctl_helper_user){st.st_uid, st.st_gid};
		return 0;
	}
	if (name != NULL && name[0] == '\0')
		return 0;
	pw = getpwnam(name == NULL ? FRONT_USER : name);
	if (pw == NULL)
		return err_set(e, ERR_NOTFOUND,
		    "there is no user %s: make it, or name the server's in "
		    "RUN_AS_FRONT",
		    name == NULL ? FRONT_USER : name);
	*user = (struct ctl_helper_user){pw->pw_uid, pw->pw_gid};
	return 0;
}

/* As a server's start makes it: who it will belong to passes through. */
static int
open_way(const struct restore *r, struct err *e)
{
	struct stat st;
	mode_t mode;

	if (geteuid() != 0)
		return 0;
	if (fstat(r->data, &st) == -1)
		return fail(e, r->data_dir, "stat");
	mode = (st.st_mode & 0755) | PASS_MODE;
	return (st.st_mode & 07777) != mode && fchmod(r->data, mode) == -1 ?
	    fail(e, r->data_dir, "chmod") :
	    0;
}

static int
make_partial(
    struct restore *r, const struct ctl_helper_user *user, struct err *e)
{
	if (open_way(r, e) != 0 ||
	    remove_at(r->data, PARTIAL, DEPTH_MAX, e) != 0)
		return e->code;
	if (mkdirat(r->data, PARTIAL, PASS_MODE) == -1)
		return fail(e, PARTIAL, "mkdir");
	r->partial = openat(r->data, PARTIAL, DIR_FLAGS);
	if (r->partial == -1 || mkdirat(r->partial, LAYOUT_FRONT, 0700) == -1)
		return fail(e, PARTIAL, "mkdir");
	r->unpacked = openat(r->partial, LAYOUT_FRONT, DIR_FLAGS);
	if (r->unpacked == -1)
		return fail(e, PARTIAL, "open");
	if (geteuid() == 0 && fchown(r->unpacked, user->uid, user->gid) == -1)
		return fail(e, PARTIAL, "chown");
	return 0;
}

/* ---- unpacking, as its user */

static int
check_cb(const char *manifest, void *arg, struct err *e)
{
	const char *instance;
	json_t *o = NULL;
	int rc = 0;

	(void)arg;
	if (js_parse(manifest, strlen(manifest), CTL_ARCHIVE_MANIFEST_MAX, 4,
		&o, NULL) != 0)
		return err_set(
		    e, ERR_DAMAGED, "this is no backup: its manifest");
	instance = js_text(o, "instance");
	if (strcmp(js_text(o, "format"), "mcp-sandboxd backup") != 0)
		rc = err_set(e, ERR_DAMAGED, "this is no backup: its manifest");
	else if (json_integer_value(json_object_get(o, "version")) != 1)
		rc = err_set(e, ERR_WRONG_STATE,
		    "the backup was made by a newer sandboxctl: use that one");
	else if (instance[0] != '\0' &&
	    (strlen(instance) != INSTANCE_DIGITS ||
		strspn(instance, "0123456789abcdef") != INSTANCE_DIGITS))
		rc = err_set(e, ERR_DAMAGED, "this is no backup: its instance");
	json_decref(o);
	return rc;
}

static void
told_cb(uint64_t bytes, void *arg)
{
	(void)arg;
	ctl_print_progress("restore", bytes, 0);
}

/* What was left out, in the process that unpacks. */
struct dropped {
	struct backup_blob *blobs;
	size_t n;
};

static int
dropped_cb(const char *name, const struct ctl_archive_blob *blob, void *arg,
    struct err *e)
{
	struct dropped *d = arg;

	if (d->n == DROPPED_MAX)
		return err_set(e, ERR_DAMAGED,
		    "more than %d artifacts are not what their names say",
		    DROPPED_MAX);
	ctl_print_progress_end();
	(void)fprintf(stderr,
	    "sandboxctl: %s is left out: its bytes are not those that its "
	    "name says\n",
	    name);
	d->blobs = xreallocarray(d->blobs, d->n + 1, sizeof(*d->blobs));
	d->blobs[d->n].tenant = blob->tenant;
	memcpy(d->blobs[d->n].sha256, blob->sha256, sizeof(blob->sha256));
	d->n++;
	return 0;
}

/* Into r->unpacked, with the database as it is to be. */
static int
unpack_files(const struct restore *r, struct ctl_archive_found *found,
    char *instance, size_t *ndropped, struct err *e)
{
	const struct ctl_archive_ops ops = {
	    check_cb, told_cb, r->c->o->drop_damaged ? dropped_cb : NULL};
	struct dropped dropped = {0};
	char dir[64];
	int rc =
	    ctl_archive_read(r->archive, r->unpacked, &ops, &dropped, found, e);

	(void)snprintf(dir, sizeof(dir), "/proc/self/fd/%d", r->unpacked);
	if (rc == 0) {
		rc = backup_check_unpacked(
		    dir, instance, INSTANCE_DIGITS + 1, e);
		if (rc == 0 && dropped.n > 0)
			rc = backup_lose_unpacked(
			    dir, dropped.blobs, dropped.n, e);
		if (rc != 0)
			(void)err_wrap(e, "the backup");
	}
	*ndropped = dropped.n;
	free(dropped.blobs);
	return rc;
}

/* said: the instance, a blank, files, bytes and how many were left out */
static int
unpack(char *said, void *arg, struct err *e)
{
	const struct restore *r = arg;
	AUTO(auto_free)
	struct ctl_archive_found *found = xcalloc(1, sizeof(*found));
	AUTO(auto_json) json_t *o = NULL;
	char instance[INSTANCE_DIGITS + 1];
	size_t ndropped;

	if (unpack_files(r, found, instance, &ndropped, e) != 0)
		return e->code;
	if (js_parse(found->manifest, strlen(found->manifest),
		CTL_ARCHIVE_MANIFEST_MAX, 4, &o, e) != 0)
		return e->code;
	if (instance[0] != '\0' &&
	    strcmp(instance, js_text(o, "instance")) != 0)
		return err_set(e, ERR_DAMAGED,
		    "the backup's database is of another instance than it "
		    "says");
	if (syncfs(r->unpacked) == -1)
		return fail(e, PARTIAL, "sync");
	ctl_print_progress_end();
	(void)snprintf(said, CTL_HELPER_TEXT, "%.32s %llu %llu %zu",
	    js_text(o, "instance"), (unsigned long long)found->files,
	    (unsigned long long)found->bytes, ndropped);
	return 0;
}

/* ---- into place */

static int
write_instance(const struct restore *r, struct err *e)
{
	AUTO(auto_free)
	char *text = xasprintf(
	    "# Whose sandboxes on the engine are this directory's.  Put back "
	    "from a backup.\nid=%s\nmark=backup\npath=a backup\n",
	    r->instance);
	AUTO(auto_close)
	int fd = openat(r->partial, INSTANCE,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd == -1 || fd_write_all(fd, text, strlen(text), e) != 0 ||
	    fchmod(fd, 0644) == -1 || fsync(fd) == -1)
		return fail(e, INSTANCE, "write");
	return 0;
}

/* Of another instance, the old one goes aside as well. */
static int
place_instance(const struct restore *r, int before, struct err *e)
{
	char ours[INSTANCE_DIGITS + 1];

	read_instance(r, ours);
	if (r->instance[0] == '\0' || strcmp(ours, r->instance) == 0)
		return 0;
	if (write_instance(r, e) != 0)
		return e->code;
	if (r->has_instance &&
	    linkat(r->data, INSTANCE, before, INSTANCE ".old", 0) == -1)
		return fail(e, INSTANCE, "keep");
	return renameat(before, INSTANCE, r->data, INSTANCE) == -1 ?
	    fail(e, INSTANCE, "rename") :
	    0;
}

static int
sync_dirs(const struct restore *r, struct err *e)
{
	return fsync(r->partial) == -1 || fsync(r->data) == -1 ?
	    fail(e, r->data_dir, "sync") :
	    0;
}

static int
place_all(struct restore *r, struct err *e)
{
	(void)snprintf(r->before, sizeof(r->before), "before-%lld",
	    (long long)clock_wall_ms());
	/* From now on a second try does not take it away. */
	if (renameat2(r->data, PARTIAL, r->data, r->before, RENAME_NOREPLACE) ==
	    -1)
		return fail(e, r->before, "rename");
	if (place_instance(r, r->partial, e) != 0 || sync_dirs(r, e) != 0)
		return e->code;
	if (renameat2(r->partial, LAYOUT_FRONT, r->data, LAYOUT_FRONT,
		r->has_front ? RENAME_EXCHANGE : RENAME_NOREPLACE) == -1)
		return fail(e, LAYOUT_FRONT, "rename");
	if (!r->has_front && unlinkat(r->data, r->before, AT_REMOVEDIR) == 0)
		r->before[0] = '\0';
	return sync_dirs(r, e);
}

static int
print_restored(
    const struct restore *r, uint64_t files, uint64_t bytes, uint64_t dropped)
{
	json_t *size = ctl_print_bytes((json_int_t)bytes);
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:s, s:s?}", "data_dir",
	    r->data_dir, "files", (json_int_t)files, "bytes", (json_int_t)bytes,
	    "dropped", (json_int_t)dropped, "instance", r->instance, "before",
	    r->before[0] == '\0' ? NULL : r->before);

	if (r->c->o->json)
		ctl_print_json(o);
	else
		(void)printf("%s: %llu files, %s, are restored\n", r->data_dir,
		    (unsigned long long)files, json_string_value(size));
	if (!r->c->o->json && dropped > 0)
		(void)printf("%llu artifacts were left out: they are lost\n",
		    (unsigned long long)dropped);
	if (!r->c->o->json && r->before[0] != '\0')
		(void)printf(
		    "what was there is in %s/%s\n", r->data_dir, r->before);
	json_decref(size);
	return 0;
}

static int
restore(struct restore *r, struct err *e)
{
	unsigned long long files = 0, bytes = 0, dropped = 0;
	struct ctl_helper_user user;
	char said[CTL_HELPER_TEXT];
	char *rest;

	if (lock_data(r, e) != 0 || look_at_data(r, e) != 0 ||
	    find_user(r, &user, e) != 0 || make_partial(r, &user, e) != 0)
		return e->code;
	if (ctl_helper_run(&user, unpack, r, said, e) != 0) {
		struct err ignored;

		(void)!remove_at(r->data, PARTIAL, DEPTH_MAX, &ignored);
		return e->code;
	}
	(void)snprintf(r->instance, sizeof(r->instance), "%.*s",
	    (int)strcspn(said, " "), said);
	files = strtoull(said + strcspn(said, " "), &rest, 10);
	bytes = strtoull(rest, &rest, 10);
	dropped = strtoull(rest, NULL, 10);
	if (place_all(r, e) != 0)
		return e->code;
	return print_restored(r, files, bytes, dropped);
}

int
ctl_backup_restore(const struct ctl_call *c, struct err *e)
{
	struct restore r = {.c = c,
	    .data_dir = c->o->data_dir,
	    .data = -1,
	    .partial = -1,
	    .unpacked = -1};
	int rc;

	if (c->o->url != NULL)
		return err_set(e, ERR_INVAL,
		    "a backup is put into DATA_DIR: restore it on the server's "
		    "machine");
	(void)umask(022); /* the modes are those that are meant */
	r.archive = open(c->words[0], O_RDONLY | O_CLOEXEC);
	if (r.archive == -1)
		return err_set(
		    e, ERR_INVAL, "%s: %s", c->words[0], strerror(errno));
	rc = restore(&r, e);
	(void)close(r.archive);
	if (r.unpacked != -1)
		(void)close(r.unpacked);
	if (r.partial != -1)
		(void)close(r.partial);
	if (r.data != -1)
		(void)close(r.data);
	return rc;
}
