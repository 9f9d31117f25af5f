#include <fcntl.h>
#include <limits.h>

#include "common/msg/codec.h"
#include "common/msg/frame_gen.h"
#include "common/msg/msg_gen.h"
#include "tests/unit/common/codec_any.h"
#include "tests/unit/test.h"

/* Handlers that count, of every message that there is. */
static unsigned int calls;
static int kept;

#define COUNT(way, type, name, qualifier)                                      \
	static int way##_on_##name(                                            \
	    void *arg, qualifier struct type##_##name *m, struct err *e)       \
	{                                                                      \
		assert_ptr_equal(arg, &calls);                                 \
		assert_non_null(m);                                            \
		(void)e;                                                       \
		calls++;                                                       \
		return 0;                                                      \
	}
#define MSG_COUNT(name, qualifier) COUNT(msg, msg, name, qualifier)
#define MSG_ENTRY(name, qualifier) .on_##name = msg_on_##name,
#define UP_COUNT(name, qualifier) COUNT(up, frame, name, qualifier)
#define UP_ENTRY(name, qualifier) .on_##name = up_on_##name,
#define DOWN_COUNT(name, qualifier) COUNT(down, frame, name, qualifier)
#define DOWN_ENTRY(name, qualifier) .on_##name = down_on_##name,
/* A sum of them needs no parentheses. */
#define AND_ONE(name, qualifier) +1 // NOLINT(bugprone-macro-parentheses)

MSG_CHILD_TO_MASTER_EACH(MSG_COUNT)
MSG_MASTER_TO_CHILD_EACH(MSG_COUNT)
MSG_FRONT_TO_WORKER_EACH(MSG_COUNT)
MSG_WORKER_TO_FRONT_EACH(MSG_COUNT)
MSG_FRONT_TO_KEYS_EACH(MSG_COUNT)
MSG_KEYS_TO_FRONT_EACH(MSG_COUNT)
MSG_FRONT_TO_COURIER_EACH(MSG_COUNT)
MSG_COURIER_TO_FRONT_EACH(MSG_COUNT)
FRAME_UP_EACH(UP_COUNT)
FRAME_DOWN_EACH(DOWN_COUNT)

static const struct msg_child_to_master child_to_master = {
    MSG_CHILD_TO_MASTER_EACH(MSG_ENTRY)};
static const struct msg_master_to_child master_to_child = {
    MSG_MASTER_TO_CHILD_EACH(MSG_ENTRY)};
static const struct msg_front_to_worker front_to_worker = {
    MSG_FRONT_TO_WORKER_EACH(MSG_ENTRY)};
static const struct msg_worker_to_front worker_to_front = {
    MSG_WORKER_TO_FRONT_EACH(MSG_ENTRY)};
static const struct msg_front_to_keys front_to_keys = {
    MSG_FRONT_TO_KEYS_EACH(MSG_ENTRY)};
static const struct msg_keys_to_front keys_to_front = {
    MSG_KEYS_TO_FRONT_EACH(MSG_ENTRY)};
static const struct msg_front_to_courier front_to_courier = {
    MSG_FRONT_TO_COURIER_EACH(MSG_ENTRY)};
static const struct msg_courier_to_front courier_to_front = {
    MSG_COURIER_TO_FRONT_EACH(MSG_ENTRY)};
static const struct frame_up up = {FRAME_UP_EACH(UP_ENTRY)};
static const struct frame_down down = {FRAME_DOWN_EACH(DOWN_ENTRY)};

static const unsigned int any_state =
    MSG_CONTROL_STARTED | MSG_CONTROL_CONFIGURED | MSG_CONTROL_READY;

/* One message of each kind, as it comes out of a packet. */
static struct ipc_msg
received(struct ipc_out *o, const struct codec *c, struct any *any)
{
	struct ipc_msg m = {0};
	size_t size;
	struct err e;

	any_fill(any, c);
	for (size_t i = 0; i < c->nfields; i++)
		if (c->fields[i].kind == CODEC_FD)
			*codec_fd(&c->fields[i], any->m) =
			    open("/dev/null", O_RDONLY | O_CLOEXEC);
	ipc_out_init(o);
	ipc_out_put(o, c, any->m);
	assert_int_equal(ipc_msg_parse(&m, buf_data(&o->b), buf_len(&o->b),
			     o->nfds, &size, &e),
	    0);
	memcpy(m.fds, o->fds, sizeof(m.fds));
	m.nfds = o->nfds;
	o->nfds = 0;
	return m;
}

static unsigned int
count_open_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

/* All directions are asked: one of them takes it. */
TEST(each_message_is_for_one_direction_and_keeps_no_descriptor)
{
	static uint8_t pool[1 << 18];
	struct any any = {.pool = pool, .size = sizeof(pool)};
	unsigned int before = count_open_fds(), n = 0;

	calls = 0;
	for (unsigned int type = 0; type <= UINT16_MAX; type++) {
		const struct codec *c = msg_codec(type);

		for (int way = 0; way < 8 && c != NULL; way++) {
			struct ipc_out o;
			struct ipc_msg m = received(&o, c, &any);
			struct err e;
			int rc;

			if (way == 0)
				rc = msg_dispatch_child_to_master(
				    &child_to_master, any_state, &m, &calls,
				    &e);
			else if (way == 1)
				rc = msg_dispatch_master_to_child(
				    &master_to_child, any_state, &m, &calls,
				    &e);
			else if (way == 2)
				rc = msg_dispatch_front_to_worker(
				    &front_to_worker, &m, &calls, &e);
			else if (way == 3)
				rc = msg_dispatch_front_to_keys(
				    &front_to_keys, &m, &calls, &e);
			else if (way == 4)
				rc = msg_dispatch_keys_to_front(
				    &keys_to_front, &m, &calls, &e);
			else if (way == 5)
				rc = msg_dispatch_front_to_courier(
				    &front_to_courier, &m, &calls, &e);
			else if (way == 6)
				rc = msg_dispatch_courier_to_front(
				    &courier_to_front, &m, &calls, &e);
			else
				rc = msg_dispatch_worker_to_front(
				    &worker_to_front, &m, &calls, &e);
			assert_true(rc == 0 || rc == ERR_PROTO);
			ipc_msg_close_fds(&m);
			ipc_out_clear(&o);
		}
		n += c != NULL;
	}
	assert_int_equal(calls, n);
	assert_int_equal(count_open_fds(), before);
}

