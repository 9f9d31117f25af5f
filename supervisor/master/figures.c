#include "supervisor/master/figures.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/metric.h"

#define FIGURES_S 5
#define FIGURES_PROCESSES 80 /* at a time */

/* As the values of the label "role" stand in schema/metrics.txt. */
enum figures_role {
	FIGURES_SUPERVISOR,
	FIGURES_FRONT,
	FIGURES_WORKER,
	FIGURES_KEYS,
	FIGURES_COURIER,
	FIGURES_ROLES
};
_Static_assert(METRIC_PROCESS_RESIDENT_BYTES_CELLS == FIGURES_ROLES &&
	METRIC_PROCESS_RESTARTS_TOTAL_CELLS == FIGURES_ROLES - 1,
    "the label role has all roles");

static struct {
	int fd;
	struct event *timer;
	struct {
		pid_t pid; /* 0: nobody */
		enum figures_role role;
	} processes[FIGURES_PROCESSES];
} figures = {.fd = -1};

static enum figures_role
role_of(enum msg_role role)
{
	static const enum figures_role roles[] = {
	    [MSG_ROLE_FRONT] = FIGURES_FRONT,
	    [MSG_ROLE_WORKER] = FIGURES_WORKER,
	    [MSG_ROLE_KEYS] = FIGURES_KEYS,
	    [MSG_ROLE_COURIER] = FIGURES_COURIER,
	};

	return roles[role];
}

/* The second number of statm is what is resident, in pages; 0: not known. */
static uint64_t
resident_bytes(pid_t pid)
{
	char path[40], text[128], *second;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	second = strchr(text, ' ');
	return second == NULL ?
	    0 :
	    strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
measure_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t sums[FIGURES_ROLES] = {0};

	(void)fd;
	(void)what;
	(void)arg;
	sums[FIGURES_SUPERVISOR] = resident_bytes(getpid());
	for (size_t i = 0; i < FIGURES_PROCESSES; i++)
		if (figures.processes[i].pid != 0)
			sums[figures.processes[i].role] +=
			    resident_bytes(figures.processes[i].pid);
	for (unsigned int i = 0; i < FIGURES_ROLES; i++)
		metric_set(METRIC_PROCESS_RESIDENT_BYTES + i, sums[i]);
}

int
figures_open(struct event_base *base, struct err *e)
{
	static const struct timeval period = {.tv_sec = FIGURES_S};

	figures.fd = metric_make(e);
	if (figures.fd < 0)
		return figures.fd;
	figures.timer = event_new(base, -1, EV_PERSIST, measure_cb, NULL);
	if (figures.timer == NULL || event_add(figures.timer, &period) == -1)
		return err_set(e, ERR_SYS, "metrics: no timer");
	measure_cb(-1, 0, NULL);
	return 0;
}

void
figures_close(void)
{
	if (figures.timer != NULL)
		event_free(figures.timer);
	figures.timer = NULL;
	if (figures.fd >= 0)
		(void)close(figures.fd);
	figures.fd = -1;
}

void
figures_send(struct ipc_chan *chan, enum msg_role role)
{
	int copy;

	if (figures.fd < 0 || role != MSG_ROLE_FRONT)
		return;
	copy = fcntl(figures.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (copy == -1)
		log_error("metrics: %s", strerror(errno));
	else
		msg_send_metrics_memory(
		    chan, &(struct msg_metrics_memory){.memory = copy});
}

void
figures_born(enum msg_role role, pid_t pid, enum figures_start how)
{
	enum figures_role r = role_of(role);

	if (how == FIGURES_AGAIN)
		metric_add(
		    METRIC_PROCESS_RESTARTS_TOTAL + (unsigned int)r - 1, 1);
	for (size_t i = 0; i < FIGURES_PROCESSES; i++)
		if (figures.processes[i].pid == 0) {
			figures.processes[i].pid = pid;
			figures.processes[i].role = r;
			return;
		}
}

void
figures_died(pid_t pid)
{
	for (size_t i = 0; i < FIGURES_PROCESSES; i++)
		if (figures.processes[i].pid == pid)
			figures.processes[i].pid = 0;
}
