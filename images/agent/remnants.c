/*
 * remnants.c - what commands left behind: groups, their numbers, their log
 *
 *	report says "behind" -> remnants_add -> (its command's output is
 *	drained) -> remnants_take_output -> read on, into the log -> the keeper
 *	ends (reap.c) -> ENDED, kept for its log -> its place is wanted
 *
 * A look goes through /proc and makes the table of known processes anew: who
 * is still there keeps its number, who is new gets the next one.
 */
#include "images/agent/remnants.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include "common/clock.h"
#include "common/utf8.h"
#include "images/agent/tree.h"

#define LOOK_MAX 4096 /* more processes than that have no number */
#define KILL_ROUND_US 20000
#define STAT_BYTES 1024
#define CMDLINE_BYTES 512
#define STAT_START 20 /* fields between the name and the start's */
#define KILL_WAIT_MS 100
#define VICTIMS_MAX 64 /* whose death is waited for */

static const struct output_ops group_output_ops;

/* ---- one process in /proc */

/* A file of the process into text, NUL-terminated; its length, or -1. */
static ssize_t
read_file(pid_t pid, const char *name, char *text, size_t size)
{
	AUTO(auto_close) int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* false: it is gone, or dead and not reaped; *start, in the kernel's ticks,
 * tells it from another one of this number */
static bool
parse_stat(const char *text, uint64_t *start)
{
	/* "pid (name) state ...": the name may hold anything but its end is
	 * the last parenthesis. */
	const char *p = strrchr(text, ')');

	if (p == NULL || p[1] != ' ' || p[2] == '\0' || p[2] == 'Z' ||
	    p[2] == 'X')
		return false;
	p += 2;
	for (int i = 0; i < STAT_START - 1; i++) {
		p = strchr(p, ' ');
		if (p == NULL)
			return false;
		p++;
	}
	*start = strtoull(p, NULL, 10);
	return true;
}

static bool
is_alive(pid_t pid, uint64_t *start)
{
	char text[STAT_BYTES];

	return read_file(pid, "stat", text, sizeof(text)) > 0 &&
	    parse_stat(text, start);
}

/* Bytes of the character that begins there; 1 where there is none. */
static size_t
char_len(const char *text, size_t n)
{
	unsigned char c = (unsigned char)text[0];
	size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

	return len <= n && utf8_is_valid(text, len) ? len : 1;
}

/* The NULs are the ends of arguments. */
static void
make_printable(const char *text, size_t n, char *out, size_t size)
{
	size_t used = 0;

	while (n > 0 && text[n - 1] == '\0')
		n--;
	for (size_t i = 0; i < n;) {
		unsigned char c = (unsigned char)text[i];
		size_t len = char_len(text + i, n - i);

		if (used + len >= size)
			break;
		memcpy(out + used, text + i, len);
		if (c == '\0')
			out[used] = ' ';
		else if (len == 1 && c >= 0x80)
			out[used] = '?';
		used += len;
		i += len;
	}
	out[utf8_mask_controls(out, used)] = '\0';
}

/* Its command line in printable UTF-8, or its name in brackets where that is
 * empty; cut to size bytes with the NUL. */
static void
read_text(pid_t pid, char *out, size_t size)
{
	char text[CMDLINE_BYTES];
	ssize_t n = read_file(pid, "cmdline", text, sizeof(text));
	size_t len;

	if (n > 0) {
		make_printable(text, (size_t)n, out, size);
		return;
	}
	n = read_file(pid, "comm", text + 1, sizeof(text) - 2);
	len = n > 0 ? strcspn(text + 1, "\n") : 0;
	text[0] = '[';
	text[len + 1] = ']';
	make_printable(text, len + 2, out, size);
}

/* By a descriptor, which stays with the process whatever becomes of its
 * number. */
static void
send_signal(int fd, pid_t pid, int sig)
{
	if (fd == -1)
		(void)kill(pid, sig);
	else
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

struct victim {
	pid_t pid;
	uint64_t start;
};

/* Before they are killed: it and the first of those below it. */
static size_t
list_victims(pid_t pid, uint64_t start, struct victim victims[VICTIMS_MAX])
{
	pid_t pids[VICTIMS_MAX - 1];
	size_t total = tree_list(pid, pids, ARRAY_LEN(pids)), n = 0;

	victims[n++] = (struct victim){pid, start};
	for (size_t i = 0; i < total && i < ARRAY_LEN(pids); i++) {
		victims[n].pid = pids[i];
		if (is_alive(pids[i], &victims[n].start))
			n++;
	}
	return n;
}

static void
wait_dead(const struct victim *victims, size_t n)
{
	const struct timespec pause = {0, 200000};
	uint64_t end = clock_mono_ms() + KILL_WAIT_MS, now;

	for (size_t i = 0; i < n; i++)
		while (is_alive(victims[i].pid, &now) &&
		    now == victims[i].start && clock_mono_ms() < end)
			(void)nanosleep(&pause, NULL);
}

/* It and all below it, if it is still that one; waits a moment until it is
 * dead.  How many there were. */
static size_t
kill_one(pid_t pid, uint64_t start)
{
	AUTO(auto_close)
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct victim victims[VICTIMS_MAX];
	size_t n, nvictims;
	uint64_t now;

	if (!is_alive(pid, &now) || now != start)
		return 0;
	send_signal(fd, pid, SIGSTOP); /* it forks no more */
	nvictims = list_victims(pid, start, victims);
	n = tree_kill(pid, NULL, NULL, clock_mono_us() + KILL_ROUND_US);
	send_signal(fd, pid, SIGKILL);
	wait_dead(victims, nvictims);
	return n + 1;
}

/* ---- all of them */

void
remnants_init(struct remnants *ls, struct loop *loop)
{
	memset(ls, 0, sizeof(*ls));
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		struct remnant_group *g = &ls->groups[i];

		for (unsigned int k = 0; k < ARRAY_LEN(g->out); k++)
			output_init(&g->out[k], loop, k, &group_output_ops, g);
	}
}

/* ---- looking */

static bool
group_lives(const struct remnant_group *g)
{
	return g->used && g->state == LEFTLIST_RUNNING;
}

static uint32_t
known_id(const struct remnant *held, uint32_t n, pid_t pid, uint64_t start)
{
	for (uint32_t i = 0; i < n; i++)
		if (held[i].pid == pid && held[i].start == start)
			return held[i].id;
	return 0;
}

static void
group_look(struct remnants *ls, struct remnant_group *g)
{
	static struct remnant before[REMNANTS_KNOWN_MAX];
	static pid_t pids[LOOK_MAX];
	const uint32_t nbefore = g->nheld;
	size_t n = tree_list(g->keeper, pids, LOOK_MAX);
	uint64_t start;

	memcpy(before, g->held, nbefore * sizeof(before[0]));
	g->nheld = 0;
	g->count = n > LOOK_MAX ? (uint32_t)(n - LOOK_MAX) : 0;
	for (size_t i = 0; i < n && i < LOOK_MAX; i++) {
		struct remnant *p = &g->held[g->nheld];

		if (!is_alive(pids[i], &start))
			continue;
		g->count++;
		if (g->nheld == REMNANTS_KNOWN_MAX)
			continue;
		*p = (struct remnant){
		    .id = known_id(before, nbefore, pids[i], start),
		    .pid = pids[i],
		    .start = start};
		if (p->id == 0)
			p->id = ++ls->ids;
		g->nheld++;
	}
}

static void
describe(const struct remnant_group *g, struct runlog_left *left)
{
	left->count = g->count;
	for (uint32_t i = 0; i < g->nheld && i < RUNLOG_LEFT_SHOWN; i++) {
		struct runlog_left_one *one = &left->shown[i];

		one->id = g->held[i].id;
		one->pid = (uint32_t)g->held[i].pid;
		read_text(g->held[i].pid, one->text, sizeof(one->text));
		left->nshown = (uint8_t)(i + 1);
	}
}

/* ---- groups */

static void
group_close_output(struct remnant_group *g)
{
	output_close(&g->out[0]);
	output_close(&g->out[1]);
}

/* A place: a free one, or that of the oldest whose processes are gone. */
static struct remnant_group *
find_place(struct remnants *ls)
{
	struct remnant_group *best = NULL;

	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		struct remnant_group *g = &ls->groups[i];

		if (!g->used)
			return g;
		if (!group_lives(g) && !g->awaits_output &&
		    (best == NULL || g->order < best->order))
			best = g;
	}
	if (best != NULL) {
		group_close_output(best);
		ring_clear(&best->log);
	}
	return best;
}

