#include "common/runlog.h"

#include "common/runspec.h"
#include "common/text.h"
#include "common/utf8.h"
#include "common/msg/wire.h"

#define RUNLOG_END_FIXED 45 /* COMMAND_ENDED less its text and memory */
#define RUNLOG_END_MEMORY 12
#define RUNLOG_LEFT_FIXED 6
#define RUNLOG_WALL_MAX_US INT64_C(253402300799999999) /* year 9999 */
#define RUNLOG_SIGNAL_MAX 64

static bool
runlog_is_reason(unsigned int reason)
{
	return reason > 0 && reason < RUNLOG_REASON_COUNT;
}

void
runlog_put_header(struct buf *b, const struct runlog_header *h)
{
	wire_put_u8(b, RUNLOG_MAGIC);
	wire_put_u8(b, (uint8_t)h->type);
	wire_put_u16(b, h->command);
	wire_put_u32(b, h->length);
	wire_put_i64(b, h->wall_us);
}

/* The text is cut where it does not end in its array. */
static size_t
runlog_text_len(const struct runlog_end *end)
{
	return strnlen(end->text, sizeof(end->text) - 1);
}

size_t
runlog_end_size(const struct runlog_end *end)
{
	return RUNLOG_END_FIXED + runlog_text_len(end) + RUNLOG_END_MEMORY;
}

void
runlog_put_end(struct buf *b, const struct runlog_end *end)
{
	wire_put_u8(b, end->reason);
	wire_put_i32(b, end->exit_code);
	wire_put_i32(b, end->signal);
	wire_put_u64(b, end->stdout_bytes);
	wire_put_u64(b, end->stderr_bytes);
	wire_put_u64(b, end->wall_us);
	wire_put_u64(b, end->cpu_us);
	wire_put_bytes(b, end->text, runlog_text_len(end));
	wire_put_u64(b, end->memory_peak_bytes);
	wire_put_u32(b, end->memory_kills);
}

void
runlog_put_run_end(struct buf *b, const struct runlog_run_end *end)
{
	wire_put_u8(b, end->reason);
	wire_put_u8(b, end->failed);
	wire_put_u8(b, end->artifacts);
	wire_put_u16(b, end->command);
}

void
runlog_put_left(struct buf *b, const struct runlog_left *left)
{
	wire_put_u32(b, left->count);
	wire_put_u8(b, left->killed);
	wire_put_u8(b, left->nshown);
	for (size_t i = 0; i < left->nshown; i++) {
		const struct runlog_left_one *one = &left->shown[i];

		wire_put_u32(b, one->id);
		wire_put_u32(b, one->pid);
		wire_put_bytes(b, one->text, strlen(one->text));
	}
}

static bool
runlog_is_length(unsigned int type, uint32_t length)
{
	switch (type) {
	case RUNLOG_RUN_STARTED:
	case RUNLOG_COMMAND_STARTED:
		return length == 0;
	case RUNLOG_STDOUT:
	case RUNLOG_STDERR:
		return length <= RUNLOG_PAYLOAD_MAX;
	case RUNLOG_COMMAND_ENDED:
		return length >= RUNLOG_END_FIXED && length <= RUNLOG_END_MAX;
	case RUNLOG_RUN_ENDED:
		return length == RUNLOG_RUN_END_BYTES;
	case RUNLOG_LEFT:
		return length >= RUNLOG_LEFT_FIXED &&
		    length <= RUNLOG_RECORD_MAX;
	default:
		return false;
	}
}

int
runlog_parse_header(const uint8_t *p, struct runlog_header *h, struct err *e)
{
	struct wire_in in;
	uint8_t magic, type;
	uint16_t command;
	uint32_t length;
	int64_t wall_us;

	wire_in_init(&in, p, RUNLOG_HEADER_BYTES);
	magic = wire_get_u8(&in);
	type = wire_get_u8(&in);
	command = wire_get_u16(&in);
	length = wire_get_u32(&in);
	wall_us = wire_get_i64(&in);
	if (magic != RUNLOG_MAGIC)
		return err_set(e, ERR_PROTO, "no record: magic %#x", magic);
	if (!runlog_is_length(type, length))
		return err_set(e, ERR_PROTO, "no record: type %u with %u bytes",
		    type, length);
	if (command >= RUNSPEC_COMMANDS_MAX)
		return err_set(e, ERR_PROTO, "record of command %u", command);
	if (wall_us < 0 || wall_us > RUNLOG_WALL_MAX_US)
		return err_set(e, ERR_PROTO, "record with a time out of range");
	h->type = (enum runlog_type)type;
	h->command = command;
	h->length = length;
	h->wall_us = wall_us;
	return 0;
}

