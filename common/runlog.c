#include "common/runlog.h"

#include "common/runspec.h"
#include "common/wire.h"

/* The longest payload of a record other than output, by struct runlog_check;
 * a COMMAND_ENDED has at most 45 bytes and its text. */
#define RUNLOG_RECORD_MAX 256
#define RUNLOG_END_FIXED 45 /* COMMAND_ENDED less its text */
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
	return RUNLOG_END_FIXED + runlog_text_len(end);
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
}

void
runlog_put_run_end(struct buf *b, const struct runlog_run_end *end)
{
	wire_put_u8(b, end->reason);
	wire_put_u8(b, end->failed);
	wire_put_u8(b, end->artifacts);
	wire_put_u16(b, end->command);
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
		return length >= RUNLOG_END_FIXED &&
		    length <= RUNLOG_RECORD_MAX;
	case RUNLOG_RUN_ENDED:
		return length == RUNLOG_RUN_END_BYTES;
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
	rc = wire_get_end(&in, e);
	if (rc == 0)
		rc = runlog_check_end(&got, e);
	if (rc != 0)
		return rc;
	if (memchr(text, '\0', len) != NULL)
		return err_set(e, ERR_PROTO, "end text has a NUL inside");
	memcpy(got.text, text, len);
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

void
runlog_check_init(struct runlog_check *c, uint32_t ncommands)
{
	memset(c, 0, sizeof(*c));
	c->ncommands = ncommands;
	c->command = -1;
	c->last = -1;
}

/* May a record with this header come now? */
static int
runlog_check_order(
    const struct runlog_check *c, const struct runlog_header *h, struct err *e)
{
	bool good = false;

	switch (h->type) {
	case RUNLOG_RUN_STARTED:
		good = !c->started && h->command == 0;
		break;
	case RUNLOG_COMMAND_STARTED:
		good = c->started && c->command < 0 &&
		    h->command == c->last + 1 && h->command < c->ncommands;
		break;
	case RUNLOG_STDOUT:
	case RUNLOG_STDERR:
	case RUNLOG_COMMAND_ENDED:
		good = c->command >= 0 && h->command == c->command;
		break;
	case RUNLOG_RUN_ENDED:
		good =
		    c->started && c->command < 0 && h->command < c->ncommands;
		break;
	}
	if (!good)
		return err_set(e, ERR_PROTO,
		    "record of type %d for command %u out of order",
		    (int)h->type, h->command);
	return 0;
}

/* A whole record other than output stands in c->head. */
static int
runlog_check_record(
    struct runlog_check *c, const struct runlog_header *h, struct err *e)
{
	const uint8_t *payload = c->head + RUNLOG_HEADER_BYTES;
	struct runlog_run_end run_end;
	struct runlog_end end;

	switch (h->type) {
	case RUNLOG_RUN_STARTED:
		c->started = true;
		break;
	case RUNLOG_COMMAND_STARTED:
		c->command = h->command;
		c->bytes[0] = c->bytes[1] = 0;
		break;
	case RUNLOG_COMMAND_ENDED:
		if (runlog_parse_end(payload, h->length, &end, e) != 0)
			return ERR_PROTO;
		if (end.stdout_bytes != c->bytes[0] ||
		    end.stderr_bytes != c->bytes[1])
			return err_set(e, ERR_PROTO,
			    "command %u ended with wrong byte counts",
			    h->command);
		c->last = c->command;
		c->command = -1;
		break;
	case RUNLOG_RUN_ENDED:
		if (runlog_parse_run_end(payload, h->length, &run_end, e) != 0)
			return ERR_PROTO;
		if (run_end.command >= c->ncommands)
			return err_set(e, ERR_PROTO, "run ended at command %u",
			    run_end.command);
		c->ended = true;
		break;
	case RUNLOG_STDOUT: /* do not come here */
	case RUNLOG_STDERR:
		break;
	}
	return 0;
}

/* Take bytes until c->head has want of them; true when it has. */
static bool
runlog_check_fill(
    struct runlog_check *c, size_t want, const uint8_t **p, size_t *n)
{
	size_t take = want - c->nhead;

	if (take > *n)
		take = *n;
	memcpy(c->head + c->nhead, *p, take);
	c->nhead += take;
	c->offset += take;
	*p += take;
	*n -= take;
	return c->nhead == want;
}

/* The next header and, unless it is output, its payload. */
static int
runlog_check_next(struct runlog_check *c, const uint8_t **p, size_t *n,
    runlog_record_cb cb, void *arg, struct err *e)
{
	struct runlog_header h;

	if (c->ended)
		return err_set(e, ERR_PROTO, "bytes behind the end of the run");
	if (c->nhead < RUNLOG_HEADER_BYTES &&
	    !runlog_check_fill(c, RUNLOG_HEADER_BYTES, p, n)) {
		if (c->head[0] != RUNLOG_MAGIC)
			return err_set(
			    e, ERR_PROTO, "no record: magic %#x", c->head[0]);
		return 0;
	}
	if (runlog_parse_header(c->head, &h, e) != 0 ||
	    runlog_check_order(c, &h, e) != 0)
		return ERR_PROTO;
	if (h.type == RUNLOG_STDOUT || h.type == RUNLOG_STDERR) {
		c->skip = h.length;
		c->bytes[h.type == RUNLOG_STDERR] += h.length;
		c->nhead = 0;
		return 0;
	}
	if (!runlog_check_fill(c, RUNLOG_HEADER_BYTES + h.length, p, n))
		return 0;
	if (runlog_check_record(c, &h, e) != 0)
		return ERR_PROTO;
	c->nhead = 0;
	if (cb != NULL)
		cb(&h, c->head, RUNLOG_HEADER_BYTES + h.length, arg);
	return 0;
}

int
runlog_check_feed(struct runlog_check *c, const uint8_t *p, size_t n,
    runlog_record_cb cb, void *arg, struct err *e)
{
	while (n > 0) {
		if (c->skip > 0) { /* payload: passed, never looked at */
			size_t take = c->skip < n ? c->skip : n;

			c->skip -= (uint32_t)take;
			c->offset += take;
			p += take;
			n -= take;
			continue;
		}
		if (runlog_check_next(c, &p, &n, cb, arg, e) != 0)
			return ERR_PROTO;
	}
	return 0;
}
