#include "supervisor/core/run_step.h"
#include "tests/unit/test.h"

#define END (RUN_DO_FINISH | RUN_DO_STORE)

/* Tests say what holds whatever happens to a run, in whatever phase. */
#define PAIRS (RUN_NPHASE * RUN_NHAPPENING)

TEST(no_phase_comes_again_and_the_last_is_the_last)
{
	unsigned int leads_on = 0;

	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / RUN_NHAPPENING;
		unsigned int what = i % RUN_NHAPPENING;
		struct run_move m = run_step(from, what);
		assert_true(m.to >= from);
		if (m.to > from)
			leads_on |= 1U << from;
		if (from == RUN_OVER)
			assert_int_equal(m.deeds, RUN_DO_NOTHING);
	}
	assert_int_equal(leads_on, (1U << RUN_OVER) - 1);
}

TEST(a_run_leaves_its_sandbox_once_and_before_its_end_is_told)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / RUN_NHAPPENING;
		unsigned int what = i % RUN_NHAPPENING;
		struct run_move m = run_step(from, what);
		bool leaves = from <= RUN_SENT && m.to > RUN_SENT;

		assert_int_equal((m.deeds & RUN_DO_LEAVE_SANDBOX) != 0, leaves);
		if (m.deeds & RUN_DO_SAY_ENDED)
			assert_int_equal(from, RUN_STORING);
	}
}

TEST(an_end_is_decided_and_stored_once_and_told_when_it_is_stored)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / RUN_NHAPPENING;
		unsigned int what = i % RUN_NHAPPENING;
		struct run_move m = run_step(from, what);
		bool ends = from < RUN_STORING && m.to == RUN_STORING;
		bool is_told = from == RUN_STORING && what == RUN_STORED;

		assert_int_equal(m.deeds & END, ends ? END : 0);
		assert_int_equal((m.deeds & RUN_DO_SAY_ENDED) != 0, is_told);
		assert_int_equal((m.deeds & RUN_DO_FORGET) != 0, is_told);
		assert_int_equal((m.deeds & RUN_DO_LEAVE) != 0, is_told);
		assert_int_equal(m.to == RUN_OVER, is_told || from == RUN_OVER);
		assert_int_equal((m.deeds & RUN_DO_STORE_LATER) != 0,
		    from == RUN_STORING && what == RUN_STORE_FAILED);
		assert_int_equal((m.deeds & RUN_DO_READ_LOG) != 0,
		    from == RUN_SENT && m.to == RUN_READING);
	}
}

/* Until a worker has it, a cancel ends it here. */
TEST(a_worker_is_told_of_what_it_has_or_gets)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		unsigned int from = i / RUN_NHAPPENING;
		unsigned int what = i % RUN_NHAPPENING;
		struct run_move m = run_step(from, what);
		assert_int_equal((m.deeds & RUN_DO_SEND) != 0,
		    m.to == RUN_SENT &&
			(from == RUN_WAITING || what == RUN_WORKER_CAME));
		assert_int_equal((m.deeds & RUN_DO_TELL_CANCEL) != 0,
		    from == RUN_SENT && what == RUN_CANCEL);
	}
	assert_int_equal(run_step(RUN_WAITING, RUN_CANCEL).to, RUN_STORING);
	assert_int_equal(run_step(RUN_SENT, RUN_CANCEL).to, RUN_SENT);
}

TEST(phases_have_names)
{
	for (unsigned int p = 0; p < RUN_NPHASE; p++)
		assert_string_not_equal(run_phase_name(p), "?");
	assert_string_equal(run_phase_name(RUN_NPHASE), "?");
}

TEST_MAIN(NULL, NULL)
