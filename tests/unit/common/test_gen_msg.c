#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "common/base.h"
#include "common/fd.h"
#include "common/xmalloc.h"

#define OUT_BYTES 32768
#define MESSAGES "list messages\nversion 1\nchannel c\ndirection d\n"
#define FRAMES "list frames\nversion 1\ndirection up max 100\n"

static char out[OUT_BYTES];

/* schema/gen_msg.py over a list, as the makefile calls it. */
static int
generate(const char *form, const char *list)
{
	const char *src = getenv("MCP_SRCDIR");
	char path[] = "/tmp/test_gen_msg.XXXXXX";
	AUTO(auto_free) char *command = NULL;
	int fd = mkstemp(path), rc;
	struct err e;
	size_t n;
	FILE *f;

	assert_true(fd >= 0);
	command =
	    xasprintf("/usr/bin/python3 -IS '%s/schema/gen_msg.py' %s %s 2>&1",
		src != NULL ? src : ".", form, path);
	assert_int_equal(fd_write_all(fd, list, strlen(list), &e), 0);
	(void)close(fd);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	rc = pclose(f);
	(void)unlink(path);
	return rc;
}

static void
check_refused(const char *list, const char *why)
{
	assert_int_not_equal(generate("header", list), 0);
	if (strstr(out, why) == NULL)
		fail_msg("%s: want %s, got %s", list, why, out);
}

static void
test_a_bad_field_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *fields, *why;
	} bad[] = {
	    {"u31 a", ":5: a: unknown type u31"},
	    {"str a", ":5: a: str needs a bound"},
	    {"bytes a", ":5: a: bytes needs a bound"},
	    {"str<0> a", ":5: a: 0 is no size"},
	    {"str<x> a", ":5: a: x is no size"},
	    {"str[4] a", ":5: a: only bytes have an exact size"},
	    {"uuid<16> a", ":5: a: uuid takes no bound"},
	    {"u8<256> a", ":5: a: u8 is not <256>"},
	    {"u8<3..2> a", ":5: a: u8 is not <3..2>"},
	    {"u8<-1> a", ":5: a: u8 is not <-1>"},
	    {"u8<1-2> a", ":5: a: <1-2> is no range"},
	    {"u8 a, u8 a", ":5: a is no new name of a field"},
	    {"u8 id", ":5: id is no new name of a field"},
	    {"u8 A", ":5: A is no new name of a field"},
	    {"u8", ":5: \"u8\" is not TYPE NAME"},
	    {"u8 a,", ":5: \"\" is not TYPE NAME"},
	    {"u8? a", ":5: a: only a descriptor may be missing"},
	    {"fd? a, fd b", ":5: only the last descriptor may be missing"},
	    {"fd a, fd b, fd c", ":5: more than 2 descriptors"},
	    {"rest a", ":5: a: rest is only for frames"},
	    {"bytes<65536> a", ":5: A may have 65556 bytes, more than 65536"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO(auto_free)
		char *list = xasprintf("%s1 A: %s\n", MESSAGES, bad[i].fields);

		check_refused(list, bad[i].why);
	}
}

static void
test_a_bad_line_is_refused_with_its_number(void **state)
{
	(void)state;
	check_refused("", ":0: a list has a version and a message");
	check_refused("version 1\n", ":1: begins with \"list messages\"");
	check_refused("list things\n", ":1: one \"list messages\"");
	check_refused(MESSAGES "list messages\n", ":5: one \"list messages\"");
	check_refused(MESSAGES, ":4: a list has a version and a message");
	check_refused(MESSAGES "version 2\n", ":5: one \"version N\"");
	check_refused(MESSAGES "what is this\n", ":5: what is what?");
	check_refused(MESSAGES "message 1\n", ":5: what is message?");
	check_refused(MESSAGES "direction d\n", ":5: direction d again");
	check_refused(MESSAGES "0 A\n", ":5: number 0");
	check_refused(MESSAGES "65536 A\n", ":5: number 65536");
	check_refused(MESSAGES "1 a\n", ":5: a is no name in capitals");
	check_refused(MESSAGES "1 A\n\n1 B\n", ":7: number 1 is A already");
	check_refused(MESSAGES "1 A\n2 A\n", ":6: A again");
	check_refused(MESSAGES "1 A when UP\n", ":5: UP is no state of this");
	check_refused(MESSAGES "1 A of Run\n", ":5: \"of Run\"");
	check_refused(MESSAGES "states UP\n", ":5: states once, before");
	check_refused(MESSAGES "enum u8 A\n", ":5: u8 is a type already");
	check_refused(
	    MESSAGES "enum e A A\n", ":5: A is no new name of a value");
	check_refused(MESSAGES "enum e A B=4\n", ":5: only the first value");
	check_refused(MESSAGES "enum e A=255 B\n", ":5: B is 256, more than");
	check_refused("list messages\n1 A\n", ":2: a message of no direction");
	check_refused("list messages\n  u8 a\n", ":2: continues no message");
	check_refused("# nothing\n  u8 a\n", ":2: continues no message");
	check_refused("list messages\n-- x\n", ":2: tells of nothing");
	check_refused("list frames\nversion 1\ndirection up\n",
	    ":3: direction NAME max BYTES");
	check_refused(FRAMES "1 A: fd a\n", ":4: a: fd is only for messages");
	check_refused(
	    FRAMES "1 A: rest a, u8 b\n", ":4: rest is the last field");
	check_refused(FRAMES "1 A: bytes<89> a\n", ":4: A may have 101 bytes");
	check_refused(FRAMES "1 A of run\n", ":4: \"of run\"");
	check_refused(FRAMES "channel c\n", ":4: channel NAME, in a list of");
}

