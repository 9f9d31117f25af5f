#include "common/parcel.h"

#include <sys/socket.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/xmalloc.h"

enum parcel_state {
	PARCEL_EMPTY,
	PARCEL_FULL,
	PARCEL_SENT,
	PARCEL_TAKEN
};

struct parcel {
	atomic_uint refs;
	pthread_mutex_t mutex; /* for all that follows, and the socket */
	enum parcel_state state;
	int fd;
	char *text;
	size_t n;
	size_t sent;
};

struct parcel *
parcel_new(void)
{
	struct parcel *p = xcalloc(1, sizeof(*p));

	atomic_init(&p->refs, 1);
	(void)pthread_mutex_init(&p->mutex, NULL);
	p->fd = -1;
	return p;
}

struct parcel *
parcel_ref(struct parcel *p)
{
	(void)atomic_fetch_add(&p->refs, 1);
	return p;
}

void
parcel_unref(struct parcel *p)
{
	if (p == NULL || atomic_fetch_sub(&p->refs, 1) > 1)
		return;
	(void)pthread_mutex_destroy(&p->mutex);
	free(p->text);
	free(p);
}

bool
parcel_fill(struct parcel *p, int fd, char *text, size_t n)
{
	bool is_in_time;

	(void)pthread_mutex_lock(&p->mutex);
	is_in_time = p->state == PARCEL_EMPTY;
	if (is_in_time) {
		p->state = PARCEL_FULL;
		p->fd = fd;
		p->text = text;
		p->n = n;
	}
	(void)pthread_mutex_unlock(&p->mutex);
	if (!is_in_time)
		free(text);
	return is_in_time;
}

void
parcel_send(struct parcel *p)
{
	ssize_t n;

	(void)pthread_mutex_lock(&p->mutex);
	if (p->state == PARCEL_FULL) {
		n = send(p->fd, p->text, p->n, MSG_DONTWAIT | MSG_NOSIGNAL);
		p->sent = n > 0 ? (size_t)n : 0;
		p->state = PARCEL_SENT;
	} else if (p->state == PARCEL_EMPTY) {
		p->state = PARCEL_TAKEN;
	}
	(void)pthread_mutex_unlock(&p->mutex);
}

size_t
parcel_take(struct parcel *p, const char **rest, size_t *n)
{
	size_t sent;

	(void)pthread_mutex_lock(&p->mutex);
	p->state = PARCEL_TAKEN;
	p->fd = -1;
	sent = p->sent;
	*rest = p->text == NULL ? "" : p->text + sent;
	*n = p->n - sent;
	(void)pthread_mutex_unlock(&p->mutex);
	return sent;
}
