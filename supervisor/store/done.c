#include "supervisor/store/done.h"

#include <sys/eventfd.h>
#include <errno.h>
#include <pthread.h>

#include <event2/event.h>

#include "common/xmalloc.h"

struct done {
	pthread_mutex_t mutex;
	struct op *head; /* under the mutex */
	struct op **tail;
	struct op *delivering; /* the loop's: taken, not yet delivered */
	bool busy;             /* done_cb is on the stack, */
	bool closed;           /* and done_free was called in it */
	struct event *ev;
	int fd;
	void (*on_damaged)(const struct err *why, void *arg);
	void *on_damaged_arg;
	void (*on_events)(uint64_t tenant, void *arg);
	void *on_events_arg;
};

static struct op *
take_all(struct done *d)
{
	struct op *list;

	(void)pthread_mutex_lock(&d->mutex);
	list = d->head;
	d->head = NULL;
	d->tail = &d->head;
	(void)pthread_mutex_unlock(&d->mutex);
	return list;
}

void
done_deliver(struct done *d)
{
	struct err why = {0};

	if (d->busy)
		return;
	d->delivering = take_all(d);
	if (d->delivering == NULL)
		return;
	d->busy = true;
	while (d->delivering != NULL) {
		struct op *op = d->delivering;

		d->delivering = op->next;
		if (op->rc == 0 && op->has_events && d->on_events != NULL)
			d->on_events(op->events_of, d->on_events_arg);
		if (op->deliver != NULL)
			op->deliver(op);
		if (op->rc == ERR_DAMAGED && why.code == 0)
			(void)err_set(&why, op->rc, "%s", op->why.msg);
		op_release(op);
	}
	d->busy = false;
	if (d->closed)
		free(d);
	else if (why.code != 0 && d->on_damaged != NULL)
		d->on_damaged(&why, d->on_damaged_arg);
}

static void
done_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	(void)what;
	/* First the counter, then the list: a push between the two wakes us
	 * for nothing, the other way round it would be forgotten. */
	(void)!read(fd, &n, sizeof(n));
	done_deliver(arg);
}

int
done_new(struct event_base *base, struct done **out, struct err *e)
{
	struct done *d;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd == -1)
		return err_set(e, ERR_SYS, "eventfd: %s", strerror(errno));
	d = xcalloc(1, sizeof(*d));
	d->fd = fd;
	d->tail = &d->head;
	(void)pthread_mutex_init(&d->mutex, NULL);
	d->ev = event_new(base, fd, EV_READ | EV_PERSIST, done_cb, d);
	if (d->ev == NULL || event_add(d->ev, NULL) != 0) {
		done_free(d);
		return err_set(e, ERR_SYS, "no event for the store");
	}
	*out = d;
	return 0;
}

void
done_on_damaged(
    struct done *d, void (*cb)(const struct err *why, void *arg), void *arg)
{
	d->on_damaged = cb;
	d->on_damaged_arg = arg;
}

void
done_on_events(
    struct done *d, void (*cb)(uint64_t tenant, void *arg), void *arg)
{
	d->on_events = cb;
	d->on_events_arg = arg;
}

void
done_free(struct done *d)
{
	if (d == NULL)
		return;
	if (d->ev != NULL)
		event_free(d->ev);
	op_release_list(d->delivering);
	d->delivering = NULL;
	op_release_list(d->head);
	(void)pthread_mutex_destroy(&d->mutex);
	(void)close(d->fd);
	d->closed = true;
	if (!d->busy)
		free(d);
}

void
done_push(struct done *d, struct op *list)
{
	const uint64_t one = 1;
	struct op *last = list;
	bool first;

	if (list == NULL)
		return;
	while (last->next != NULL)
		last = last->next;
	(void)pthread_mutex_lock(&d->mutex);
	first = d->head == NULL;
	*d->tail = list;
	d->tail = &last->next;
	(void)pthread_mutex_unlock(&d->mutex);
	if (first)
		(void)!write(d->fd, &one, sizeof(one));
}
