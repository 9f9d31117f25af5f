#include "supervisor/core/sandbox_step.h"
#include "tests/unit/test.h"

/*
 * Every transition there is, as people would draw it.  What is not here must
 * change nothing.
 */
static const struct transition {
	enum sandbox_state from;
	enum sandbox_happening what;
	enum sandbox_state to;
	unsigned int must;  /* deeds that belong to it */
	unsigned int never; /* and that would be wrong */
} transitions[] = {
    /* Making it, in its turn; its runs go right behind. */
    {SANDBOX_NEW, SANDBOX_WORKER_CAME, SANDBOX_NEW, SANDBOX_DO_ASK_TURN,
	SANDBOX_DO_TELL_CREATE | SANDBOX_DO_OPEN_GATE},
    {SANDBOX_NEW, SANDBOX_TURN_CAME, SANDBOX_CREATING,
	SANDBOX_DO_TELL_CREATE | SANDBOX_DO_OPEN_GATE, SANDBOX_DO_TELL_ADOPT},
    {SANDBOX_CREATING, SANDBOX_IS_UP, SANDBOX_READY,
	SANDBOX_DO_SAVE | SANDBOX_DO_TOUCH | SANDBOX_DO_SAY_READY,
	SANDBOX_DO_RESEND},
    {SANDBOX_CREATING, SANDBOX_FAILED, SANDBOX_GONE,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_SAY_FAILED | SANDBOX_DO_END_FAILED,
	SANDBOX_DO_REQUEUE | SANDBOX_DO_END_LOST},
    {SANDBOX_CREATING, SANDBOX_LOST, SANDBOX_GONE,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_REQUEUE | SANDBOX_DO_END_LOST,
	SANDBOX_DO_END_FAILED},
    /* Its worker dies meanwhile: nobody knows whether it is there. */
    {SANDBOX_CREATING, SANDBOX_WORKER_WENT, SANDBOX_DOUBTFUL,
	SANDBOX_DO_CLOSE_GATE, SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_END_LOST},
    {SANDBOX_DOUBTFUL, SANDBOX_WORKER_CAME, SANDBOX_LOOKING,
	SANDBOX_DO_TELL_ADOPT,
	SANDBOX_DO_OPEN_GATE | SANDBOX_DO_RESEND | SANDBOX_DO_TELL_CREATE},
    {SANDBOX_LOOKING, SANDBOX_IS_UP, SANDBOX_READY,
	SANDBOX_DO_OPEN_GATE | SANDBOX_DO_RESEND | SANDBOX_DO_SAY_READY, 0},
    {SANDBOX_LOOKING, SANDBOX_LOST, SANDBOX_NEW, SANDBOX_DO_ASK_TURN,
	SANDBOX_DO_END_LOST | SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_OPEN_GATE},
    {SANDBOX_LOOKING, SANDBOX_FAILED, SANDBOX_GONE, SANDBOX_DO_END_FAILED, 0},
    {SANDBOX_LOOKING, SANDBOX_WORKER_WENT, SANDBOX_DOUBTFUL,
	SANDBOX_DO_CLOSE_GATE, 0},
    /* Its worker dies later: the next one takes it over, runs and all. */
    {SANDBOX_READY, SANDBOX_WORKER_WENT, SANDBOX_AWAY, SANDBOX_DO_CLOSE_GATE,
	SANDBOX_DO_LEAVE_NAME},
    {SANDBOX_AWAY, SANDBOX_WORKER_CAME, SANDBOX_ADOPTING,
	SANDBOX_DO_TELL_ADOPT | SANDBOX_DO_RESEND,
	SANDBOX_DO_OPEN_GATE | SANDBOX_DO_TELL_CREATE},
    {SANDBOX_ADOPTING, SANDBOX_IS_UP, SANDBOX_READY, SANDBOX_DO_SAY_READY,
	SANDBOX_DO_TOUCH | SANDBOX_DO_RESEND},
    {SANDBOX_ADOPTING, SANDBOX_WORKER_WENT, SANDBOX_AWAY, SANDBOX_DO_CLOSE_GATE,
	0},
    {SANDBOX_ADOPTING, SANDBOX_FAILED, SANDBOX_GONE,
	SANDBOX_DO_REQUEUE | SANDBOX_DO_END_LOST, SANDBOX_DO_END_FAILED},
    {SANDBOX_ADOPTING, SANDBOX_LOST, SANDBOX_GONE,
	SANDBOX_DO_REQUEUE | SANDBOX_DO_END_LOST, 0},
    {SANDBOX_READY, SANDBOX_LOST, SANDBOX_GONE,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_REQUEUE | SANDBOX_DO_END_LOST |
	    SANDBOX_DO_SAY_GONE,
	SANDBOX_DO_TELL_REMOVE},
    /* Its agent hangs: it goes, and what was not sent goes elsewhere. */
    {SANDBOX_READY, SANDBOX_HUNG, SANDBOX_REMOVING,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_REQUEUE | SANDBOX_DO_END_LOST |
	    SANDBOX_DO_TELL_REMOVE | SANDBOX_DO_SAVE,
	SANDBOX_DO_SAY_GONE | SANDBOX_DO_END_CANCELED},
    /* It has no row and gets none: whatever it was, it goes. */
    {SANDBOX_NEW, SANDBOX_UNRECORDED, SANDBOX_GONE,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_END_FAILED | SANDBOX_DO_SAY_FAILED,
	SANDBOX_DO_TELL_REMOVE | SANDBOX_DO_SAVE},
    {SANDBOX_CREATING, SANDBOX_UNRECORDED, SANDBOX_REMOVING,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_END_FAILED | SANDBOX_DO_SAY_FAILED |
	    SANDBOX_DO_TELL_REMOVE,
	SANDBOX_DO_SAVE},
    {SANDBOX_LOOKING, SANDBOX_UNRECORDED, SANDBOX_REMOVING,
	SANDBOX_DO_END_FAILED | SANDBOX_DO_TELL_REMOVE, SANDBOX_DO_SAVE},
    {SANDBOX_ADOPTING, SANDBOX_UNRECORDED, SANDBOX_REMOVING,
	SANDBOX_DO_END_FAILED | SANDBOX_DO_TELL_REMOVE, SANDBOX_DO_SAVE},
    {SANDBOX_READY, SANDBOX_UNRECORDED, SANDBOX_REMOVING,
	SANDBOX_DO_END_FAILED | SANDBOX_DO_TELL_REMOVE, SANDBOX_DO_SAVE},
    {SANDBOX_DOUBTFUL, SANDBOX_UNRECORDED, SANDBOX_LEAVING,
	SANDBOX_DO_END_FAILED, SANDBOX_DO_SAVE | SANDBOX_DO_TELL_REMOVE},
    {SANDBOX_AWAY, SANDBOX_UNRECORDED, SANDBOX_LEAVING, SANDBOX_DO_END_FAILED,
	SANDBOX_DO_SAVE | SANDBOX_DO_TELL_REMOVE},
    /* Not wanted: the name is free at once, whatever it was. */
    {SANDBOX_NEW, SANDBOX_UNWANTED, SANDBOX_GONE,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_END_CANCELED | SANDBOX_DO_SAY_GONE,
	SANDBOX_DO_TELL_REMOVE},
    {SANDBOX_CREATING, SANDBOX_UNWANTED, SANDBOX_REMOVING,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_TELL_REMOVE |
	    SANDBOX_DO_END_CANCELED | SANDBOX_DO_SAY_FAILED,
	SANDBOX_DO_SAY_GONE | SANDBOX_DO_REQUEUE},
    {SANDBOX_LOOKING, SANDBOX_UNWANTED, SANDBOX_REMOVING,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_TELL_REMOVE, SANDBOX_DO_SAY_GONE},
    {SANDBOX_ADOPTING, SANDBOX_UNWANTED, SANDBOX_REMOVING,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_TELL_REMOVE, SANDBOX_DO_SAY_GONE},
    {SANDBOX_READY, SANDBOX_UNWANTED, SANDBOX_REMOVING,
	SANDBOX_DO_LEAVE_NAME | SANDBOX_DO_TELL_REMOVE |
	    SANDBOX_DO_END_CANCELED,
	SANDBOX_DO_SAY_GONE | SANDBOX_DO_REQUEUE},
    {SANDBOX_DOUBTFUL, SANDBOX_UNWANTED, SANDBOX_LEAVING, SANDBOX_DO_LEAVE_NAME,
	SANDBOX_DO_TELL_REMOVE},
    {SANDBOX_AWAY, SANDBOX_UNWANTED, SANDBOX_LEAVING, SANDBOX_DO_LEAVE_NAME,
	SANDBOX_DO_TELL_REMOVE},
    /* Removing it, until nothing is left. */
    {SANDBOX_LEAVING, SANDBOX_WORKER_CAME, SANDBOX_REMOVING,
	SANDBOX_DO_TELL_REMOVE, 0},
    {SANDBOX_LEAVING, SANDBOX_RETRY, SANDBOX_REMOVING, SANDBOX_DO_TELL_REMOVE,
	0},
    {SANDBOX_REMOVING, SANDBOX_WORKER_WENT, SANDBOX_LEAVING, 0,
	SANDBOX_DO_SAY_GONE},
    {SANDBOX_REMOVING, SANDBOX_REMOVED, SANDBOX_GONE,
	SANDBOX_DO_SAVE | SANDBOX_DO_SAY_GONE, SANDBOX_DO_SAY_STUCK},
    {SANDBOX_REMOVING, SANDBOX_LOST, SANDBOX_GONE, SANDBOX_DO_SAY_GONE, 0},
    {SANDBOX_REMOVING, SANDBOX_REMOVE_FAILED, SANDBOX_LEAVING,
	SANDBOX_DO_RETRY_LATER | SANDBOX_DO_SAY_STUCK, SANDBOX_DO_SAY_GONE},
};

