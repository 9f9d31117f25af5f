#include "supervisor/core/run_step.h"
#include "tests/unit/test.h"

#define END (RUN_DO_FINISH | RUN_DO_STORE)

/* Every transition there is; what is not here must change nothing. */
static const struct transition {
	enum run_phase from;
	enum run_happening what;
	enum run_phase to;
	unsigned int deeds;
} transitions[] = {
    {RUN_WAITING, RUN_ITS_TURN, RUN_SENT, RUN_DO_SEND},
    {RUN_WAITING, RUN_CANCEL, RUN_STORING, RUN_DO_LEAVE_SANDBOX | END},
    {RUN_WAITING, RUN_SANDBOX_GONE, RUN_STORING, RUN_DO_LEAVE_SANDBOX | END},
    {RUN_SENT, RUN_WORKER_CAME, RUN_SENT, RUN_DO_SEND},
    {RUN_SENT, RUN_WORKER_ENDED, RUN_STORING, RUN_DO_LEAVE_SANDBOX | END},
    {RUN_SENT, RUN_WORKER_ENDED_LONG, RUN_READING,
	RUN_DO_LEAVE_SANDBOX | RUN_DO_READ_LOG},
    {RUN_SENT, RUN_CANCEL, RUN_SENT, RUN_DO_TELL_CANCEL},
    {RUN_SENT, RUN_SANDBOX_GONE, RUN_READING,
	RUN_DO_LEAVE_SANDBOX | RUN_DO_READ_LOG},
    {RUN_READING, RUN_LOG_READ, RUN_STORING, END},
    {RUN_STORING, RUN_STORED, RUN_OVER,
	RUN_DO_FORGET | RUN_DO_SAY_ENDED | RUN_DO_LEAVE},
    {RUN_STORING, RUN_STORE_FAILED, RUN_STORING, RUN_DO_STORE_LATER},
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
	for (unsigned int from = 0; from < RUN_NPHASE; from++)
		for (unsigned int what = 0; what < RUN_NHAPPENING; what++) {
			struct run_move m = run_step(from, what);
			const struct transition *t = find(from, what);

			assert_int_equal(m.to, t == NULL ? from : t->to);
			assert_int_equal(
			    m.deeds, t == NULL ? RUN_DO_NOTHING : t->deeds);
		}
}

TEST(a_run_leaves_its_sandbox_once_and_before_its_end_is_told)
{
	for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
		const struct transition *t = &transitions[i];
		struct run_move m = run_step(t->from, t->what);
		bool leaves = t->from <= RUN_SENT && t->to > RUN_SENT;

		assert_int_equal((m.deeds & RUN_DO_LEAVE_SANDBOX) != 0, leaves);
		if (m.deeds & RUN_DO_SAY_ENDED)
			assert_int_equal(t->from, RUN_STORING);
	}
}

TEST(phases_have_names)
{
	for (unsigned int p = 0; p < RUN_NPHASE; p++)
		assert_string_not_equal(run_phase_name(p), "?");
	assert_string_equal(run_phase_name(RUN_NPHASE), "?");
}

TEST_MAIN(NULL, NULL)
