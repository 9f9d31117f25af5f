#include "supervisor/core/sandbox_step.h"

/* ---- the table */

#define GIVE_UP                                                                \
	(SANDBOX_DO_CLOSE_GATE | SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_SAVE)
#define LOSE                                                                   \
	(GIVE_UP | SANDBOX_DO_SAY_FAILED | SANDBOX_DO_REQUEUE |                \
	    SANDBOX_DO_END_LOST | SANDBOX_DO_SAY_GONE)
#define FAIL                                                                   \
	(GIVE_UP | SANDBOX_DO_SAY_FAILED | SANDBOX_DO_END_FAILED |             \
	    SANDBOX_DO_SAY_GONE)
#define LET_GO (GIVE_UP | SANDBOX_DO_SAY_FAILED | SANDBOX_DO_END_CANCELED)
/* No row: nothing of it is kept, and no other has its runs. */
#define UNDO                                                                   \
	(SANDBOX_DO_CLOSE_GATE | SANDBOX_DO_LEAVE_NAME |                       \
	    SANDBOX_DO_SAY_FAILED | SANDBOX_DO_END_FAILED)
/* As when it is lost, but that there is something to remove. */
#define RENEW                                                                  \
	(GIVE_UP | SANDBOX_DO_TELL_REMOVE | SANDBOX_DO_REQUEUE |               \
	    SANDBOX_DO_END_LOST)
#define GET_READY                                                              \
	(SANDBOX_DO_SAVE | SANDBOX_DO_OPEN_GATE | SANDBOX_DO_SAY_READY)
#define CLEARED (SANDBOX_DO_SAVE | SANDBOX_DO_SAY_GONE)

struct sandbox_arc {
	bool is_there;
	struct sandbox_move move;
};
#define MOVE(to, deeds, word)                                                  \
	{                                                                      \
		true,                                                          \
		{                                                              \
			SANDBOX_##to, (deeds), SANDBOX_IS_##word               \
		}                                                              \
	}
#define ON(from, what) [SANDBOX_##from][SANDBOX_##what]

