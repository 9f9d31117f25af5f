#include "images/agent/keepers.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/xmalloc.h"

enum keepers_state {
	KEEPERS_IDLE,
	KEEPERS_BUSY,
	KEEPERS_RETIRED,
	KEEPERS_LEAVING
};

struct keepers_entry {
	TAILQ_ENTRY(keepers_entry) link;
	pid_t pid;
	int socket; /* -1: RETIRED, LEAVING */
	enum keepers_state state;
	uint32_t order; /* of the job it has, or had last */
	struct keeper_shared *shared;
};

void
keepers_init(struct keepers *ks)
{
	memset(ks, 0, sizeof(*ks));
	TAILQ_INIT(&ks->list);
}

static struct keepers_entry *
keepers_find(const struct keepers *ks, pid_t pid)
{
	struct keepers_entry *k;

	TAILQ_FOREACH (k, &ks->list, link)
		if (k->pid == pid)
			break;
	return k;
}

static void
keepers_part(
    struct keepers *ks, struct keepers_entry *k, enum keepers_state state)
{
	if (k->state == KEEPERS_IDLE)
		ks->nidle--;
	else if (k->state == KEEPERS_BUSY)
		ks->nbusy--;
	k->state = state;
	if (k->socket != -1)
		(void)close(k->socket);
	k->socket = -1;
}

static void
keepers_let_go(struct keepers *ks, struct keepers_entry *k)
{
	keepers_part(ks, k, KEEPERS_LEAVING);
}

/* A new one, idle; NULL with errno. */
static struct keepers_entry *
keepers_fork(struct keepers *ks)
{
	struct keepers_entry *k;
	struct keeper_shared *shared;
	int pair[2], error;
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		return NULL;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared != MAP_FAILED)
		pid = fork();
	if (pid == 0)
		keeper_main(pair[1], shared);
	error = errno;
	(void)close(pair[1]);
	if (pid == -1) {
		(void)close(pair[0]);
		if (shared != MAP_FAILED)
			(void)munmap(shared, sizeof(*shared));
		errno = error;
		return NULL;
	}
	k = xcalloc(1, sizeof(*k));
	k->pid = pid;
	k->socket = pair[0];
	k->shared = shared;
	k->state = KEEPERS_IDLE;
	ks->nidle++;
	TAILQ_INSERT_HEAD(&ks->list, k, link);
	return k;
}

void
keepers_prepare(struct keepers *ks)
{
	if (ks->nidle == 0)
		(void)keepers_fork(ks);
}

static struct keepers_entry *
keepers_idle(const struct keepers *ks)
{
	struct keepers_entry *k;

	if (ks->nidle == 0)
		return NULL;
	TAILQ_FOREACH (k, &ks->list, link)
		if (k->state == KEEPERS_IDLE)
			break;
	return k;
}

static uint32_t
keepers_wanted(const struct keepers *ks)
{
	if (ks->nbusy == 0)
		return 1;
	return ks->nbusy < KEEPERS_IDLE_MAX ? ks->nbusy : KEEPERS_IDLE_MAX;
}

static int
keepers_give(
    struct keepers *ks, struct keepers_entry *k, struct keeper_job *job)
{
	int error;

	job->order = ++ks->orders;
	error = keeper_send(k->socket, job);
	if (error != 0) {
		/* Such as one that root's code has killed. */
		keepers_let_go(ks, k);
		return error;
	}
	ks->nidle--;
	ks->nbusy++;
	k->state = KEEPERS_BUSY;
	k->order = job->order;
	/* Root's code may have stopped it while it waited. */
	(void)kill(k->pid, SIGCONT);
	TAILQ_REMOVE(&ks->list, k, link);
	TAILQ_INSERT_HEAD(&ks->list, k, link);
	return 0;
}

pid_t
keepers_start(struct keepers *ks, struct keeper_job *job)
{
	struct keepers_entry *k;
	int error;

	while ((k = keepers_idle(ks)) != NULL)
		if (keepers_give(ks, k, job) == 0)
			return k->pid;
	k = keepers_fork(ks);
	if (k == NULL)
		return -1;
	error = keepers_give(ks, k, job);
	if (error == 0)
		return k->pid;
	errno = error;
	return -1;
}

void
keepers_kill(struct keepers *ks, pid_t pid)
{
	struct keepers_entry *k = keepers_find(ks, pid);

	if (k == NULL || k->state != KEEPERS_BUSY)
		return;
	atomic_store(&k->shared->kill, k->order);
	/* Not reaped yet, so the number is still its own.  Root's code may
	 * have stopped it. */
	(void)kill(pid, SIGTERM);
	(void)kill(pid, SIGCONT);
}

void
keepers_on_report(struct keepers *ks, const struct keeper_report *report)
{
	struct keepers_entry *k = keepers_find(ks, report->keeper);

	if (k == NULL || k->state != KEEPERS_BUSY)
		return;
	if (report->left != 0 || report->behind != 0) {
		keepers_part(ks, k,
		    report->behind != 0 ? KEEPERS_RETIRED : KEEPERS_LEAVING);
		return;
	}
	k->state = KEEPERS_IDLE;
	ks->nbusy--;
	ks->nidle++;
	while (ks->nidle > keepers_wanted(ks) && (k = keepers_idle(ks)) != NULL)
		keepers_let_go(ks, k);
}

enum keepers_loss
keepers_on_reaped(struct keepers *ks, pid_t pid)
{
	struct keepers_entry *k = keepers_find(ks, pid);
	enum keepers_loss loss = KEEPERS_QUIET;

	if (k == NULL)
		return KEEPERS_LOST;
	if (k->state == KEEPERS_RETIRED)
		loss = KEEPERS_LOST;
	else if (k->state == KEEPERS_BUSY)
		loss = atomic_load(&k->shared->begun) == k->order ?
		    KEEPERS_LOST :
		    KEEPERS_UNBEGUN;
	keepers_let_go(ks, k);
	TAILQ_REMOVE(&ks->list, k, link);
	(void)munmap(k->shared, sizeof(*k->shared));
	free(k);
	return loss;
}

bool
keepers_has(const struct keepers *ks, pid_t pid)
{
	return keepers_find(ks, pid) != NULL;
}
