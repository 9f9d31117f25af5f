#include "images/agent/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#define PROCS_REPORTS_PER_READ 16

static void
procs_report_cb(uint32_t events, void *arg)
{
	(void)events;
	procs_read_reports(arg);
}

int
procs_init(struct procs *ps, struct loop *loop, struct err *e)
{
	int fds[2];

	memset(ps, 0, sizeof(*ps));
	ps->loop = loop;
	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "pipe: %s", strerror(errno));
	ps->report_fd = fds[0];
	if (dup3(fds[1], KEEPER_REPORT_FD, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "dup: %s", strerror(errno));
	(void)close(fds[1]);
	if (fcntl(ps->report_fd, F_SETFL, O_NONBLOCK) == -1)
		return err_set(e, ERR_SYS, "fcntl: %s", strerror(errno));
	ps->report_token =
	    loop_add(loop, ps->report_fd, EPOLLIN, procs_report_cb, ps);
	if (ps->report_token == 0)
		return err_set(e, ERR_SYS, "epoll_ctl: %s", strerror(errno));
	keepers_init(&ps->keepers);
	remnants_init(&ps->remnants, loop);
	return 0;
}

static int
free_slot(const struct procs *ps)
{
	for (int i = 0; i < PROCS_MAX; i++)
		if (ps->live[i] == NULL)
			return i;
	return -1;
}

struct proc *
procs_start(struct procs *ps, const struct proc_spec *spec,
    const struct proc_ops *ops, void *arg)
{
	const struct proc_host host = {ps->loop, &ps->keepers, &ps->remnants};
	int error, slot = free_slot(ps);
	struct proc *p;

	if (slot == -1 || ps->closing) {
		errno = EAGAIN;
		return NULL;
	}
	p = proc_new(spec, (uint32_t)slot, &host, ops, arg);
	error = proc_begin(p);
	if (error != 0) {
		proc_free(p);
		errno = error;
		return NULL;
	}
	ps->live[slot] = p;
	ps->nlive++;
	return p;
}

/* Has it ended?  Then its owner hears of it, and may start the next one. */
static void
procs_settle(struct procs *ps, struct proc *p)
{
	if (p->state != PROC_ENDED)
		return;
	ps->live[p->slot] = NULL;
	ps->nlive--;
	p->ops->on_end(&p->end, p->arg);
	proc_free(p);
}

void
procs_resume(struct procs *ps, struct proc *p)
{
	proc_resume(p);
	procs_settle(ps, p);
}

static void
take_report(struct procs *ps, const struct keeper_report *report)
{
	struct proc *p;

	if (report->slot >= PROCS_MAX)
		return;
	/* First: the owner's next process can then use this keeper. */
	keepers_on_report(&ps->keepers, report);
	ps->left_orphans = ps->left_orphans || report->left != 0;
	p = ps->live[report->slot];
	if (p == NULL || p->keeper != report->keeper)
		return;
	proc_on_report(p, report);
	procs_settle(ps, p);
}

void
procs_read_reports(struct procs *ps)
{
	struct keeper_report reports[PROCS_REPORTS_PER_READ];
	ssize_t n;

	/* Each is one atomic write of its keeper, which alone can reach the
	 * other end, so what is read is always whole ones. */
	do {
		n = read(ps->report_fd, reports, sizeof(reports));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(reports[0]); i++)
			take_report(ps, &reports[i]);
	} while (n == (ssize_t)sizeof(reports));
}

struct proc *
procs_by_keeper(const struct procs *ps, pid_t pid)
{
	for (size_t i = 0; i < PROCS_MAX; i++)
		if (ps->live[i] != NULL && ps->live[i]->keeper == pid)
			return ps->live[i];
	return NULL;
}

void
procs_on_keeper_lost(struct procs *ps, struct proc *p, enum keepers_loss loss)
{
	if (loss == KEEPERS_UNBEGUN)
		proc_on_keeper_gone(p);
	else
		proc_on_keeper_lost(p);
	procs_settle(ps, p);
}

void
procs_on_orphans_gone(struct procs *ps)
{
	for (size_t i = 0; i < PROCS_MAX; i++) {
		struct proc *p = ps->live[i];

		if (p == NULL || p->state != PROC_ORPHANED)
			continue;
		proc_on_orphans_gone(p);
		procs_settle(ps, p);
	}
}

void
procs_tick(struct procs *ps, uint64_t now_ms)
{
	size_t seen = 0;

	for (size_t i = 0; i < PROCS_MAX && seen < ps->nlive; i++) {
		struct proc *p = ps->live[i];

		if (p == NULL)
			continue;
		seen++;
		if (proc_next_ms(p) <= now_ms)
			proc_tick(p, now_ms);
	}
}

uint64_t
procs_next_ms(const struct procs *ps)
{
	uint64_t next = UINT64_MAX;
	size_t seen = 0;

	for (size_t i = 0; i < PROCS_MAX && seen < ps->nlive; i++) {
		const struct proc *p = ps->live[i];

		if (p == NULL)
			continue;
		seen++;
		if (proc_next_ms(p) < next)
			next = proc_next_ms(p);
	}
	return next;
}

void
procs_kill_all(struct procs *ps)
{
	ps->closing = true;
	for (size_t i = 0; i < PROCS_MAX; i++)
		if (ps->live[i] != NULL)
			proc_kill(ps->live[i], PROC_KILLED);
}
