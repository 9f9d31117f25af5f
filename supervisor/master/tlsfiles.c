#include "supervisor/master/tlsfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/child.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/master/spawn.h"

static const struct tls_file {
	enum conf_key key;
	const char *name;
	mode_t nobody; /* these bits must not be set */
} tls_files[TLSFILES_COUNT] = {
    [MSG_TLS_PART_CERTIFICATE] = {CONF_TLS_CERT_FILE, "TLS_CERT_FILE", S_IWOTH},
    [MSG_TLS_PART_KEY] = {CONF_TLS_KEY_FILE, "TLS_KEY_FILE", S_IRWXO | S_IWGRP},
    [MSG_TLS_PART_CLIENT_CA] = {CONF_TLS_CLIENT_CA_FILE, "TLS_CLIENT_CA_FILE",
	S_IWOTH},
};

static int
check_file(const struct tls_file *f, const char *path, int fd, struct stat *st,
    struct err *e)
{
	if (fstat(fd, st) == -1)
		return err_set(e, ERR_INVAL, "%s: fstat %s: %s", f->name, path,
		    strerror(errno));
	if (!S_ISREG(st->st_mode))
		return err_set(
		    e, ERR_INVAL, "%s: %s is no regular file", f->name, path);
	if ((st->st_mode & f->nobody) != 0)
		return err_set(e, ERR_POLICY,
		    "%s: %s has mode %03o, which lets others at it: chmod "
		    "%s it",
		    f->name, path, (unsigned int)(st->st_mode & 0777),
		    f->key == CONF_TLS_KEY_FILE ? "600" : "o-w");
	if (st->st_size <= 0 || st->st_size > TLS_FILE_MAX)
		return err_set(e, ERR_INVAL,
		    "%s: %s has %lld bytes, want 1 to %d", f->name, path,
		    (long long)st->st_size, TLS_FILE_MAX);
	return 0;
}

/* Root reads any file, and that right is shed after the start. */
static void
warn_once_only(
    const struct tls_file *f, const char *path, const struct stat *st)
{
	bool is_readable = st->st_uid == geteuid() ||
	    (st->st_gid == getegid() && (st->st_mode & S_IRGRP) != 0) ||
	    (st->st_mode & S_IROTH) != 0;

	if (!is_readable)
		log_warn("%s: %s belongs to another user: it is read now, and "
			 "cannot be read again at SIGHUP: chown root it",
		    f->name, path);
}

static int
open_failed(const struct tls_file *f, const char *path, struct err *e)
{
	if (errno == EACCES && geteuid() == 0)
		return err_set(e, ERR_INVAL,
		    "%s: open %s: %s: after its start the server reads as "
		    "root without root's right to others' files: chown root "
		    "it, or restart the server",
		    f->name, path, strerror(EACCES));
	return err_set(
	    e, ERR_INVAL, "%s: open %s: %s", f->name, path, strerror(errno));
}

/* A copy that nobody changes while it is read. */
static int
copy_file(const struct tls_file *f, const char *path, int *out, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;
	int copy;

	/* O_NONBLOCK: a FIFO must not hold us up. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1)
		return open_failed(f, path, e);
	if (check_file(f, path, fd, &st, e) != 0)
		return e->code;
	warn_once_only(f, path, &st);
	copy = fd_copy_sealed(f->name, fd, (size_t)st.st_size, e);
	if (copy < 0)
		return err_wrap(e, "%s: %s", f->name, path);
	*out = copy;
	return 0;
}

int
tlsfiles_open(const struct conf *conf, struct tlsfiles *out, struct err *e)
{
	struct tlsfiles t = TLSFILES_INIT;

	*out = t;
	for (size_t i = 0; i < TLSFILES_COUNT; i++) {
		const char *path = conf_str(conf, tls_files[i].key);

		if (path[0] != '\0' &&
		    copy_file(&tls_files[i], path, &t.fds[i], e) != 0) {
			tlsfiles_close(&t);
			return e->code;
		}
	}
	*out = t;
	return 0;
}

void
tlsfiles_close(struct tlsfiles *t)
{
	for (size_t i = 0; i < TLSFILES_COUNT; i++) {
		if (t->fds[i] != -1)
			(void)close(t->fds[i]);
		t->fds[i] = -1;
	}
}

void
tlsfiles_move(struct tlsfiles *to, struct tlsfiles *from)
{
	static const struct tlsfiles none = TLSFILES_INIT;

	tlsfiles_close(to);
	*to = *from;
	*from = none;
}

void
tlsfiles_send(const struct tlsfiles *t, struct ipc_chan *chan, uint32_t number)
{
	if (t->fds[MSG_TLS_PART_CERTIFICATE] == -1)
		return;
	for (size_t i = 0; i < TLSFILES_COUNT; i++) {
		int fd;

		if (t->fds[i] == -1)
			continue;
		fd = spawn_copy(t->fds[i], "TLS");
		if (fd == -1)
			return;
		msg_send_tls_file(chan,
		    &(struct msg_tls_file){
			.part = (enum msg_tls_part)i, .file = fd});
	}
	msg_send_tls_end(chan, &(struct msg_tls_end){.number = number});
}

const char *
tlsfiles_scheme(const struct conf *conf)
{
	return conf_str(conf, CONF_TLS_CERT_FILE)[0] != '\0' ? "https" : "http";
}
