#include "supervisor/core/sandbox_step.h"
#include "tests/unit/test.h"

#define ENDS                                                                   \
	(SANDBOX_DO_END_LOST | SANDBOX_DO_END_FAILED | SANDBOX_DO_END_CANCELED)
#define TELLS                                                                  \
	(SANDBOX_DO_TELL_CREATE | SANDBOX_DO_TELL_ADOPT |                      \
	    SANDBOX_DO_TELL_REMOVE)

/* Tests say what holds whatever happens to a sandbox, in whatever state. */
#define PAIRS (SANDBOX_NSTATE * SANDBOX_NHAPPENING)

static bool
has_a_worker(unsigned int s)
{
	return s == SANDBOX_CREATING || s == SANDBOX_LOOKING ||
	    s == SANDBOX_ADOPTING || s == SANDBOX_READY ||
	    s == SANDBOX_REMOVING;
}

TEST(a_name_is_left_exactly_when_the_holder_is_no_longer_live)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / SANDBOX_NHAPPENING;
		unsigned int what = i % SANDBOX_NHAPPENING;
		struct sandbox_move m = sandbox_step(from, what);
		bool leaves =
		    sandbox_state_is_live(from) && !sandbox_state_is_live(m.to);

		assert_int_equal(
		    (m.deeds & SANDBOX_DO_LEAVE_NAME) != 0, leaves);
		/* The runs of what is no longer live end in one way. */
		assert_int_equal(
		    __builtin_popcount(m.deeds & ENDS), leaves ? 1 : 0);
		assert_true(sandbox_state_is_live(from) ||
		    !sandbox_state_is_live(m.to));
	}
}

TEST(the_database_has_the_word_of_the_state)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / SANDBOX_NHAPPENING;
		unsigned int what = i % SANDBOX_NHAPPENING;
		struct sandbox_move m = sandbox_step(from, what);

		if (what == SANDBOX_UNRECORDED) /* there is no row */
			assert_int_equal(m.deeds & SANDBOX_DO_SAVE, 0);
		if ((m.deeds & SANDBOX_DO_SAVE) == 0)
			continue;
		if (m.to == SANDBOX_READY)
			assert_int_equal(m.word, SANDBOX_IS_READY);
		else if (m.to == SANDBOX_GONE)
			assert_true(m.word == SANDBOX_IS_REMOVED ||
			    m.word == SANDBOX_IS_LOST);
		else
			assert_int_equal(m.word, SANDBOX_IS_REMOVING);
	}
}

TEST(who_waits_is_told_what_became_of_it)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / SANDBOX_NHAPPENING;
		unsigned int what = i % SANDBOX_NHAPPENING;
		struct sandbox_move m = sandbox_step(from, what);
		bool is_new = m.to != from;

		assert_int_equal((m.deeds & SANDBOX_DO_SAY_GONE) != 0,
		    is_new && m.to == SANDBOX_GONE);
		assert_int_equal((m.deeds & SANDBOX_DO_SAY_READY) != 0,
		    is_new && m.to == SANDBOX_READY);
		if (m.deeds & SANDBOX_DO_SAY_STUCK)
			assert_true(m.deeds & SANDBOX_DO_RETRY_LATER);
	}
}

TEST(a_worker_is_told_what_its_state_says)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / SANDBOX_NHAPPENING;
		unsigned int what = i % SANDBOX_NHAPPENING;
		struct sandbox_move m = sandbox_step(from, what);
		unsigned int want = 0;

		if (m.to != from && m.to == SANDBOX_CREATING)
			want = SANDBOX_DO_TELL_CREATE;
		else if (m.to != from &&
		    (m.to == SANDBOX_LOOKING || m.to == SANDBOX_ADOPTING))
			want = SANDBOX_DO_TELL_ADOPT;
		else if (m.to != from && m.to == SANDBOX_REMOVING)
			want = SANDBOX_DO_TELL_REMOVE;
		assert_int_equal(m.deeds & TELLS, want);
		if (what == SANDBOX_WORKER_WENT)
			assert_false(has_a_worker(m.to));
		/* A worker is asked for a new one when it is its turn. */
		assert_int_equal((m.deeds & SANDBOX_DO_ASK_TURN) != 0,
		    (from == SANDBOX_NEW && what == SANDBOX_WORKER_CAME) ||
			(from == SANDBOX_LOOKING && m.to == SANDBOX_NEW));
	}
}

