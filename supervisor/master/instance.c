#include "supervisor/master/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/random.h"
#include "common/xmalloc.h"

#define NAME "instance"
#define NEW_NAME "instance.new"
#define FILE_MODE 0644
#define FILE_MAX 8192
#define MARK_MAX 64
#define HEAD                                                                   \
	"# Whose sandboxes on the engine are this directory's.  Written by "   \
	"mcp-sandboxd;\n# keep it with the database beside it.\n"

/* The file as it was read. */
struct instance_file {
	char text[FILE_MAX + 1]; /* what the others point into */
	const char *id;
	const char *mark;
	const char *path;
	bool is_copy; /* mark is not that of the file */
};

static int
fail(struct err *e, const char *path, const char *what)
{
	return err_errno(e, "%s/" NAME ": %s", path, what);
}

/* What a copy of the file does not have: its number and when it was made. */
static int
make_mark(int fd, const char *path, char mark[MARK_MAX], struct err *e)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) == -1)
		return fail(e, path, "statx");
	if ((st.stx_mask & STATX_BTIME) == 0)
		memset(&st.stx_btime, 0, sizeof(st.stx_btime));
	(void)snprintf(mark, MARK_MAX, "%" PRIu64 ":%" PRId64 ".%09u",
	    (uint64_t)st.stx_ino, (int64_t)st.stx_btime.tv_sec,
	    (unsigned int)st.stx_btime.tv_nsec);
	return 0;
}

/* ---- writing */

static int
fill(int fd, const char *path, const char *id, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	char mark[MARK_MAX];

	if (make_mark(fd, path, mark, e) != 0)
		return e->code;
	text = xasprintf(HEAD "id=%s\nmark=%s\npath=%s\n", id, mark, path);
	if (fd_write_all(fd, text, strlen(text), e) != 0)
		return err_wrap(e, "%s/" NAME, path);
	if (fchmod(fd, FILE_MODE) == -1)
		return fail(e, path, "chmod");
	return fsync(fd) == -1 ? fail(e, path, "sync") : 0;
}

static int
write_file(int dir, const char *path, const char *id, struct err *e)
{
	AUTO(auto_close) int fd = -1;

	if (unlinkat(dir, NEW_NAME, 0) == -1 && errno != ENOENT)
		return fail(e, path, "remove an unfinished one");
	fd = openat(dir, NEW_NAME,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return fail(e, path, "create");
	if (fill(fd, path, id, e) != 0)
		return e->code;
	if (renameat(dir, NEW_NAME, dir, NAME) == -1)
		return fail(e, path, "rename");
	return fsync(dir) == -1 ? fail(e, path, "sync") : 0;
}

static int
write_new(
    int dir, const char *path, char id[INSTANCE_ID_LEN + 1], struct err *e)
{
	uint8_t bytes[INSTANCE_ID_BYTES];

	random_fill(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), id);
	return write_file(dir, path, id, e);
}

/* ---- reading */

static int
damaged(struct err *e, const char *path)
{
	return err_set(e, ERR_INVAL,
	    "%s/" NAME " is damaged: put it back from a backup, or remove it "
	    "to begin a new instance, whose sandboxes are others",
	    path);
}

/* The value of a line "key=value\n", up to the end of the text. */
static const char *
take_line(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *p = text;

	while (p != NULL && (strncmp(p, key, n) != 0 || p[n] != '=')) {
		p = strchr(p, '\n');
		p = p == NULL ? NULL : p + 1;
	}
	return p == NULL ? NULL : p + n + 1;
}

static int
parse(struct instance_file *f, const char *path, struct err *e)
{
	f->id = take_line(f->text, "id");
	f->mark = take_line(f->text, "mark");
	f->path = take_line(f->text, "path");
	if (f->id == NULL || f->mark == NULL || f->path == NULL)
		return damaged(e, path);
	for (char *p = f->text; (p = strchr(p, '\n')) != NULL;)
		*p++ = '\0';
	if (strlen(f->id) != INSTANCE_ID_LEN ||
	    strspn(f->id, "0123456789abcdef") != INSTANCE_ID_LEN)
		return damaged(e, path);
	return 0;
}

