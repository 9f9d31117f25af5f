/* Messages of a Pod's exec, as API servers of versions 1.28 to 1.36 sent
 * them. */
struct fixture;
#define TEST_STATE struct fixture *f

#include "common/xmalloc.h"
#include "tests/unit/test.h"
#include "tests/unit/worker/websocket_frames.h"
#include "worker/complaint.h"
#include "worker/kubernetes/exec_stream.h"

#define SUCCESS "{\"metadata\":{},\"status\":\"Success\"}"
#define NO_PROGRAM                                                             \
	"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Internal "      \
	"error "                                                               \
	"occurred: error executing command in container: failed to exec in "   \
	"container: failed to start exec \\\"3800a2\\\": OCI runtime exec "    \
	"failed: exec failed: unable to start container process: exec: "       \
	"\\\"/no/such/program\\\": stat /no/such/program: no such file or "    \
	"directory: unknown\",\"reason\":\"InternalError\",\"details\":"       \
	"{\"causes\":[{\"message\":\"Internal error occurred\"}]},"            \
	"\"code\":500}"
/* One whose text is of v5, and one of v4's. */
#define EXIT_7                                                                 \
	"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command "       \
	"terminated with non-zero exit code: command terminated with exit "    \
	"code 7\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":"     \
	"[{\"reason\":\"ExitCode\",\"message\":\"7\"}]}}"
#define EXIT_137                                                               \
	"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command "       \
	"terminated with non-zero exit code: error executing command [sh -c "  \
	"kill -9 $$], exit code 137\",\"reason\":\"NonZeroExitCode\","         \
	"\"details\":{\"causes\":[{\"reason\":\"ExitCode\","                   \
	"\"message\":\"137\"}]}}"

struct fixture {
	struct exec_stream *s;
	struct buf in, out, back;
};

static int
setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.s = exec_stream_new(EXEC_PROTOCOL_V5);
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	exec_stream_free(f->s);
	buf_clear(&f->in);
	buf_clear(&f->out);
	buf_clear(&f->back);
	return 0;
}

static void
begin_anew(struct fixture *f)
{
	void *state = f;

	(void)teardown(&state);
	(void)setup(&state);
}

static void
server_says(struct fixture *f, int channel, const char *text)
{
	frames_put_message(&f->in, channel, text, strlen(text));
}

static int
take(struct fixture *f, size_t piece, struct err *e)
{
	int rc = 0;

	while (buf_len(&f->in) > 0 && rc == 0) {
		size_t n = buf_len(&f->in) < piece ? buf_len(&f->in) : piece;

		rc = exec_stream_take(
		    f->s, buf_data(&f->in), n, &f->out, &f->back, e);
		buf_consume(&f->in, n);
	}
	return rc;
}

static void
expect_output(struct fixture *f, const char *text)
{
	assert_int_equal(buf_len(&f->out), strlen(text));
	assert_memory_equal(buf_data(&f->out), text, strlen(text));
}

TEST(a_subprotocol_is_one_of_two)
{
	(void)f;
	assert_int_equal(
	    exec_stream_protocol("v5.channel.k8s.io"), EXEC_PROTOCOL_V5);
	assert_int_equal(
	    exec_stream_protocol("v4.channel.k8s.io"), EXEC_PROTOCOL_V4);
	assert_int_equal(
	    exec_stream_protocol(EXEC_STREAM_OFFER), EXEC_PROTOCOL_NONE);
	assert_int_equal(exec_stream_protocol("v4.base64.channel.k8s.io"),
	    EXEC_PROTOCOL_NONE);
	assert_int_equal(exec_stream_protocol(""), EXEC_PROTOCOL_NONE);
	assert_int_equal(exec_stream_protocol(NULL), EXEC_PROTOCOL_NONE);
}

/* The first message is of no data, whatever its channel. */
TEST(an_exec_is_its_output_its_errors_and_its_end)
{
	static const size_t pieces[] = {1, 5, 100000};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		begin_anew(f);
		server_says(f, 1, "");
		server_says(f, 1, "out\n");
		server_says(f, 2, "err\n");
		server_says(f, 3, EXIT_7);
		frames_put_close(&f->in, 1000);
		assert_int_equal(take(f, pieces[i], &e), 1);
		expect_output(f, "out\n");
		assert_int_equal(exec_stream_complaint(f->s)->n, 4);
		assert_memory_equal(
		    exec_stream_complaint(f->s)->first, "err\n", 4);
		assert_int_equal(
		    exec_stream_result(f->s)->end, EXEC_END_EXITED);
		assert_int_equal(exec_stream_result(f->s)->code, 7);
		frames_expect_close(&f->back, 1000);
	}
}