static void
check_says(const char *text)
{
	if (strstr(out, text) == NULL)
		fail_msg("%s lacks: %s", out, text);
}

static void
test_a_message_becomes_a_struct_and_its_functions(void **state)
{
	static const char list[] =
	    "list messages\nversion 7\nenum mode CREATE=2 ADOPT\n"
	    "channel c\nstates UP DOWN\ndirection there\n"
	    "1 START of run when UP|DOWN: str<255> name, mode mode,\n"
	    "    bytes[32] sum, fd spool, fd? spec\n"
	    "    -- Begin.\n"
	    "direction back\n2 DONE: u32<9> n\n";

	(void)state;
	assert_int_equal(generate("header", list), 0);
	check_says("#define IPC_VERSION 7\n");
	check_says("\tIPC_START = 1,\n\tIPC_DONE = 2,\n");
	check_says("\tMSG_MODE_CREATE = 2,\n\tMSG_MODE_ADOPT = 3,\n");
	check_says("\tMSG_C_UP = 1,\n\tMSG_C_DOWN = 2,\n");
	check_says(
	    "/* Begin. */\nstruct msg_start {\n\tuint64_t id; /* run */\n"
	    "\tconst char *name; /* str<255> */\n"
	    "\tenum msg_mode mode;\n"
	    "\tconst uint8_t *sum; /* bytes[32] */\n"
	    "\tint spool;\n\tint spec; /* or -1 */\n};\n");
	check_says("#define MSG_START_NAME_MAX 255\n");
	check_says("void msg_send_start(");
	check_says("int msg_get_start(");
	check_says("int (*on_start)(void *arg, struct msg_start *m,");
	check_says("int (*on_done)(void *arg, const struct msg_done *m,");
	check_says("int msg_dispatch_there(const struct msg_there *h, "
		   "unsigned int state, ");
	assert_int_equal(generate("source", list), 0);
	check_says("if ((state & (MSG_C_UP | MSG_C_DOWN)) == 0)");
	assert_int_equal(generate("markdown", list), 0);
	check_says(
	    "| 1 | START | run | UP or DOWN | `str<255> name, mode mode, "
	    "bytes[32] sum, fd spool, fd? spec` |\n");
	check_says("- START: Begin.\n");
	check_says("| 2 | DONE | - | - | `u32<9> n` |\n");
}

static void
test_a_frame_becomes_a_struct_and_its_functions(void **state)
{
	static const char list[] = FRAMES
	    "1 LOG: u64 offset, rest bytes\ndirection down max 90\n2 END\n";

	(void)state;
	assert_int_equal(generate("header", list), 0);
	check_says("#define FRAME_UP_MAX 100\n");
	check_says("#define FRAME_DOWN_MAX 90\n");
	check_says("struct frame_log {\n\tuint64_t offset;\n"
		   "\tstruct span bytes;\n};\n");
	check_says("int frame_put_log(struct buf *b, "
		   "const struct frame_log *m) MUSTCHECK;\n");
	check_says("int frame_dispatch_up(const struct frame_up *h, "
		   "struct frame *in, void *arg, struct err *e) MUSTCHECK;\n");
	check_says("#define FRAME_DOWN_EACH(X) \\\n\tX(end, const)\n");
}

static void
test_a_frame_of_both_directions_is_in_both_tables(void **state)
{
	static const char list[] = "list frames\nversion 1\n"
				   "direction both max 80\n1 SHARED\n"
				   "direction up max 100\n2 RISE\n"
				   "direction down max 90\n3 FALL\n";

	(void)state;
	assert_int_equal(generate("header", list), 0);
	check_says("#define FRAME_BOTH_EACH(X) \\\n\tX(shared, const)\n");
	check_says("#define FRAME_UP_EACH(X) \\\n\tX(shared, const) \\\n"
		   "\tX(rise, const)\n");
	check_says("#define FRAME_DOWN_EACH(X) \\\n\tX(shared, const) \\\n"
		   "\tX(fall, const)\n");
	check_refused(FRAMES "1 A\ndirection both max 80\n",
	    ":5: direction both comes first");
}

static void
test_an_unknown_form_fails(void **state)
{
	(void)state;
	assert_int_not_equal(generate("html", FRAMES "1 A\n"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_bad_field_is_refused_with_its_line),
	    cmocka_unit_test(test_a_bad_line_is_refused_with_its_number),
	    cmocka_unit_test(test_a_message_becomes_a_struct_and_its_functions),
	    cmocka_unit_test(test_a_frame_becomes_a_struct_and_its_functions),
	    cmocka_unit_test(test_a_frame_of_both_directions_is_in_both_tables),
	    cmocka_unit_test(test_an_unknown_form_fails),
	};

	return cmocka_run_group_tests_name("gen_msg", tests, NULL, NULL);
}
