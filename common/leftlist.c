#include "common/leftlist.h"

#include "common/runlog.h"
#include "common/runspec.h"
#include "common/msg/wire.h"

void
leftlist_encode_ask(const struct leftlist_ask *ask, struct buf *b)
{
	wire_put_uuid(b, &ask->run);
	wire_put_u32(b, ask->process);
}

int
leftlist_decode_ask(struct span in, struct leftlist_ask *ask, struct err *e)
{
	struct wire_in w;

	wire_in_init(&w, in.p, in.n);
	wire_get_uuid(&w, &ask->run);
	ask->process = wire_get_u32(&w);
	return wire_get_end(&w, e);
}

void
leftlist_encode(const struct leftlist *l, struct buf *b)
{
	wire_put_u32(b, l->total);
	wire_put_u32(b, l->count);
	wire_put_u32(b, l->killed);
	wire_put_u32(b, l->nprocesses);
	for (uint32_t i = 0; i < l->nprocesses; i++) {
		const struct leftlist_process *p = &l->processes[i];

		wire_put_u32(b, p->id);
		wire_put_u32(b, p->pid);
		wire_put_u16(b, p->command);
		wire_put_bytes(b, p->text, p->ntext);
	}
	wire_put_u32(b, l->nlogs);
	for (uint32_t i = 0; i < l->nlogs; i++) {
		const struct leftlist_log *log = &l->logs[i];

		wire_put_u16(b, log->command);
		wire_put_u8(b, (uint8_t)log->state);
		wire_put_u64(b, log->bytes);
		wire_put_bytes(b, log->output, log->noutput);
	}
}

static void
get_process(struct wire_in *in, struct leftlist_process *p)
{
	p->id = wire_get_u32(in);
	p->pid = wire_get_u32(in);
	p->command = wire_get_u16(in);
	p->text =
	    (const char *)wire_get_bytes(in, LEFTLIST_TEXT_MAX, &p->ntext);
	if (p->text == NULL || p->id == 0 ||
	    p->command >= RUNSPEC_COMMANDS_MAX ||
	    !runlog_is_printable(p->text, p->ntext))
		in->bad = "process";
}

static void
get_log(struct wire_in *in, struct leftlist_log *log)
{
	uint8_t state;

	log->command = wire_get_u16(in);
	state = wire_get_u8(in);
	log->bytes = wire_get_u64(in);
	log->output = wire_get_bytes(in, LEFTLIST_OUTPUT_MAX, &log->noutput);
	if (log->output == NULL || state >= LEFTLIST_STATES ||
	    log->command >= RUNSPEC_COMMANDS_MAX || log->bytes > INT64_MAX ||
	    log->bytes < log->noutput) {
		in->bad = "log";
		return;
	}
	log->state = (enum leftlist_state)state;
}

int
leftlist_decode(const uint8_t *p, size_t n, struct leftlist *l, struct err *e)
{
	struct wire_in in;

	memset(l, 0, sizeof(*l));
	wire_in_init(&in, p, n);
	l->total = wire_get_u32(&in);
	l->count = wire_get_u32(&in);
	l->killed = wire_get_u32(&in);
	l->nprocesses = wire_get_u32(&in);
	if (l->nprocesses > LEFTLIST_PROCESSES_MAX ||
	    l->nprocesses > l->count || l->count > l->total)
		return err_set(e, ERR_PROTO, "left processes out of range");
	for (uint32_t i = 0; i < l->nprocesses && in.bad == NULL; i++)
		get_process(&in, &l->processes[i]);
	l->nlogs = wire_get_u32(&in);
	if (l->nlogs > LEFTLIST_LOGS_MAX)
		return err_set(e, ERR_PROTO, "%u logs", l->nlogs);
	for (uint32_t i = 0; i < l->nlogs && in.bad == NULL; i++)
		get_log(&in, &l->logs[i]);
	return wire_get_end(&in, e);
}