/* A status, after this output, and what it is taken for. */
TEST(an_end_is_one_of_three)
{
	static const struct {
		const char *output;
		const char *status;
		enum exec_end end;
		int32_t code;
	} rows[] = {
	    {"x", SUCCESS, EXEC_END_EXITED, 0},
	    {"", SUCCESS, EXEC_END_EXITED, 0},
	    {"x", EXIT_137, EXEC_END_EXITED, 137},
	    {"", NO_PROGRAM, EXEC_END_NO_START, 0},
	    /* It ran: something else went wrong. */
	    {"x", NO_PROGRAM, EXEC_END_UNKNOWN, 0},
	    /* Of an exec that named no subprotocol. */
	    {"x", "command terminated with non-zero exit code: exit code 3",
		EXEC_END_UNKNOWN, 0},
	    {"", "{}", EXEC_END_UNKNOWN, 0},
	    {"", "[]", EXEC_END_UNKNOWN, 0},
	    {"", "{\"status\":\"Failure\",\"reason\":\"Timeout\"}",
		EXEC_END_UNKNOWN, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct exec_result *r;
		struct err e;

		begin_anew(f);
		server_says(f, 1, "");
		server_says(f, 1, rows[i].output);
		server_says(f, 3, rows[i].status);
		frames_put_close(&f->in, 1000);
		assert_int_equal(take(f, 7, &e), 1);
		expect_output(f, rows[i].output);
		r = exec_stream_result(f->s);
		if (r->end != rows[i].end || r->code != rows[i].code)
			fail_msg("%zu: %d %d", i, r->end, r->code);
	}
}

TEST(an_exit_code_is_a_number_of_at_most_three_digits)
{
	static const char *const bad[] = {
	    "", "-1", "1e2", " 7", "7 ", "0x7", "1000", "4294967296"};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO(auto_free)
		char *status =
		    xasprintf("{\"status\":\"Failure\",\"reason\":"
			      "\"NonZeroExitCode\",\"details\":{\"causes\":[{"
			      "\"reason\":\"ExitCode\",\"message\":\"%s\"}]}}",
			bad[i]);

		begin_anew(f);
		server_says(f, 3, status);
		assert_int_equal(take(f, 1000, &e), 0);
		if (exec_stream_result(f->s)->end != EXEC_END_UNKNOWN)
			fail_msg("\"%s\"", bad[i]);
	}
}

TEST(a_connection_that_ends_without_a_status_says_nothing)
{
	struct err e;

	server_says(f, 1, "");
	server_says(f, 1, "half of i");
	assert_int_equal(take(f, 1000, &e), 0);
	expect_output(f, "half of i");
	assert_int_equal(exec_stream_result(f->s)->end, EXEC_END_UNKNOWN);
	assert_string_equal(exec_stream_result(f->s)->text, "");
}