static int
runlog_check_end(const struct runlog_end *end, struct err *e)
{
	if (!runlog_is_reason(end->reason))
		return err_set(
		    e, ERR_PROTO, "unknown end reason %u", end->reason);
	/* -1: there is none */
	if (end->exit_code < -1 || end->exit_code > 255)
		return err_set(
		    e, ERR_PROTO, "exit code %d", (int)end->exit_code);
	if (end->signal < 0 || end->signal > RUNLOG_SIGNAL_MAX)
		return err_set(e, ERR_PROTO, "signal %d", (int)end->signal);
	return 0;
}

static uint64_t
at_most(uint64_t n, uint64_t max)
{
	return n < max ? n : max;
}

int
runlog_parse_end(
    const uint8_t *p, size_t n, struct runlog_end *end, struct err *e)
{
	struct runlog_end got = {0};
	struct wire_in in;
	const uint8_t *text;
	size_t len;
	int rc;

	wire_in_init(&in, p, n);
	got.reason = wire_get_u8(&in);
	got.exit_code = wire_get_i32(&in);
	got.signal = wire_get_i32(&in);
	got.stdout_bytes = wire_get_u64(&in);
	got.stderr_bytes = wire_get_u64(&in);
	got.wall_us = wire_get_u64(&in);
	got.cpu_us = wire_get_u64(&in);
	text = wire_get_bytes(&in, sizeof(got.text) - 1, &len);
	if (in.left > 0) /* none, of an agent of before */
		got.memory_peak_bytes = wire_get_u64(&in);
	if (in.left > 0)
		got.memory_kills = wire_get_u32(&in);
	rc = wire_get_end(&in, e);
	if (rc == 0)
		rc = runlog_check_end(&got, e);
	if (rc != 0)
		return rc;
	if (memchr(text, '\0', len) != NULL)
		return err_set(e, ERR_PROTO, "end text has a NUL inside");
	text_clean(got.text, sizeof(got.text), text, len);
	got.cpu_us = at_most(got.cpu_us, RUNLOG_CPU_MAX_US);
	got.memory_peak_bytes =
	    at_most(got.memory_peak_bytes, RUNLOG_MEMORY_MAX_BYTES);
	got.memory_kills =
	    (uint32_t)at_most(got.memory_kills, RUNLOG_KILLS_MAX);
	*end = got;
	return 0;
}

int
runlog_parse_run_end(
    const uint8_t *p, size_t n, struct runlog_run_end *end, struct err *e)
{
	struct runlog_run_end got;
	struct wire_in in;
	int rc;

	wire_in_init(&in, p, n);
	got.reason = wire_get_u8(&in);
	got.failed = wire_get_u8(&in);
	got.artifacts = wire_get_u8(&in);
	got.command = wire_get_u16(&in);
	rc = wire_get_end(&in, e);
	if (rc != 0)
		return rc;
	if (!runlog_is_reason(got.reason))
		return err_set(
		    e, ERR_PROTO, "unknown end reason %u", got.reason);
	if (got.failed > 1 || got.artifacts > 1 ||
	    got.command >= RUNSPEC_COMMANDS_MAX)
		return err_set(e, ERR_PROTO, "run end out of range");
	*end = got;
	return 0;
}

bool
runlog_is_printable(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
			return false;
	return utf8_is_valid(text, n);
}

static void
runlog_get_left_one(struct wire_in *in, struct runlog_left_one *one)
{
	const uint8_t *text;
	size_t len;

	one->id = wire_get_u32(in);
	one->pid = wire_get_u32(in);
	text = wire_get_bytes(in, RUNLOG_LEFT_TEXT, &len);
	if (text == NULL || one->id == 0 ||
	    !runlog_is_printable((const char *)text, len)) {
		in->bad = "process";
		return;
	}
	memcpy(one->text, text, len);
	one->text[utf8_mask_controls(one->text, len)] = '\0';
}

int
runlog_parse_left(
    const uint8_t *p, size_t n, struct runlog_left *left, struct err *e)
{
	struct runlog_left got = {0};
	struct wire_in in;
	int rc;

	wire_in_init(&in, p, n);
	got.count = wire_get_u32(&in);
	got.killed = wire_get_u8(&in);
	got.nshown = wire_get_u8(&in);
	if (got.count == 0 || got.killed > 1 ||
	    got.nshown > RUNLOG_LEFT_SHOWN || got.nshown > got.count)
		return err_set(e, ERR_PROTO, "left processes out of range");
	for (size_t i = 0; i < got.nshown; i++)
		runlog_get_left_one(&in, &got.shown[i]);
	rc = wire_get_end(&in, e);
	if (rc == 0)
		*left = got;
	return rc;
}