TEST(runs_are_sent_while_it_may_take_them)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / SANDBOX_NHAPPENING;
		unsigned int what = i % SANDBOX_NHAPPENING;
		struct sandbox_move m = sandbox_step(from, what);
		bool was_open =
		    from == SANDBOX_CREATING || from == SANDBOX_READY;
		bool is_open =
		    m.to == SANDBOX_CREATING || m.to == SANDBOX_READY;

		if (is_open && !was_open)
			assert_true(m.deeds & SANDBOX_DO_OPEN_GATE);
		if (was_open && !is_open)
			assert_true(m.deeds & SANDBOX_DO_CLOSE_GATE);
		if (!is_open)
			assert_int_equal(m.deeds & SANDBOX_DO_OPEN_GATE, 0);
		/* What a worker had is sent again to the next one, once. */
		assert_int_equal((m.deeds & SANDBOX_DO_RESEND) != 0,
		    (from == SANDBOX_AWAY && what == SANDBOX_WORKER_CAME) ||
			(from == SANDBOX_LOOKING && m.to == SANDBOX_READY) ||
			(from == SANDBOX_NEW && m.to == SANDBOX_CREATING));
		assert_int_equal((m.deeds & SANDBOX_DO_TOUCH) != 0,
		    m.to == SANDBOX_READY &&
			(from == SANDBOX_CREATING || from == SANDBOX_LOOKING));
	}
}

/* Runs that never began go to a successor of what was lost, and of nothing
 * else; they end as the reason says. */
TEST(runs_end_as_the_reason_says)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / SANDBOX_NHAPPENING;
		unsigned int what = i % SANDBOX_NHAPPENING;
		struct sandbox_move m = sandbox_step(from, what);

		assert_int_equal((m.deeds & SANDBOX_DO_REQUEUE) != 0,
		    (m.deeds & SANDBOX_DO_END_LOST) != 0);
		if (what == SANDBOX_UNWANTED)
			assert_int_equal(m.deeds & ENDS,
			    m.to != from ? SANDBOX_DO_END_CANCELED : 0);
		if (what == SANDBOX_UNRECORDED)
			assert_int_equal(m.deeds & ENDS,
			    m.to != from ? SANDBOX_DO_END_FAILED : 0);
		if (what == SANDBOX_HUNG)
			assert_int_equal(m.deeds & ENDS,
			    m.to != from ? SANDBOX_DO_END_LOST : 0);
	}
}

TEST(from_everywhere_it_goes_when_nobody_wants_it)
{
	for (unsigned int from = 0; from < SANDBOX_GONE; from++) {
		enum sandbox_state s = from;

		s = sandbox_step(s, SANDBOX_UNWANTED).to;
		assert_false(sandbox_state_is_live(s));
		s = sandbox_step(s, SANDBOX_REMOVE_FAILED).to;
		s = sandbox_step(s, SANDBOX_WORKER_WENT).to;
		s = sandbox_step(s, SANDBOX_WORKER_CAME).to;
		assert_int_equal(
		    sandbox_step(s, SANDBOX_REMOVED).to, SANDBOX_GONE);
	}
	for (unsigned int what = 0; what < SANDBOX_NHAPPENING; what++)
		assert_int_equal(sandbox_step(SANDBOX_GONE, what).deeds, 0);
}

TEST_MAIN(NULL, NULL)