TEST(each_frame_is_for_one_direction_or_for_both)
{
	static uint8_t pool[1 << 18];
	struct any any = {.pool = pool, .size = sizeof(pool)};
	unsigned int n = 0;

	calls = 0;
	for (unsigned int type = 0; type <= UINT16_MAX; type++) {
		const struct codec *c = frame_codec(type);

		for (int way = 0; way < 2 && c != NULL; way++) {
			struct frame f;
			struct buf b;
			struct err e;
			int rc;

			buf_init(&b, 0);
			any_fill(&any, c);
			assert_int_equal(frame_put(&b, c, any.m), 0);
			assert_int_equal(
			    frame_next(&b, FRAME_DOWN_MAX, &f, &e), 1);
			rc = way == 0 ?
			    frame_dispatch_up(&up, &f, &calls, &e) :
			    frame_dispatch_down(&down, &f, &calls, &e);
			assert_true(rc == 0 || rc == ERR_PROTO);
			buf_clear(&b);
		}
		n += c != NULL;
	}
	assert_int_equal(calls, n FRAME_BOTH_EACH(AND_ONE));
}

static void
check_refused(int rc, const struct err *e, const char *why)
{
	assert_int_equal(rc, ERR_PROTO);
	assert_string_equal(e->msg, why);
}

TEST(what_is_not_permitted_is_a_protocol_error)
{
	static const struct msg_master_to_child none = {0};
	struct ipc_msg m = {.type = IPC_LISTEN};
	struct err e;

	check_refused(msg_dispatch_master_to_child(&master_to_child,
			  MSG_CONTROL_STARTED, &m, &calls, &e),
	    &e, "LISTEN is not permitted now");
	check_refused(msg_dispatch_master_to_child(
			  &none, MSG_CONTROL_READY, &m, &calls, &e),
	    &e, "LISTEN is not for this process");
	check_refused(
	    msg_dispatch_front_to_worker(&front_to_worker, &m, &calls, &e), &e,
	    "LISTEN is not for this process");
	m.type = 999;
	check_refused(
	    msg_dispatch_front_to_worker(&front_to_worker, &m, &calls, &e), &e,
	    "unknown type 999");
	m.type = UINT_MAX;
	check_refused(
	    msg_dispatch_front_to_worker(&front_to_worker, &m, &calls, &e), &e,
	    "unknown type 4294967295");
}

static int
refuse(void *arg, const struct msg_run_bytes *m, struct err *e)
{
	(void)arg;
	return err_set(e, ERR_INVAL, "%u is bad luck", (unsigned int)m->length);
}

static int
keep(void *arg, struct msg_run_start *m, struct err *e)
{
	(void)arg;
	(void)e;
	kept = msg_take_fd(&m->spool);
	return 0;
}

TEST(a_handlers_error_comes_with_the_messages_name)
{
	static const struct msg_worker_to_front h = {.on_run_bytes = refuse};
	uint8_t fields[8] = {13};
	struct ipc_msg m = {.type = IPC_RUN_BYTES};
	struct err e;

	wire_in_init(&m.in, fields, sizeof(fields));
	assert_int_equal(
	    msg_dispatch_worker_to_front(&h, &m, NULL, &e), ERR_INVAL);
	assert_string_equal(e.msg, "RUN_BYTES: 13 is bad luck");
}

TEST(a_taken_descriptor_stays_open_and_the_other_is_closed)
{
	static const struct msg_front_to_worker h = {.on_run_start = keep};
	static uint8_t pool[1 << 18];
	struct any any = {.pool = pool, .size = sizeof(pool)};
	unsigned int before = count_open_fds();
	struct ipc_out o;
	struct ipc_msg m;
	struct err e;

	m = received(&o, msg_codec(IPC_RUN_START), &any);
	assert_int_equal(msg_dispatch_front_to_worker(&h, &m, NULL, &e), 0);
	assert_int_equal(count_open_fds(), before + 1);
	(void)close(kept);
	assert_int_equal(count_open_fds(), before);
	ipc_out_clear(&o);
}

TEST(every_type_has_its_own_name)
{
	assert_string_equal(ipc_type_name(IPC_RUN_START), "RUN_START");
	assert_string_equal(ipc_type_name(IPC_NONE), "?");
	assert_string_equal(ipc_type_name(UINT_MAX), "?");
	for (unsigned int a = 1; a < 256; a++)
		for (unsigned int b = 1; b < a; b++)
			if (msg_codec(a) != NULL && msg_codec(b) != NULL)
				assert_string_not_equal(
				    ipc_type_name(a), ipc_type_name(b));
}

TEST_MAIN(NULL, NULL)
