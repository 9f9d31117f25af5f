/* fuzz_leftlist.c - what decodes is within its bounds and must encode again to
 * the same bytes.
 * libs: common */
#include "common/leftlist.h"
#include "common/runlog.h"
#include "common/runspec.h"
#include "tests/fuzz/fuzz.h"

static void
check_bounds(const struct leftlist *l)
{
	if (l->nprocesses > LEFTLIST_PROCESSES_MAX ||
	    l->nlogs > LEFTLIST_LOGS_MAX || l->nprocesses > l->count ||
	    l->count > l->total)
		abort();
	for (uint32_t i = 0; i < l->nprocesses; i++)
		if (l->processes[i].ntext > LEFTLIST_TEXT_MAX ||
		    l->processes[i].command >= RUNSPEC_COMMANDS_MAX ||
		    !runlog_is_printable(
			l->processes[i].text, l->processes[i].ntext))
			abort();
	for (uint32_t i = 0; i < l->nlogs; i++)
		if (l->logs[i].state >= LEFTLIST_STATES ||
		    l->logs[i].bytes < l->logs[i].noutput)
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct leftlist l;
	struct buf b;
	struct err e;

	if (leftlist_decode(data, size, &l, &e) != 0) {
		if (e.code != ERR_PROTO || e.msg[0] == '\0')
			abort();
		return 0;
	}
	check_bounds(&l);
	buf_init(&b, size);
	leftlist_encode(&l, &b);
	if (buf_len(&b) != size || memcmp(buf_data(&b), data, size) != 0)
		abort();
	buf_clear(&b);
	return 0;
}
