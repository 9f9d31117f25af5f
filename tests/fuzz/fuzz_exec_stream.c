/* fuzz_exec_stream.c - messages of a Pod's exec, each a length of two bytes and
 * what is in it: whatever a server sends, output is output, and an end is one
 * that a status said.
 * libs: worker */
#include "tests/fuzz/fuzz.h"
#include "worker/complaint.h"
#include "worker/kubernetes/exec_stream.h"

#define MESSAGE_MAX 4096

/* What an exec writes as it is told by its messages, without a status. */
struct expected {
	size_t output;
	size_t errors;
	bool has_status;
};

static void
put_message(struct buf *b, const uint8_t *p, size_t n, struct expected *x)
{
	const uint8_t head[] = {0x82, 126, (uint8_t)(n >> 8), (uint8_t)n};
	const uint8_t short_head[] = {0x82, (uint8_t)n};

	REQUIRE((n < 126 ? buf_append(b, short_head, sizeof(short_head)) :
			   buf_append(b, head, sizeof(head))) == 0);
	REQUIRE(buf_append(b, p, n) == 0);
	if (n > 1 && p[0] == 1)
		x->output += n - 1;
	if (n > 1 && p[0] == 2)
		x->errors += n - 1;
	x->has_status |= n > 1 && p[0] == 3;
}

static void
check(struct exec_stream *s, const struct buf *out, const struct expected *x,
    int rc)
{
	const struct exec_result *r = exec_stream_result(s);

	REQUIRE(rc == 0 || rc == ERR_PROTO || rc == ERR_LIMIT);
	REQUIRE(rc != 0 || buf_len(out) == x->output);
	REQUIRE(rc != 0 || exec_stream_complaint(s)->n == x->errors);
	REQUIRE(rc != ERR_LIMIT || x->errors > COMPLAINT_MAX);
	REQUIRE(r->end == EXEC_END_UNKNOWN || x->has_status);
	REQUIRE(r->code >= 0 && r->code <= 999);
	REQUIRE(r->end == EXEC_END_EXITED || r->code == 0);
	REQUIRE(memchr(r->text, '\0', sizeof(r->text)) != NULL);
	for (const char *p = r->text; *p != '\0'; p++)
		REQUIRE((uint8_t)*p >= ' ');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf in = {0}, out = {0}, back = {0};
	struct exec_stream *s = exec_stream_new(EXEC_PROTOCOL_V5);
	struct expected x = {0};
	struct err e;
	int rc = 0;

	while (size >= 2 && rc == 0) {
		size_t n = ((size_t)data[0] << 8 | data[1]) % MESSAGE_MAX;

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		put_message(&in, data, n, &x);
		rc = exec_stream_take(
		    s, buf_data(&in), buf_len(&in), &out, &back, &e);
		buf_consume(&in, buf_len(&in));
		data += n;
		size -= n;
	}
	check(s, &out, &x, rc);
	exec_stream_free(s);
	buf_clear(&in);
	buf_clear(&out);
	buf_clear(&back);
	return 0;
}
