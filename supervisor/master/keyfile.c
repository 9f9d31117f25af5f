#include "supervisor/master/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/hex.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/random.h"
#include "common/xmalloc.h"
#include "supervisor/master/spawn.h"

#define KEY_BYTES 32
#define FILE_MAX 4096

static int
fail(struct err *e, const char *what, const char *path)
{
	return err_errno(e, "SECRETS_KEY_FILE: %s %s", what, path);
}

/* ---- reading */

static int
check_file(int fd, const char *path, off_t *size, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return fail(e, "fstat", path);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > FILE_MAX)
		return err_set(e, ERR_INVAL,
		    "SECRETS_KEY_FILE: %s is no file of 1 to %d bytes: put it "
		    "back from "
		    "where it is kept",
		    path, FILE_MAX);
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0 || st.st_uid != geteuid())
		return err_set(e, ERR_POLICY,
		    "SECRETS_KEY_FILE: %s has uid %u and mode %03o, so others "
		    "may read "
		    "it: chown it to %u and chmod 400",
		    path, (unsigned int)st.st_uid,
		    (unsigned int)(st.st_mode & 0777), (unsigned int)geteuid());
	*size = st.st_size;
	return 0;
}

static int
read_file(const char *path, int *out, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	off_t size;
	int copy;

	/* O_NONBLOCK: a FIFO must not hold us up. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1)
		return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_SYS,
		    "SECRETS_KEY_FILE: open %s: %s", path, strerror(errno));
	if (check_file(fd, path, &size, e) != 0)
		return e->code;
	copy = fd_copy_sealed("SECRETS_KEY_FILE", fd, (size_t)size, e);
	if (copy < 0)
		return err_wrap(e, "SECRETS_KEY_FILE: %s", path);
	*out = copy;
	return 0;
}

/* ---- making */

static int
write_key(const char *path, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	uint8_t key[KEY_BYTES];
	char text[HEX_BYTES(KEY_BYTES) + 1];
	int rc;

	random_fill(key, sizeof(key));
	hex_encode(key, sizeof(key), text);
	explicit_bzero(key, sizeof(key));
	text[2 * KEY_BYTES] = '\n';
	fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
	if (fd == -1)
		return fail(e, "create", path);
	rc = fd_write_all(fd, text, 2 * KEY_BYTES + 1, e);
	explicit_bzero(text, sizeof(text));
	if (rc != 0)
		return err_wrap(e, "SECRETS_KEY_FILE: %s", path);
	return fsync(fd) == -1 ? fail(e, "sync", path) : 0;
}

/* Under another name first: a crash in between leaves no half a key. */
static int
make_file(const char *path, struct err *e)
{
	AUTO(auto_free) char *tmp = xasprintf("%s.new", path);
	int rc;

	(void)unlink(tmp);
	rc = write_key(tmp, e);
	if (rc == 0 && link(tmp, path) == -1 && errno != EEXIST)
		rc = fail(e, "link", path);
	(void)unlink(tmp);
	if (rc == 0 && fd_sync_above(path) == -1)
		rc = fail(e, "sync the directory of", path);
	if (rc != 0)
		return rc;
	log_info("made %s: keep a copy of it, apart from those of the database",
	    path);
	return 0;
}

int
keyfile_open(const char *path, const char *data_dir, enum keyfile_mode mode,
    int *out, struct err *e)
{
	AUTO(auto_free)
	char *file = path[0] != '\0' ?
	    xstrdup(path) :
	    xasprintf("%s/" LAYOUT_SECRETS_KEY, data_dir);
	int rc = read_file(file, out, e);

	if (rc != ERR_NOTFOUND)
		return rc;
	if (mode == KEYFILE_LOOK)
		return 0;
	return make_file(file, e) != 0 ? e->code : read_file(file, out, e);
}

void
keyfile_send(int fd, struct ipc_chan *chan, enum msg_role role)
{
	int copy;

	if (fd == -1 || role != MSG_ROLE_FRONT)
		return;
	copy = spawn_copy(fd, "SECRETS_KEY_FILE");
	if (copy != -1)
		msg_send_secrets_key(
		    chan, &(struct msg_secrets_key){.file = copy});
}
