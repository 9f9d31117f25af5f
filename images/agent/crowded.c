/*
 * What runs left behind is counted before what runs: nobody waits for its end.
 * The text has to fit a record's (struct runlog_end): with a run's id, little
 * room is left for words.
 */
#include "images/agent/crowded.h"

#include <errno.h>

#include "common/utf8.h"
#include "common/xmalloc.h"
#include "images/agent/tree.h"

#define WORDS "cannot start a process: "

struct most {
	struct uuid run;
	size_t count; /* processes; 0: nobody has any */
};

/* Below the keeper of a command that goes on. */
static struct most
most_at_work(const struct procs *ps)
{
	struct most most = {.count = 0};
	pid_t first;

	for (size_t i = 0; i < PROCS_MAX; i++) {
		const struct proc *p = ps->live[i];
		size_t n;

		if (p == NULL || p->keeper <= 0 || p->spec.origin == NULL)
			continue;
		n = tree_list(p->keeper, &first, 1);
		if (n > most.count)
			most = (struct most){p->spec.origin->run, n};
	}
	return most;
}

void
crowded_text(
    struct procs *ps, const struct proc_end *end, char *text, size_t size)
{
	AUTO(auto_free) char *whole = NULL;
	char run[UUID_TEXT_LEN + 1];
	struct most most;

	if (end->why != PROC_UNSTARTED || end->stage != KEEPER_FORK ||
	    end->error != EAGAIN)
		return;
	most.count = remnants_most(&ps->remnants, &most.run);
	if (most.count > 0) {
		uuid_format(&most.run, run);
		whole = xasprintf(WORDS "%zu left running by run %s; "
					"control_run kill or restart_sandbox",
		    most.count, run);
	} else {
		most = most_at_work(ps);
		if (most.count == 0)
			return;
		uuid_format(&most.run, run);
		whole = xasprintf(WORDS "%zu belong to run %s; "
					"control_run cancel or restart_sandbox",
		    most.count, run);
	}
	utf8_copy(text, size, whole);
}