static const struct transition *
find(unsigned int from, unsigned int what)
{
	for (size_t i = 0; i < ARRAY_LEN(transitions); i++)
		if (transitions[i].from == from && transitions[i].what == what)
			return &transitions[i];
	return NULL;
}

TEST(every_transition_is_as_drawn)
{
	for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
		const struct transition *t = &transitions[i];
		struct sandbox_move m = sandbox_step(t->from, t->what);

		if (m.to != t->to || (m.deeds & t->must) != t->must ||
		    (m.deeds & t->never) != 0)
			fail_msg("transition %zu, from %s to %s, deeds %#x", i,
			    sandbox_state_name(t->from),
			    sandbox_state_name(m.to), m.deeds);
	}
}

TEST(whatever_is_not_drawn_changes_nothing)
{
	for (unsigned int from = 0; from < SANDBOX_NSTATE; from++)
		for (unsigned int what = 0; what < SANDBOX_NHAPPENING; what++) {
			struct sandbox_move m = sandbox_step(from, what);

			if (find(from, what) != NULL)
				continue;
			assert_int_equal(m.to, from);
			assert_int_equal(m.deeds, SANDBOX_DO_NOTHING);
		}
}

TEST(a_name_is_left_exactly_when_the_holder_is_no_longer_live)
{
	for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
		const struct transition *t = &transitions[i];
		struct sandbox_move m = sandbox_step(t->from, t->what);
		bool leaves = sandbox_state_is_live(t->from) &&
		    !sandbox_state_is_live(t->to);

		assert_int_equal(
		    (m.deeds & SANDBOX_DO_LEAVE_NAME) != 0, leaves);
		/* And the runs of what is no longer live all end. */
		if (leaves)
			assert_true(m.deeds &
			    (SANDBOX_DO_END_LOST | SANDBOX_DO_END_FAILED |
				SANDBOX_DO_END_CANCELED));
	}
}

TEST(the_database_has_the_word_of_the_state)
{
	for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
		const struct transition *t = &transitions[i];
		struct sandbox_move m = sandbox_step(t->from, t->what);

		if ((m.deeds & SANDBOX_DO_SAVE) == 0)
			continue;
		if (t->to == SANDBOX_READY)
			assert_int_equal(m.word, SANDBOX_IS_READY);
		else if (t->to == SANDBOX_GONE)
			assert_true(m.word == SANDBOX_IS_REMOVED ||
			    m.word == SANDBOX_IS_LOST);
		else
			assert_int_equal(m.word, SANDBOX_IS_REMOVING);
	}
}

TEST(who_waits_for_the_end_is_always_told)
{
	for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
		const struct transition *t = &transitions[i];
		struct sandbox_move m = sandbox_step(t->from, t->what);

		assert_int_equal((m.deeds & SANDBOX_DO_SAY_GONE) != 0,
		    t->to == SANDBOX_GONE);
	}
}

TEST_MAIN(NULL, NULL)
