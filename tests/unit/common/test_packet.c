#include <fcntl.h>

#include "common/msg/msg_gen.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

static int
open_null(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* *m as a packet, and what comes out of it at the other end. */
static void
pass(struct ipc_out *o, unsigned int type, const void *m, struct ipc_msg *in)
{
	size_t size;
	struct err e;

	ipc_out_init(o);
	ipc_out_put(o, msg_codec(type), m);
	assert_int_equal(ipc_msg_parse(in, buf_data(&o->b), buf_len(&o->b),
			     o->nfds, &size, &e),
	    0);
	assert_int_equal(size, buf_len(&o->b));
	memcpy(in->fds, o->fds, sizeof(in->fds));
	in->nfds = o->nfds;
	o->nfds = 0; /* the receiver's */
}

TEST(a_message_parses_and_a_spoilt_one_does_not)
{
	struct ipc_out o;
	struct ipc_msg m;
	struct err e;
	uint8_t *p;
	size_t n, size = 0;

	ipc_out_init(&o);
	ipc_out_put(&o, msg_codec(IPC_RUN_BYTES),
	    &(struct msg_run_bytes){.id = UINT64_MAX - 7, .length = 5});
	p = buf_data(&o.b);
	n = buf_len(&o.b);
	assert_int_equal(n, IPC_HEADER_BYTES + 8);
	assert_int_equal(ipc_msg_parse(&m, p, n, 0, &size, &e), 0);
	assert_int_equal(m.type, IPC_RUN_BYTES);
	assert_true(m.id == UINT64_MAX - 7);
	assert_int_equal(wire_get_u64(&m.in), 5);
	assert_int_equal(wire_get_end(&m.in, &e), 0);
	assert_int_equal(size, n);

	assert_int_equal(ipc_msg_parse(&m, p, 15, 0, &size, &e), ERR_PROTO);
	assert_int_equal(ipc_msg_parse(&m, p, n - 1, 0, &size, &e), ERR_PROTO);
	assert_int_equal(ipc_msg_parse(&m, p, n, 1, &size, &e), ERR_PROTO);
	p[4] = IPC_HEADER_BYTES - 1; /* its length */
	assert_int_equal(ipc_msg_parse(&m, p, n, 0, &size, &e), ERR_PROTO);
	ipc_out_clear(&o);
}

TEST(descriptors_come_to_their_members)
{
	int a = open_null(), b = open_null();
	struct msg_run_start m;
	struct ipc_out o;
	struct ipc_msg in;
	struct err e;

	pass(&o, IPC_RUN_START,
	    &(struct msg_run_start){.id = 4, .spool = a, .spec_file = b}, &in);
	assert_int_equal(msg_get_run_start(&in, &m, &e), 0);
	assert_int_equal(m.spool, a);
	assert_int_equal(m.spec_file, b);
	assert_int_equal(in.nfds, 0);
	ipc_out_clear(&o);

	pass(&o, IPC_RUN_START, &(struct msg_run_start){.spool = a}, &in);
	assert_int_equal(msg_get_run_start(&in, &m, &e), 0);
	assert_int_equal(m.spool, a);
	assert_int_equal(m.spec_file, -1);
	ipc_out_clear(&o);

	assert_int_equal(msg_take_fd(&m.spool), a);
	assert_int_equal(m.spool, -1);
	(void)close(a);
	(void)close(b);
}

TEST(descriptors_that_are_not_of_the_list_are_refused)
{
	int a = open_null(), b = open_null();
	struct msg_run_start start;
	struct msg_listen listen;
	struct ipc_out o;
	struct ipc_msg in;
	struct err e;

	pass(&o, IPC_RUN_START, &(struct msg_run_start){.spool = a}, &in);
	in.nfds = 0;
	assert_int_equal(msg_get_run_start(&in, &start, &e), ERR_PROTO);
	assert_string_equal(e.msg, "RUN_START: 0 descriptors");
	ipc_out_clear(&o);

	pass(&o, IPC_LISTEN, &(struct msg_listen){.socket = a}, &in);
	in.fds[in.nfds++] = b;
	assert_int_equal(msg_get_listen(&in, &listen, &e), ERR_PROTO);
	assert_string_equal(e.msg, "LISTEN: 2 descriptors");
	assert_int_equal(in.nfds, 2); /* still the message's */
	ipc_msg_close_fds(&in);
	assert_int_equal(fcntl(a, F_GETFD), -1);
	assert_int_equal(fcntl(b, F_GETFD), -1);
	ipc_out_clear(&o);
}

TEST(an_id_where_there_is_none_is_refused)
{
	struct msg_drain m;
	struct ipc_out o;
	struct ipc_msg in;
	struct err e;

	pass(&o, IPC_DRAIN, &(struct msg_drain){.left_ms = 1}, &in);
	in.id = 1;
	assert_int_equal(msg_get_drain(&in, &m, &e), ERR_PROTO);
	assert_string_equal(e.msg, "DRAIN: has an id");
	ipc_out_clear(&o);
}

TEST(what_goes_nowhere_closes_its_descriptors)
{
	int a = open_null(), b = open_null();

	msg_send_run_start(
	    NULL, &(struct msg_run_start){.spool = a, .spec_file = b});
	assert_int_equal(fcntl(a, F_GETFD), -1);
	assert_int_equal(fcntl(b, F_GETFD), -1);
	msg_send_ping(NULL, &(struct msg_ping){0});
}

static void
send_without_spool(void)
{
	msg_send_run_start(NULL, &(struct msg_run_start){.spool = -1});
}

static void
send_with_descriptor_never_set(void)
{
	msg_send_run_start(NULL, &(struct msg_run_start){.spec_file = 1});
}

TEST(leaving_a_descriptor_out_is_our_bug)
{
	struct forked f;

	forked_run(&f, send_without_spool);
	assert_int_equal(f.status, 70);
	assert_non_null(strstr(f.text, "RUN_START: spool is -1"));
	forked_run(&f, send_with_descriptor_never_set);
	assert_int_equal(f.status, 70);
}

TEST_MAIN(NULL, NULL)