/* Who may write it decides whose sandboxes are stopped. */
static int
check_owner(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return fail(e, path, "stat");
	if (!S_ISREG(st.st_mode))
		return damaged(e, path);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(e, ERR_INVAL,
		    "%s/" NAME " must belong to uid %u and be writable for "
		    "it alone; it has uid %u and mode %03o: chown and chmod it",
		    path, (unsigned int)geteuid(), (unsigned int)st.st_uid,
		    (unsigned int)st.st_mode & 0777);
	return 0;
}

/* 1: there is one. */
static int
read_file(int dir, const char *path, struct instance_file *f, struct err *e)
{
	AUTO(auto_close)
	int fd =
	    openat(dir, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char mark[MARK_MAX];
	ssize_t n;

	if (fd == -1)
		return errno == ENOENT ? 0 : fail(e, path, "open");
	if (check_owner(fd, path, e) != 0)
		return e->code;
	n = fd_pread_all(fd, f->text, FILE_MAX, 0, e);
	if (n < 0)
		return err_wrap(e, "%s/" NAME, path);
	f->text[n] = '\0';
	if (parse(f, path, e) != 0 || make_mark(fd, path, mark, e) != 0)
		return e->code;
	f->is_copy = strcmp(mark, f->mark) != 0;
	return 1;
}

/* ---- a copy */

static int
ask(const char *path, const struct instance_file *f, struct err *e)
{
	return err_set(e, ERR_POLICY,
	    "DATA_DIR %.120s is a copy of %.120s, or was moved or put back: "
	    "its "
	    "sandboxes may be another server's (instance %s).  If no other "
	    "server uses them, start with --adopt; to begin an instance of "
	    "its own, start with --forget; or set another DATA_DIR",
	    path, f->path, f->id);
}

static int
take_copy(int dir, const char *path, const struct instance_file *f,
    enum instance_takeover takeover, char id[INSTANCE_ID_LEN + 1],
    struct err *e)
{
	switch (takeover) {
	case INSTANCE_ADOPT:
		log_warn("DATA_DIR %s goes on as the instance of %.120s", path,
		    f->path);
		return write_file(dir, path, id, e);
	case INSTANCE_FORGET:
		log_warn("DATA_DIR %s was a copy of %.120s: it begins an "
			 "instance of its own",
		    path, f->path);
		return write_new(dir, path, id, e);
	case INSTANCE_ASK:
		break;
	}
	return ask(path, f, e);
}

/* ---- public */

int
instance_open(int dir, const char *path, enum instance_takeover takeover,
    char id[INSTANCE_ID_LEN + 1], struct err *e)
{
	struct instance_file f = {.id = NULL};
	int rc = read_file(dir, path, &f, e);

	if (rc == 0)
		return write_new(dir, path, id, e);
	if (rc < 0)
		return rc;
	memcpy(id, f.id, INSTANCE_ID_LEN + 1);
	return f.is_copy ? take_copy(dir, path, &f, takeover, id, e) : 0;
}

int
instance_read(
    int dir, const char *path, char id[INSTANCE_ID_LEN + 1], struct err *e)
{
	struct instance_file f = {.id = NULL};
	int rc = read_file(dir, path, &f, e);

	if (rc == 0)
		return err_set(e, ERR_NOTFOUND,
		    "%s has no file " NAME ": no server ever ran there", path);
	if (rc < 0)
		return rc;
	memcpy(id, f.id, INSTANCE_ID_LEN + 1);
	return 0;
}

int
instance_look(
    int dir, const char *path, enum instance_takeover takeover, struct err *e)
{
	struct instance_file f = {.id = NULL};
	int rc = read_file(dir, path, &f, e);

	if (rc <= 0)
		return rc;
	return f.is_copy && takeover == INSTANCE_ASK ? ask(path, &f, e) : 0;
}