TEST(the_clusters_words_are_kept_and_fit_to_be_shown)
{
	const struct exec_result *r = exec_stream_result(f->s);
	struct err e;

	server_says(f, 3,
	    "{\"status\":\"Failure\",\"reason\":\"InternalError\","
	    "\"message\":\"no\\u001b[31m\\nsuch\"}");
	server_says(f, 3, SUCCESS); /* the first one counts */
	assert_int_equal(take(f, 1000, &e), 0);
	assert_int_equal(r->end, EXEC_END_NO_START);
	assert_string_equal(r->text, "no [31m such");
	begin_anew(f);
	r = exec_stream_result(f->s);
	server_says(f, 3, NO_PROGRAM);
	assert_int_equal(take(f, 1000, &e), 0);
	assert_int_equal(strlen(r->text), sizeof(r->text) - 1);
}

TEST(output_of_32_kib_a_message_goes_through)
{
	static uint8_t bytes[32768];
	struct err e;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i >> 3);
	for (int i = 0; i < 4; i++)
		frames_put_message(&f->in, 1, bytes, sizeof(bytes));
	assert_int_equal(take(f, 65536, &e), 0);
	assert_int_equal(buf_len(&f->out), 4 * sizeof(bytes));
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(buf_data(&f->out) + i * sizeof(bytes),
		    bytes, sizeof(bytes));
}

TEST(what_is_no_message_of_an_exec_ends_it)
{
	static const int channels[] = {0, 4, 9, 255, '1'};
	static char much[70000];
	struct err e;

	memset(much, '[', sizeof(much) - 1);
	for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
		begin_anew(f);
		server_says(f, channels[i], "x");
		assert_int_equal(take(f, 1000, &e), ERR_PROTO);
		assert_non_null(strstr(e.msg, "no known channel"));
		assert_int_equal(buf_len(&f->out), 0);
	}
	begin_anew(f);
	server_says(f, 3, much);
	assert_int_equal(take(f, 1000, &e), ERR_PROTO);
	begin_anew(f);
	server_says(f, 3, much + sizeof(much) - 60000); /* too deep */
	assert_int_equal(take(f, 1000, &e), 0);
	assert_int_equal(exec_stream_result(f->s)->end, EXEC_END_UNKNOWN);
}

TEST(errors_of_a_program_are_a_line_and_no_stream)
{
	static char much[COMPLAINT_MAX + 2];
	struct err e;

	memset(much, 'e', sizeof(much) - 2);
	server_says(f, 2, much);
	assert_int_equal(take(f, 1000, &e), 0);
	server_says(f, 2, "e");
	assert_int_equal(take(f, 1000, &e), ERR_LIMIT);
	assert_string_equal(e.msg, COMPLAINT_TOO_MUCH);
	assert_int_equal(buf_len(&f->out), 0);
}

TEST(input_is_a_message_of_channel_0)
{
	static uint8_t message[1 + EXEC_STREAM_INPUT_MAX];

	exec_stream_put(f->s, (const uint8_t *)"hello\n", 6, &f->back);
	frames_expect(&f->back, FRAMES_FINAL | FRAMES_BINARY, "\0hello\n", 7);
	exec_stream_put(f->s, message, 0, &f->back);
	assert_int_equal(buf_len(&f->back), 0);
	buf_set_max(&f->back, EXEC_STREAM_INPUT_MAX + EXEC_STREAM_HEAD_MAX);
	exec_stream_put(f->s, message, EXEC_STREAM_INPUT_MAX, &f->back);
	frames_expect(&f->back, FRAMES_FINAL | FRAMES_BINARY, message,
	    1 + EXEC_STREAM_INPUT_MAX);
}

TEST(the_end_of_input_is_said_where_it_can_be)
{
	exec_stream_close(f->s, &f->back);
	frames_expect(&f->back, FRAMES_FINAL | FRAMES_BINARY, "\377\0", 2);
	frames_expect_close(&f->back, 1000);
	assert_int_equal(buf_len(&f->back), 0);
	exec_stream_free(f->s);
	f->s = exec_stream_new(EXEC_PROTOCOL_V4);
	exec_stream_close(f->s, &f->back);
	frames_expect_close(&f->back, 1000);
	assert_int_equal(buf_len(&f->back), 0);
}

TEST_MAIN(setup, teardown)