static void
kill_at_once(struct remnants *ls, pid_t keeper, struct runlog_left *left)
{
	static struct remnant_group lost;

	lost.keeper = keeper;
	lost.nheld = 0;
	group_look(ls, &lost);
	describe(&lost, left);
	left->killed = 1;
	remnants_kill_tree(keeper);
}

struct remnant_group *
remnants_add(struct remnants *ls, const struct proc_origin *origin,
    pid_t keeper, struct runlog_left *left)
{
	struct remnant_group *g = find_place(ls);

	memset(left, 0, sizeof(*left));
	if (g == NULL) {
		kill_at_once(ls, keeper, left);
		return NULL;
	}
	g->used = true;
	g->awaits_output = true;
	g->tired = false;
	g->state = LEFTLIST_RUNNING;
	g->keeper = keeper;
	g->order = ++ls->orders;
	g->origin = *origin;
	g->nheld = 0;
	g->turn_bytes = 0;
	ring_init(&g->log, REMNANTS_LOG_BYTES);
	group_look(ls, g);
	describe(g, left);
	return g;
}

bool
remnants_take_output(struct remnant_group *g, struct output out[2])
{
	g->awaits_output = false;
	for (size_t i = 0; i < ARRAY_LEN(g->out); i++)
		if (out[i].fd != -1)
			output_move(&out[i], &g->out[i]);
	return g->state != LEFTLIST_KILLED && g->state != LEFTLIST_DISK_FULL;
}

