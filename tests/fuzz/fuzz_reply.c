/* fuzz_reply.c - whatever an engine may answer, in whatever pieces.  The first
 * byte is the size of the pieces, the second how much of the body is taken.
 * libs: worker common */
#include "common/buf.h"
#include "common/xmalloc.h"
#include "worker/docker/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(cond)                                                          \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

struct taken {
	struct reply reply;
	struct buf body;
	size_t most;
};

static bool
body_cb(unsigned int status, const uint8_t *p, size_t n, void *arg)
{
	struct taken *t = arg;

	REQUIRE(status == reply_status(&t->reply));
	REQUIRE(t->reply.state == REPLY_MORE && p != NULL && n > 0);
	if (buf_append(&t->body, p, n) != 0)
		abort();
	return buf_len(&t->body) <= t->most;
}

static void
take(struct taken *t, const uint8_t *p, size_t n, size_t piece, size_t most)
{
	enum reply_state state = REPLY_MORE;

	t->most = most;
	buf_init(&t->body, 0);
	reply_init(&t->reply, body_cb, t);
	for (size_t at = 0; at < n && state == REPLY_MORE; at += piece)
		state = reply_feed(
		    &t->reply, p + at, piece < n - at ? piece : n - at);
	if (state == REPLY_MORE)
		state = reply_end(&t->reply);
	REQUIRE(state != REPLY_MORE && state == t->reply.state);
	REQUIRE(state != REPLY_WHOLE || reply_status(&t->reply) >= 200);
	REQUIRE(state == REPLY_WHOLE || !t->reply.keep);
	REQUIRE(reply_why(&t->reply)[0] != '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taken whole, cut;
	size_t most;

	if (size < 2)
		return 0;
	most = data[1] == 0xff ? SIZE_MAX : data[1];
	take(&whole, data + 2, size - 2, SIZE_MAX / 2, most);
	take(&cut, data + 2, size - 2, data[0] + (size_t)1, most);
	REQUIRE(whole.reply.state == cut.reply.state);
	if (whole.reply.state == REPLY_WHOLE) {
		REQUIRE(reply_status(&whole.reply) == reply_status(&cut.reply));
		REQUIRE(buf_len(&whole.body) == buf_len(&cut.body));
		REQUIRE(buf_len(&whole.body) == 0 ||
		    memcmp(buf_data(&whole.body), buf_data(&cut.body),
			buf_len(&whole.body)) == 0);
	}
	buf_clear(&whole.body);
	buf_clear(&cut.body);
	return 0;
}
