#include "supervisor/core/run_step.h"

#define END (RUN_DO_FINISH | RUN_DO_STORE)
#define LEAVE_AND_END (RUN_DO_LEAVE_SANDBOX | END)

struct run_arc {
	bool is_there;
	struct run_move move;
};
#define MOVE(to, deeds)                                                        \
	{                                                                      \
		true,                                                          \
		{                                                              \
			RUN_##to, (deeds)                                      \
		}                                                              \
	}
#define ON(from, what) [RUN_##from][RUN_##what]

static const struct run_arc table[RUN_NPHASE][RUN_NHAPPENING] = {
    ON(WAITING, ITS_TURN) = MOVE(SENT, RUN_DO_SEND),
    ON(WAITING, CANCEL) = MOVE(STORING, LEAVE_AND_END),
    ON(WAITING, SANDBOX_GONE) = MOVE(STORING, LEAVE_AND_END),

    ON(SENT, WORKER_CAME) = MOVE(SENT, RUN_DO_SEND),
    ON(SENT, WORKER_ENDED) = MOVE(STORING, LEAVE_AND_END),
    ON(SENT, WORKER_ENDED_LONG) =
	MOVE(READING, RUN_DO_LEAVE_SANDBOX | RUN_DO_READ_LOG),
    ON(SENT, CANCEL) = MOVE(SENT, RUN_DO_TELL_CANCEL),
    ON(SENT, SANDBOX_GONE) =
	MOVE(READING, RUN_DO_LEAVE_SANDBOX | RUN_DO_READ_LOG),

    ON(READING, LOG_READ) = MOVE(STORING, END),

    ON(STORING, STORED) =
	MOVE(OVER, RUN_DO_FORGET | RUN_DO_SAY_ENDED | RUN_DO_LEAVE),
    ON(STORING, STORE_FAILED) = MOVE(STORING, RUN_DO_STORE_LATER),
};

struct run_move
run_step(enum run_phase from, enum run_happening what)
{
	const struct run_arc *r = &table[from][what];

	if (!r->is_there)
		return (struct run_move){.to = from};
	return r->move;
}

const char *
run_phase_name(enum run_phase p)
{
	static const char *const names[RUN_NPHASE] = {
	    [RUN_WAITING] = "waiting",
	    [RUN_SENT] = "sent",
	    [RUN_READING] = "reading",
	    [RUN_STORING] = "storing",
	    [RUN_OVER] = "over",
	};

	return p < RUN_NPHASE ? names[p] : "?";
}