void
remnants_on_reaped(struct remnants *ls, pid_t pid)
{
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		struct remnant_group *g = &ls->groups[i];

		if (!g->used || g->keeper != pid)
			continue;
		g->keeper = 0;
		g->count = g->nheld = 0;
		if (g->state == LEFTLIST_RUNNING)
			g->state = LEFTLIST_ENDED;
	}
}

/* ---- killing */

void
remnants_kill_tree(pid_t keeper)
{
	(void)tree_kill(keeper, NULL, NULL, clock_mono_us() + KILL_ROUND_US);
	/* Then PID 1 finds and kills what forked meanwhile. */
	(void)kill(keeper, SIGKILL);
}

static uint32_t
group_kill(
    struct remnants *ls, struct remnant_group *g, enum leftlist_state why)
{
	uint32_t n;

	group_look(ls, g);
	n = g->count;
	remnants_kill_tree(g->keeper);
	g->state = why;
	g->count = g->nheld = 0;
	return n;
}

static bool
is_of(const struct remnant_group *g, const struct uuid *run)
{
	return g->used && uuid_is_equal(&g->origin.run, run);
}

uint32_t
remnants_kill_run(
    struct remnants *ls, const struct uuid *run, enum leftlist_state why)
{
	uint32_t n = 0;

	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++)
		if (group_lives(&ls->groups[i]) && is_of(&ls->groups[i], run))
			n += group_kill(ls, &ls->groups[i], why);
	return n;
}

void
remnants_kill_all(struct remnants *ls, enum leftlist_state why)
{
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++)
		if (group_lives(&ls->groups[i]))
			(void)group_kill(ls, &ls->groups[i], why);
}

uint32_t
remnants_kill_one(struct remnants *ls, const struct uuid *run, uint32_t id)
{
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		struct remnant_group *g = &ls->groups[i];

		if (!group_lives(g) || !is_of(g, run))
			continue;
		for (uint32_t k = 0; k < g->nheld; k++)
			if (g->held[k].id == id)
				return (uint32_t)kill_one(
				    g->held[k].pid, g->held[k].start);
	}
	return 0;
}

/* ---- its output */

/* Output is read into here first: how much of the log it replaces is known only
 * after the read. */
static uint8_t scratch[REMNANTS_LOG_BYTES];

static size_t
on_room(void *arg, unsigned int stream)
{
	const struct remnant_group *g = arg;

	(void)stream;
	return g->tired ? 0 : sizeof(scratch);
}

static int
on_space(void *arg, unsigned int stream, size_t n, struct iovec iov[2])
{
	(void)arg;
	(void)stream;
	iov[0].iov_base = scratch;
	iov[0].iov_len = n;
	return 1;
}

static void
on_taken(void *arg, unsigned int stream, size_t n)
{
	struct remnant_group *g = arg;

	(void)stream;
	if (n > ring_room(&g->log))
		ring_release(&g->log, g->log.end + n - REMNANTS_LOG_BYTES);
	ring_append(&g->log, scratch, n);
	g->turn_bytes += (uint32_t)n;
	g->tired = g->turn_bytes >= REMNANTS_RATE_BYTES;
}

