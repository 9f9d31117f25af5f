#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "common/ipc.h"
#include "common/ipc_wire.h"
#include "tests/unit/common/forked.h"

static int calls;

static int
on_any(void *arg, struct ipc_msg *m, struct err *e)
{
	calls++;
	assert_ptr_equal(arg, &calls);
	if (m->id == 13)
		return err_set(e, ERR_INVAL, "thirteen");
	return 0;
}

static const struct ipc_route routes[] = {
    {IPC_PING, 1 | 2, 0, on_any},
    {IPC_LISTEN, 2, 1, on_any},
    {IPC_NONE, 0, 0, NULL},
};

static void
test_a_message_reaches_its_handler(void **state)
{
	struct ipc_msg m = {.type = IPC_PING};
	struct err e;

	(void)state;
	calls = 0;
	assert_int_equal(ipc_dispatch(routes, 1, &m, &calls, &e), 0);
	assert_int_equal(ipc_dispatch(routes, 2, &m, &calls, &e), 0);
	assert_int_equal(calls, 2);
	m.id = 13;
	assert_int_equal(ipc_dispatch(routes, 2, &m, &calls, &e), ERR_INVAL);
	assert_string_equal(e.msg, "thirteen");
}

static void
test_what_no_route_permits_is_a_protocol_error(void **state)
{
	struct ipc_msg m = {.type = IPC_DRAIN};
	struct err e;

	(void)state;
	calls = 0;
	assert_int_equal(ipc_dispatch(routes, 1, &m, &calls, &e), ERR_PROTO);
	assert_string_equal(e.msg, "DRAIN is not for this process");
	m.type = IPC_LISTEN;
	assert_int_equal(ipc_dispatch(routes, 1, &m, &calls, &e), ERR_PROTO);
	assert_string_equal(e.msg, "LISTEN is not permitted now");
	m.nfds = 2;
	assert_int_equal(ipc_dispatch(routes, 2, &m, &calls, &e), ERR_PROTO);
	assert_string_equal(e.msg, "LISTEN with 2 descriptors, limit 1");
	assert_int_equal(calls, 0);
}

static void
test_a_sealed_message_parses_and_a_spoilt_one_does_not(void **state)
{
	struct ipc_out o;
	struct ipc_msg m = {.type = IPC_NONE};
	struct err e;
	uint8_t *p;
	size_t n, size = 0;

	(void)state;
	ipc_out_init(&o, IPC_PING, UINT64_MAX - 7);
	wire_put_u64(&o.b, 5);
	ipc_out_seal(&o);
	p = buf_data(&o.b);
	n = buf_len(&o.b);
	assert_int_equal(ipc_msg_parse(&m, p, n, 0, &size, &e), 0);
	assert_int_equal(m.type, IPC_PING);
	assert_true(m.id == UINT64_MAX - 7);
	assert_int_equal(wire_get_u64(&m.in), 5);
	assert_int_equal(wire_get_end(&m.in, &e), 0);
	assert_int_equal(size, n);

	assert_int_equal(ipc_msg_parse(&m, p, 15, 0, &size, &e), ERR_PROTO);
	assert_int_equal(ipc_msg_parse(&m, p, n - 1, 0, &size, &e), ERR_PROTO);
	assert_int_equal(ipc_msg_parse(&m, p, n, 1, &size, &e), ERR_PROTO);
	p[0] = 19; /* is no type */
	assert_int_equal(ipc_msg_parse(&m, p, n, 0, &size, &e), ERR_PROTO);
	assert_string_equal(e.msg, "unknown message type 19");
	ipc_out_clear(&o);
}

static void
test_descriptors_are_taken_in_order_and_the_rest_closed(void **state)
{
	int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int b = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct ipc_msg m = {.nfds = 2, .fds = {a, b}};

	(void)state;
	assert_int_equal(ipc_msg_take_fd(&m), a);
	ipc_msg_close_fds(&m);
	assert_int_equal(ipc_msg_take_fd(&m), -1);
	assert_true(fcntl(a, F_GETFD) != -1);
	assert_int_equal(fcntl(b, F_GETFD), -1);
	(void)close(a);
}

static void
add_three(void)
{
	struct ipc_out o;

	ipc_out_init(&o, IPC_LISTEN, 0);
	for (int i = 0; i < 3; i++)
		ipc_out_add_fd(&o, i);
}

static void
add_none(void)
{
	struct ipc_out o;

	ipc_out_init(&o, IPC_LISTEN, 0);
	ipc_out_add_fd(&o, -1);
}

static void
test_adding_what_cannot_be_sent_is_our_bug(void **state)
{
	struct forked f;

	(void)state;
	forked_run(&f, add_three);
	assert_int_equal(f.status, 70);
	forked_run(&f, add_none);
	assert_int_equal(f.status, 70);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_message_reaches_its_handler),
	    cmocka_unit_test(test_what_no_route_permits_is_a_protocol_error),
	    cmocka_unit_test(
		test_a_sealed_message_parses_and_a_spoilt_one_does_not),
	    cmocka_unit_test(
		test_descriptors_are_taken_in_order_and_the_rest_closed),
	    cmocka_unit_test(test_adding_what_cannot_be_sent_is_our_bug),
	};

	return cmocka_run_group_tests_name("ipc_msg", tests, NULL, NULL);
}
