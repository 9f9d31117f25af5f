/*
 * remnants.h - what commands left behind in this sandbox, and its output
 *
 * A group is what one command left behind: all that is below its keeper, which
 * has retired (keeper.h) and ends with the last of them.
 *
 *	RUNNING	the keeper is there
 *	ENDED	the last one has ended, or somebody killed the keeper
 *	KILLED	by us: with the keeper, so that reap.c ends whatever forked
 *		meanwhile
 *
 * A group's pipes are read on, at most REMNANTS_RATE_BYTES in REMNANTS_TURN_MS,
 * so that a process that prints without end costs its sandbox little.  The last
 * REMNANTS_LOG_BYTES of both are kept, also after the group's end, until a new
 * group needs its place.
 *
 * Processes are looked for in /proc when somebody asks, and once when their
 * command ends.  Each that is seen gets a number that no other process of this
 * sandbox ever has.
 */
#ifndef AGENT_REMNANTS_H
#define AGENT_REMNANTS_H

#include <sys/types.h>

#include "common/base.h"
#include "common/leftlist.h"
#include "common/runlog.h"
#include "common/uuid.h"
#include "images/agent/output.h"
#include "images/agent/proc_spec.h"
#include "images/agent/ring.h"

#define REMNANTS_GROUPS_MAX LEFTLIST_LOGS_MAX
#define REMNANTS_KNOWN_MAX LEFTLIST_PROCESSES_MAX /* of a group */
#define REMNANTS_LOG_BYTES 32768u
#define REMNANTS_TURN_MS 100
#define REMNANTS_RATE_BYTES (1u << 20)

struct remnant { /* a process with a number */
	uint32_t id;
	pid_t pid;
	uint64_t start;
};

struct remnant_group { /* remnants.c writes */
	bool used;
	bool awaits_output; /* until remnants_take_output */
	bool tired;         /* its share of this turn is read */
	enum leftlist_state state;
	pid_t keeper; /* 0: gone */
	uint64_t order;
	struct proc_origin origin;
	uint32_t count; /* alive when looked at last */
	uint32_t nheld;
	struct remnant held[REMNANTS_KNOWN_MAX];
	struct output out[2]; /* stdout, stderr */
	struct ring log;
	uint32_t turn_bytes;
};

struct remnants { /* remnants.c writes */
	uint32_t ids;
	uint64_t orders;
	uint64_t turn_ms; /* when reading goes on; 0: no group is tired */
	struct remnant_group groups[REMNANTS_GROUPS_MAX];
};

void remnants_init(struct remnants *ls, struct loop *loop);

/*
 * remnants_add - the keeper of this origin has retired; *left says what it
 * left behind, count 0: nothing after all
 *
 * NULL when there are REMNANTS_GROUPS_MAX that live: then all of it is
 * killed, which *left says.  Else remnants_take_output follows.
 */
struct remnant_group *remnants_add(struct remnants *ls,
    const struct proc_origin *origin, pid_t keeper, struct runlog_left *left);
/* remnants_take_output - the two pipes, as far as they have no end.  False:
 * the group was killed since. */
bool remnants_take_output(struct remnant_group *g, struct output out[2]);
/* remnants_on_reaped - a child of ours, perhaps one of those keepers */
void remnants_on_reaped(struct remnants *ls, pid_t pid);

/* remnants_kill_tree - all below that keeper, and itself */
void remnants_kill_tree(pid_t keeper);
/* remnants_kill_run - all that this run left behind; how many */
uint32_t remnants_kill_run(
    struct remnants *ls, const struct uuid *run, enum leftlist_state why);
void remnants_kill_all(struct remnants *ls, enum leftlist_state why);
/* remnants_kill_one - the process of that number, and all below it; how many,
 * 0: the run has none of that number */
uint32_t remnants_kill_one(
    struct remnants *ls, const struct uuid *run, uint32_t id);

/* remnants_count - how many live now */
uint32_t remnants_count(struct remnants *ls);
/* remnants_most - how many live now of the run that left most of them, and
 * which it is; 0: none */
uint32_t remnants_most(struct remnants *ls, struct uuid *run);
bool remnants_is_empty(const struct remnants *ls); /* none lives */
/* remnants_list - *l, but for killed, of a run; what it points to is there
 * until the next call */
void remnants_list(
    struct remnants *ls, const struct uuid *run, struct leftlist *l);

void remnants_tick(struct remnants *ls, uint64_t now_ms);
uint64_t remnants_next_ms(const struct remnants *ls); /* UINT64_MAX: never */

#endif
