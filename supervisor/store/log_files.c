#include "supervisor/store/log_files.h"

#include <sys/stat.h>
#include <errno.h>

#include "common/fd.h"
#include "common/log.h"
#include "supervisor/store/blob_files.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"

/* Life, on the loop's thread. */

static struct store_log *
log_new(struct store *s, const struct uuid *run)
{
	struct store_log *l = xcalloc(1, sizeof(*l));

	l->store = s;
	l->refs = 1;
	l->fd = -1;
	l->wanted.run = *run;
	/* Before there can be a file of that name. */
	wanted_add_log(s->wanted, &l->wanted);
	return l;
}

static int
log_opened(
    struct store_log *l, enum log_name name, int fd, struct store_log **out)
{
	if (fd < 0) {
		wanted_drop_log(l->store->wanted, &l->wanted);
		free(l);
		return fd;
	}
	l->fd = fd;
	l->name = name;
	*out = l;
	return 0;
}

int
store_log_open(struct store *s, const struct uuid *run, struct store_log **out,
    struct err *e)
{
	struct store_log *l = log_new(s, run);
	int fd = spool_log_fresh(s->spool, e);

	if (fd != ERR_WRONG_STATE)
		return log_opened(l, LOG_NAMELESS, fd, out);
	/* The file system has no nameless files. */
	return log_opened(
	    l, LOG_NAMED, spool_log_create(s->spool, run, e), out);
}

int
store_log_reopen(struct store *s, const struct uuid *run,
    struct store_log **out, struct err *e)
{
	struct store_log *l = log_new(s, run);

	return log_opened(
	    l, LOG_NAMED, spool_log_create(s->spool, run, e), out);
}

struct store_log *
store_log_ref(struct store_log *l)
{
	l->refs++;
	return l;
}

void
store_log_close(struct store_log *l)
{
	if (l == NULL || --l->refs > 0)
		return;
	blob_files_drop(l);
	wanted_drop_log(l->store->wanted, &l->wanted);
	if (l->name == LOG_NAMELESS && !l->is_shared) {
		spool_log_reuse(l->store->spool, l->fd);
		store_tidy_soon(l->store);
	} else {
		(void)close(l->fd);
	}
	free(l->held);
	free(l);
}

void
store_log_share(struct store_log *l)
{
	l->is_shared = true;
}

int
store_log_fd(const struct store_log *l)
{
	return l->fd;
}

uint64_t
store_log_length(const struct store_log *l)
{
	struct stat st;

	if (l->held != NULL)
		return l->nheld;
	return fstat(l->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void
store_log_hold(struct store_log *l, const uint8_t *p, size_t n, bool is_read)
{
	static struct log_limit limit;
	struct err e;

	if (l->held != NULL || n == 0)
		return;
	l->held = xmemdup(p, n);
	l->nheld = n;
	/* Who finds less than was told says so himself. */
	if (is_read && fd_write_all(l->fd, p, n, &e) != 0)
		log_warn_limited(
		    &limit, "the log of a run that is followed: %s", e.msg);
}

const uint8_t *
store_log_held(const struct store_log *l, size_t *n)
{
	*n = l->nheld;
	return l->held;
}

int
store_log_read(struct store *s, const struct uuid *run, struct err *e)
{
	return spool_log_read(s->spool, run, e);
}

/* On the writer's thread, and the syncer's. */

int
log_file_name(struct store_log *l, struct err *e)
{
	int rc = 0;

	if (l == NULL)
		return 0;
	(void)pthread_mutex_lock(&l->store->names);
	if (l->name != LOG_NAMED)
		rc = spool_log_name(l->store->spool, l->fd, &l->wanted.run, e);
	if (rc == 0)
		l->name = LOG_NAMED;
	(void)pthread_mutex_unlock(&l->store->names);
	return rc;
}

void
log_file_remove(struct store_log *l)
{
	if (l == NULL)
		return;
	(void)pthread_mutex_lock(&l->store->names);
	if (l->name == LOG_NAMED) {
		spool_log_remove(l->store->spool, &l->wanted.run);
		l->name = LOG_REMOVED;
	}
	(void)pthread_mutex_unlock(&l->store->names);
}

int
log_file_take(
    const struct store_log *l, uint8_t **out, size_t *n, struct err *e)
{
	uint8_t *p;
	ssize_t got;

	if (l->held != NULL) {
		if (*n > l->nheld)
			*n = l->nheld;
		*out = xmemdup(l->held, *n);
		return 0;
	}
	p = xmalloc(*n + 1);
	got = fd_pread_all(l->fd, p, *n, 0, e);
	if (got < 0) {
		free(p);
		return e->code;
	}
	*out = p;
	*n = (size_t)got;
	return 0;
}