static const struct sandbox_arc table[SANDBOX_NSTATE][SANDBOX_NHAPPENING] = {
    ON(NEW, WORKER_CAME) = MOVE(NEW, SANDBOX_DO_ASK_TURN, CREATING),
    ON(NEW, TURN_CAME) = MOVE(CREATING,
	SANDBOX_DO_TELL_CREATE | SANDBOX_DO_RESEND | SANDBOX_DO_OPEN_GATE,
	CREATING),
    /* No engine has it: nothing is to be removed. */
    ON(NEW, UNWANTED) = MOVE(GONE, LET_GO | SANDBOX_DO_SAY_GONE, REMOVED),
    ON(NEW, UNRECORDED) = MOVE(GONE, UNDO | SANDBOX_DO_SAY_GONE, REMOVED),

    ON(CREATING, WORKER_WENT) = MOVE(DOUBTFUL, SANDBOX_DO_CLOSE_GATE, CREATING),
    ON(CREATING, IS_UP) = MOVE(READY, SANDBOX_DO_TOUCH | GET_READY, READY),
    ON(CREATING, FAILED) = MOVE(GONE, FAIL, REMOVED),
    ON(CREATING, LOST) = MOVE(GONE, LOSE, LOST),
    ON(CREATING, UNRECORDED) =
	MOVE(REMOVING, UNDO | SANDBOX_DO_TELL_REMOVE, REMOVING),
    ON(CREATING, UNWANTED) =
	MOVE(REMOVING, LET_GO | SANDBOX_DO_TELL_REMOVE, REMOVING),

    ON(DOUBTFUL, WORKER_CAME) = MOVE(LOOKING, SANDBOX_DO_TELL_ADOPT, CREATING),
    ON(DOUBTFUL, UNRECORDED) = MOVE(LEAVING, UNDO, REMOVING),
    ON(DOUBTFUL, UNWANTED) = MOVE(LEAVING, LET_GO, REMOVING),

    ON(LOOKING, WORKER_WENT) = MOVE(DOUBTFUL, SANDBOX_DO_CLOSE_GATE, CREATING),
    ON(LOOKING, IS_UP) =
	MOVE(READY, SANDBOX_DO_TOUCH | GET_READY | SANDBOX_DO_RESEND, READY),
    ON(LOOKING, FAILED) = MOVE(GONE, FAIL, REMOVED),
    /* It never came to be: it is to be made, its runs are waiting. */
    ON(LOOKING, LOST) = MOVE(NEW, SANDBOX_DO_ASK_TURN, CREATING),
    ON(LOOKING, UNRECORDED) =
	MOVE(REMOVING, UNDO | SANDBOX_DO_TELL_REMOVE, REMOVING),
    ON(LOOKING, UNWANTED) =
	MOVE(REMOVING, LET_GO | SANDBOX_DO_TELL_REMOVE, REMOVING),

    ON(AWAY, WORKER_CAME) =
	MOVE(ADOPTING, SANDBOX_DO_TELL_ADOPT | SANDBOX_DO_RESEND, READY),
    ON(AWAY, UNRECORDED) = MOVE(LEAVING, UNDO, REMOVING),
    ON(AWAY, UNWANTED) = MOVE(LEAVING, LET_GO, REMOVING),

    ON(ADOPTING, WORKER_WENT) = MOVE(AWAY, SANDBOX_DO_CLOSE_GATE, READY),
    ON(ADOPTING, IS_UP) = MOVE(READY, GET_READY, READY),
    ON(ADOPTING, FAILED) = MOVE(GONE, LOSE, LOST),
    ON(ADOPTING, LOST) = MOVE(GONE, LOSE, LOST),
    ON(ADOPTING, UNRECORDED) =
	MOVE(REMOVING, UNDO | SANDBOX_DO_TELL_REMOVE, REMOVING),
    ON(ADOPTING, UNWANTED) =
	MOVE(REMOVING, LET_GO | SANDBOX_DO_TELL_REMOVE, REMOVING),

    ON(READY, WORKER_WENT) = MOVE(AWAY, SANDBOX_DO_CLOSE_GATE, READY),
    ON(READY, LOST) = MOVE(GONE, LOSE, LOST),
    ON(READY, UNRECORDED) =
	MOVE(REMOVING, UNDO | SANDBOX_DO_TELL_REMOVE, REMOVING),
    ON(READY, HUNG) = MOVE(REMOVING, RENEW, REMOVING),
    ON(READY, UNWANTED) =
	MOVE(REMOVING, LET_GO | SANDBOX_DO_TELL_REMOVE, REMOVING),

    ON(LEAVING, WORKER_CAME) = MOVE(REMOVING, SANDBOX_DO_TELL_REMOVE, REMOVING),
    ON(LEAVING, RETRY) = MOVE(REMOVING, SANDBOX_DO_TELL_REMOVE, REMOVING),

    ON(REMOVING, WORKER_WENT) = MOVE(LEAVING, SANDBOX_DO_NOTHING, REMOVING),
    ON(REMOVING, LOST) = MOVE(GONE, CLEARED, REMOVED),
    ON(REMOVING, REMOVED) = MOVE(GONE, CLEARED, REMOVED),
    ON(REMOVING, REMOVE_FAILED) =
	MOVE(LEAVING, SANDBOX_DO_RETRY_LATER | SANDBOX_DO_SAY_STUCK, REMOVING),
};

struct sandbox_move
sandbox_step(enum sandbox_state from, enum sandbox_happening what)
{
	const struct sandbox_arc *r = &table[from][what];

	if (!r->is_there)
		return (struct sandbox_move){.to = from};
	return r->move;
}

/* ---- states in words */

bool
sandbox_state_is_live(enum sandbox_state s)
{
	return s < SANDBOX_LEAVING;
}

const char *
sandbox_state_name(enum sandbox_state s)
{
	static const char *const names[SANDBOX_NSTATE] = {
	    [SANDBOX_NEW] = "new",
	    [SANDBOX_CREATING] = "creating",
	    [SANDBOX_DOUBTFUL] = "doubtful",
	    [SANDBOX_LOOKING] = "looking",
	    [SANDBOX_AWAY] = "away",
	    [SANDBOX_ADOPTING] = "adopting",
	    [SANDBOX_READY] = "ready",
	    [SANDBOX_LEAVING] = "leaving",
	    [SANDBOX_REMOVING] = "removing",
	    [SANDBOX_GONE] = "gone",
	};

	return s < SANDBOX_NSTATE ? names[s] : "?";
}
