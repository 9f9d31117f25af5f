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

#include <signal.h>

#include "common/clock.h"
#include "images/agent/remnant_scan.h"
#include "images/agent/tree.h"

#define LOOK_MAX 4096 /* more processes than that have no number */
#define KILL_ROUND_US 20000

static const struct output_ops group_output_ops;

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

		if (!remnant_is_alive(pids[i], &start))
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
		remnant_read_text(g->held[i].pid, one->text, sizeof(one->text));
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
	/* What forked meanwhile is PID 1's then, and no keeper's. */
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
				return (uint32_t)remnant_kill(
				    g->held[k].pid, g->held[k].start);
	}
	return 0;
}

/* ---- its output */

/* Into here first, since how much of the log it takes the place of is known
 * only when it was read. */
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
		remnant_read_text(
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
