#include "supervisor/master/figures.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/child.h"
#include "common/metric.h"
#include "common/timer.h"
#include "supervisor/master/spawn.h"

#define FIGURES_MS 5000
#define FIGURES_PROCESSES 80 /* at a time */

/* The label "role" in schema/metrics.txt: the supervisor, then the others. */
enum figures_role {
	FIGURES_SUPERVISOR,
	FIGURES_FRONT,
	FIGURES_ROLES = FIGURES_FRONT + CHILD_ROLES
};
_Static_assert(METRIC_PROCESS_RESIDENT_BYTES_CELLS == FIGURES_ROLES &&
	METRIC_PROCESS_RESTARTS_TOTAL_CELLS == FIGURES_ROLES - 1,
    "the label role has all roles");

static struct {
	int fd;
	struct timer *timer;
	struct {
		pid_t pid; /* 0: nobody */
		enum msg_role role;
	} processes[FIGURES_PROCESSES];
} figures = {.fd = -1};

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
measure_cb(void *arg)
{
	uint64_t sums[FIGURES_ROLES] = {0};

	(void)arg;
	sums[FIGURES_SUPERVISOR] = resident_bytes(getpid());
	for (size_t i = 0; i < FIGURES_PROCESSES; i++)
		if (figures.processes[i].pid != 0)
			sums[FIGURES_FRONT + figures.processes[i].role] +=
			    resident_bytes(figures.processes[i].pid);
	for (unsigned int i = 0; i < FIGURES_ROLES; i++)
		metric_set(METRIC_PROCESS_RESIDENT_BYTES + i, sums[i]);
	timer_set_ms(figures.timer, FIGURES_MS);
}

int
figures_open(struct event_base *base, struct err *e)
{
	figures.fd = metric_make(e);
	if (figures.fd < 0)
		return figures.fd;
	figures.timer = timer_new(base, measure_cb, NULL);
	measure_cb(NULL);
	return 0;
}

void
figures_close(void)
{
	timer_free(figures.timer);
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
	copy = spawn_copy(figures.fd, "metrics");
	if (copy != -1)
		msg_send_metrics_memory(
		    chan, &(struct msg_metrics_memory){.memory = copy});
}

void
figures_born(enum msg_role role, pid_t pid, enum figures_start how)
{
	if (how == FIGURES_AGAIN)
		metric_add(
		    METRIC_PROCESS_RESTARTS_TOTAL + (unsigned int)role, 1);
	for (size_t i = 0; i < FIGURES_PROCESSES; i++)
		if (figures.processes[i].pid == 0) {
			figures.processes[i].pid = pid;
			figures.processes[i].role = role;
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
