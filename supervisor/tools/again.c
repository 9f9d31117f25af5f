#include "supervisor/tools/again.h"

#include "common/clock.h"
#include "supervisor/mcp/offer.h"

/* ---- tokens: run 16 | until 8 | bits 8 | structured 1 | text */

#define AT_UNTIL sizeof(((struct uuid *)0)->b)
#define AT_BITS (AT_UNTIL + 8)
#define AT_STRUCTURED (AT_BITS + 8)
#define AT_TEXT (AT_STRUCTURED + 1)

static void
put64(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--) {
		p[i] = (uint8_t)(v & 0xff);
		v >>= 8;
	}
}

static uint64_t
get64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

size_t
again_write(const struct again_token *token, uint8_t out[MCP_TOKEN_MAX])
{
	size_t n = strlen(token->text);

	_Static_assert(AT_TEXT + AGAIN_TEXT_MAX <= MCP_TOKEN_MAX, "no room");
	memcpy(out, token->run.b, AT_UNTIL);
	put64(out + AT_UNTIL, (uint64_t)token->until_ms);
	put64(out + AT_BITS, token->bits);
	out[AT_STRUCTURED] = token->is_structured ? 1 : 0;
	memcpy(out + AT_TEXT, token->text, n);
	return AT_TEXT + n;
}

void
again_set(struct tool_call *t, const struct uuid *run, int64_t until_ms,
    uint64_t bits, const char *text)
{
	struct again_token token = {.run = *run,
	    .until_ms = until_ms,
	    .bits = bits,
	    .is_structured = t->is_structured};
	uint8_t bytes[MCP_TOKEN_MAX];

	if (strlen(text) > AGAIN_TEXT_MAX)
		return;
	memcpy(token.text, text, strlen(text));
	mcp_call_set_token(t->mcp, bytes, again_write(&token, bytes));
}

int
again_read(struct tool_call *t, const void *token, size_t n,
    struct again_token *out, struct err *e)
{
	const uint8_t *p = token;

	*out = (struct again_token){0};
	if (n < AT_TEXT || n > AT_TEXT + AGAIN_TEXT_MAX)
		return err_set(e, ERR_NOTFOUND,
		    "this answer cannot be said again: call the tool anew");
	memcpy(out->run.b, p, AT_UNTIL);
	out->until_ms = (int64_t)get64(p + AT_UNTIL);
	out->bits = get64(p + AT_BITS);
	out->is_structured = p[AT_STRUCTURED] != 0;
	t->is_structured = t->is_structured || out->is_structured;
	memcpy(out->text, p + AT_TEXT, n - AT_TEXT);
	return 0;
}

int64_t
again_until(uint64_t deadline_ms)
{
	return deadline_ms == 0 ?
	    AGAIN_TO_ITS_END :
	    clock_wall_ms() + (int64_t)deadline_ms - (int64_t)clock_mono_ms();
}

uint64_t
again_deadline(int64_t until_ms)
{
	int64_t left = until_ms - clock_wall_ms();

	if (until_ms == AGAIN_TO_ITS_END)
		return 0;
	return clock_mono_ms() + (left > 0 ? (uint64_t)left : 0);
}

/* ---- the run */

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct again *a = arg;

	a->request = NULL;
	if (rc == 0)
		a->cb(a, WAIT_IS_OVER, a->found.row, d, NULL);
	else
		a->cb(a, WAIT_FAILED, NULL, NULL, why);
}

static void
waited_cb(struct wait *w, enum wait_outcome outcome, const struct log_digest *d,
    const struct err *why)
{
	struct again *a = (struct again *)w;

	a->cb(a, outcome, outcome == WAIT_FAILED ? NULL : &w->run->row, d, why);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct again *a = arg;
	struct run *r;

	if (rc != 0) {
		a->cb(a, WAIT_FAILED, NULL, NULL, why);
		return;
	}
	a->found = *found;
	r = found->run;
	if (a->token.until_ms == AGAIN_AT_ONCE) {
		a->cb(a, WAIT_IS_RECORDED, found->row, NULL, NULL);
	} else if (r == NULL || r->phase == RUN_OVER) {
		log_view_digest(found->view, r != NULL ? r->length : UINT64_MAX,
		    digest_cb, a, &a->request);
	} else {
		a->t->call->deadline_ms = again_deadline(a->token.until_ms);
		wait_start(&a->wait, core_base(a->t->core), r, a->t->call,
		    WAIT_ENDED, waited_cb, a->t);
	}
}

void
again_start(struct again *a, struct tool_call *t,
    const struct again_token *token, enum run_merge merge, again_cb cb)
{
	struct core *core = t->core;

	a->t = t;
	a->token = *token;
	a->cb = cb;
	again_set(t, &token->run, token->until_ms, token->bits, token->text);
	a->lookup = merge == RUN_MERGED ?
	    lookup_open_merged(core, t->call->who, &token->run, found_cb, a) :
	    lookup_open(core, t->call->who, &token->run, 0, found_cb, a);
}

/* A sandbox that did not come to be: its run has that reason, and no
 * beginning. */
int
again_never_began(const struct again *a, const struct store_run *row)
{
	if (a->found.run != NULL)
		return run_never_began(a->found.run) ? a->found.run->fail_code :
						       0;
	return row->end_reason == RUNLOG_START_FAILED && row->started_ms == 0 ?
	    ERR_BACKEND :
	    0;
}

void
again_clear(struct again *a)
{
	wait_clear(&a->wait);
	log_request_cancel(a->request);
	lookup_close(a->lookup);
}