static const struct output_ops group_output_ops = {on_room, on_space, on_taken};

static bool
any_tired(const struct remnants *ls)
{
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++)
		if (ls->groups[i].tired)
			return true;
	return false;
}

void
remnants_tick(struct remnants *ls, uint64_t now_ms)
{
	if (ls->orders == 0) /* nothing was ever left behind */
		return;
	if (ls->turn_ms == 0 && any_tired(ls))
		ls->turn_ms = now_ms + REMNANTS_TURN_MS;
	if (ls->turn_ms == 0 || now_ms < ls->turn_ms)
		return;
	ls->turn_ms = 0;
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		struct remnant_group *g = &ls->groups[i];

		g->turn_bytes = 0;
		g->tired = false;
		if (g->used && !g->awaits_output) {
			output_watch(&g->out[0]);
			output_watch(&g->out[1]);
		}
	}
}

uint64_t
remnants_next_ms(const struct remnants *ls)
{
	return ls->turn_ms != 0 ? ls->turn_ms : UINT64_MAX;
}

/* ---- to be asked */

bool
remnants_is_empty(const struct remnants *ls)
{
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX && ls->orders > 0; i++)
		if (group_lives(&ls->groups[i]))
			return false;
	return true;
}

uint32_t
remnants_most(struct remnants *ls, struct uuid *run)
{
	uint32_t most = 0;

	(void)remnants_count(ls);
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		uint32_t n = 0;

		for (size_t k = 0; k < REMNANTS_GROUPS_MAX; k++)
			if (group_lives(&ls->groups[k]) &&
			    is_of(&ls->groups[k], &ls->groups[i].origin.run))
				n += ls->groups[k].count;
		if (n <= most)
			continue;
		most = n;
		*run = ls->groups[i].origin.run;
	}
	return most;
}

uint32_t
remnants_count(struct remnants *ls)
{
	uint32_t n = 0;

	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++) {
		struct remnant_group *g = &ls->groups[i];

		if (!group_lives(g))
			continue;
		group_look(ls, g);
		n += g->count;
	}
	return n;
}

static void
list_processes(const struct remnant_group *g, struct leftlist *l)
{
	static char texts[LEFTLIST_PROCESSES_MAX][LEFTLIST_TEXT_MAX + 1];

	l->count += g->count;
	for (uint32_t i = 0; i < g->nheld; i++) {
		struct leftlist_process *p = &l->processes[l->nprocesses];

		if (l->nprocesses == LEFTLIST_PROCESSES_MAX)
			return;
		p->id = g->held[i].id;
		p->pid = (uint32_t)g->held[i].pid;
		p->command = g->origin.command;
		p->text = texts[l->nprocesses];
		read_text(
		    g->held[i].pid, texts[l->nprocesses], sizeof(texts[0]));
		p->ntext = strlen(p->text);
		l->nprocesses++;
	}
}

/* At most max of its last bytes; returns where the next one's go. */
static size_t
list_log(struct remnant_group *g, struct leftlist *l, size_t at, size_t max)
{
	static uint8_t output[LEFTLIST_OUTPUT_MAX];
	struct leftlist_log *log = &l->logs[l->nlogs++];
	size_t n = ring_used(&g->log);

	if (n > max)
		n = max;
	log->command = g->origin.command;
	log->state = g->state;
	log->bytes = g->log.end;
	log->output = output + at;
	log->noutput = n;
	if (n > 0)
		ring_get(&g->log, g->log.end - n, output + at, n);
	return at + n;
}

void
remnants_list(struct remnants *ls, const struct uuid *run, struct leftlist *l)
{
	struct remnant_group *of[REMNANTS_GROUPS_MAX];
	size_t n = 0, at = 0;

	memset(l, 0, sizeof(*l));
	l->total = remnants_count(ls);
	for (size_t i = 0; i < REMNANTS_GROUPS_MAX; i++)
		if (is_of(&ls->groups[i], run))
			of[n++] = &ls->groups[i];
	for (size_t i = 0; i < n; i++) {
		size_t share = (LEFTLIST_OUTPUT_MAX - at) / (n - i);

		if (group_lives(of[i]))
			list_processes(of[i], l);
		at = list_log(of[i], l, at, share);
	}
}
