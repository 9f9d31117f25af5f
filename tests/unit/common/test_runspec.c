#include <stdio.h>

#include "common/runspec.h"
#include "common/msg/wire.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

/* A good specification on the heap, for a test to spoil. */
static void
make_spec(struct runspec *s)
{
	struct runspec_command *c;

	memset(s, 0, sizeof(*s));
	s->user = RUNSPEC_USER_ROOT;
	s->flags = RUNSPEC_CONTINUE_ON_ERROR | RUNSPEC_LOCK;
	s->ncommands = 2;
	s->commands = xcalloc(2, sizeof(*s->commands));
	c = &s->commands[0];
	c->argc = 2;
	c->argv = xcalloc(3, sizeof(char *));
	c->argv[0] = xstrdup("printf");
	c->argv[1] = xstrdup("");
	c->nenv = 2;
	c->env = xcalloc(3, sizeof(char *));
	c->env[0] = xstrdup("A=1");
	c->env[1] = xstrdup("EMPTY=");
	c->cwd = xstrdup("/work");
	c->timeout_ms = 1500;
	c->flags = RUNSPEC_ALLOW_FAILURE | RUNSPEC_MERGE_STDERR;
	c = &s->commands[1];
	c->argc = 1;
	c->argv = xcalloc(2, sizeof(char *));
	c->argv[0] = xstrdup("echo $A | wc");
	c->cwd = xstrdup("/");
	c->timeout_ms = RUNSPEC_TIMEOUT_MAX_MS;
	c->flags = RUNSPEC_SHELL | RUNSPEC_DENIED;
	c->deny = xstrdup("wc");
	s->nfiles = 2;
	s->files = xcalloc(2, sizeof(*s->files));
	s->files[0].name = xstrdup("main.py");
	s->files[0].data = xmemdup("a\0b", 3);
	s->files[0].len = 3;
	s->files[0].mode = 0600;
	s->files[1].name = xstrdup("...");
	s->files[1].mode = 0777;
}

static void
set_text(char **p, const char *text)
{
	free(*p);
	*p = text != NULL ? xstrdup(text) : NULL;
}

static void
set_long(char **p, const char *head, size_t n)
{
	char *text = xmalloc(n + 1);

	memset(text, 'x', n);
	memcpy(text, head, strlen(head));
	text[n] = '\0';
	free(*p);
	*p = text;
}

static int
encode(const struct runspec *s, struct buf *b, struct err *e)
{
	buf_init(b, RUNSPEC_BYTES_MAX);
	return runspec_encode(s, b, e);
}

TEST(a_specification_comes_back_the_same)
{
	struct runspec s, got;
	struct err e;
	struct buf b;

	make_spec(&s);
	assert_int_equal(encode(&s, &b, &e), 0);
	assert_int_equal(
	    runspec_decode(buf_data(&b), buf_len(&b), &got, &e), 0);
	assert_int_equal(got.user, RUNSPEC_USER_ROOT);
	assert_int_equal(got.flags, s.flags);
	assert_int_equal(got.ncommands, 2);
	assert_int_equal(got.commands[0].argc, 2);
	assert_string_equal(got.commands[0].argv[0], "printf");
	assert_string_equal(got.commands[0].argv[1], "");
	assert_null(got.commands[0].argv[2]);
	assert_int_equal(got.commands[0].nenv, 2);
	assert_string_equal(got.commands[0].env[1], "EMPTY=");
	assert_null(got.commands[0].env[2]);
	assert_string_equal(got.commands[0].cwd, "/work");
	assert_int_equal(got.commands[0].timeout_ms, 1500);
	assert_int_equal(got.commands[0].flags, s.commands[0].flags);
	assert_string_equal(got.commands[0].deny, "");
	assert_non_null(got.commands[1].env);
	assert_null(got.commands[1].env[0]);
	assert_string_equal(got.commands[1].deny, "wc");
	assert_int_equal(got.nfiles, 2);
	assert_string_equal(got.files[0].name, "main.py");
	assert_int_equal(got.files[0].len, 3);
	assert_memory_equal(got.files[0].data, "a\0b", 3);
	assert_int_equal(got.files[0].mode, 0600);
	assert_int_equal(got.files[1].len, 0);
	runspec_clear(&got);
	runspec_clear(&got); /* zeroed: fine */
	runspec_clear(&s);
	buf_clear(&b);
}

TEST(every_cut_of_an_encoding_is_refused)
{
	struct runspec s, got;
	struct err e;
	struct buf b;

	make_spec(&s);
	assert_int_equal(encode(&s, &b, &e), 0);
	for (size_t n = 0; n < buf_len(&b); n++)
		assert_true(runspec_decode(buf_data(&b), n, &got, &e) < 0);
	assert_int_equal(buf_append(&b, "x", 1), 0);
	assert_int_equal(
	    runspec_decode(buf_data(&b), buf_len(&b), &got, &e), ERR_PROTO);
	runspec_clear(&s);
	buf_clear(&b);
}

TEST(no_changed_byte_breaks_the_decoder)
{
	struct runspec s, got;
	struct err e;
	struct buf b;
	int good = 0;

	make_spec(&s);
	assert_int_equal(encode(&s, &b, &e), 0);
	for (size_t i = 0; i < buf_len(&b); i++) {
		for (unsigned int v = 0; v < 256; v += 5) {
			uint8_t old = buf_data(&b)[i];

			buf_data(&b)[i] = (uint8_t)v;
			if (runspec_decode(
				buf_data(&b), buf_len(&b), &got, &e) == 0) {
				good++;
				runspec_clear(&got);
			}
			buf_data(&b)[i] = old;
		}
	}
	assert_true(good > 0); /* letters may be any letters */
	runspec_clear(&s);
	buf_clear(&b);
}

/* One way each to spoil a good specification. */
static void
spoil(struct runspec *s, int how)
{
	struct runspec_command *c = &s->commands[0];

	switch (how) {
	case 0:
		c->argc = 0;
		break;
	case 1:
		set_text(&c->argv[0], "");
		break;
	case 2:
		set_text(&c->cwd, "work");
		break;
	case 3:
		set_text(&c->cwd, NULL);
		break;
	case 4:
		c->timeout_ms = 0;
		break;
	case 5:
		c->timeout_ms = RUNSPEC_TIMEOUT_MAX_MS + 1;
		break;
	case 6:
		c->flags = 32;
		break;
	case 7:
		s->flags = 8;
		break;
	case 8:
		s->user = (enum runspec_user)2;
		break;
	case 9:
		set_text(&c->env[0], "=x");
		break;
	case 10:
		set_text(&c->env[0], "novalue");
		break;
	case 11:
		c->flags = RUNSPEC_SHELL;
		break; /* with two words */
	case 12:
		set_text(&s->files[0].name, "");
		break;
	case 13:
		set_text(&s->files[0].name, ".");
		break;
	case 14:
		set_text(&s->files[0].name, "..");
		break;
	case 15:
		set_text(&s->files[0].name, "a/b");
		break;
	case 16:
		set_text(&s->files[0].name, "...");
		break; /* twice */
	case 17:
		s->files[0].mode = 04755;
		break;
	case 18:
		set_long(&c->argv[1], "", RUNSPEC_ARG_BYTES_MAX + 1);
		break;
	case 19:
		set_long(&c->env[0], "A=", RUNSPEC_ARG_BYTES_MAX + 1);
		break;
	case 20:
		set_long(&c->cwd, "/", RUNSPEC_CWD_MAX + 1);
		break;
	case 21:
		set_long(&s->files[0].name, "", 256);
		break;
	case 22:
		set_text(&c->argv[1], NULL);
		break;
	default:
		fail_msg("no such way: %d", how);
	}
}

TEST(what_the_agent_could_not_do_is_refused)
{
	for (int how = 0; how <= 22; how++) {
		struct runspec s;
		struct err e = {0};
		struct buf b;
		int rc;

		make_spec(&s);
		spoil(&s, how);
		rc = encode(&s, &b, &e);
		if (rc != ERR_INVAL && rc != ERR_LIMIT)
			fail_msg("way %d gives %d", how, rc);
		assert_int_equal(rc, e.code);
		assert_true(e.msg[0] != '\0');
		assert_int_equal(buf_len(&b), 0);
		s.commands[0].argc = 2;
		runspec_clear(&s);
		buf_clear(&b);
	}
}

TEST(the_limits_themselves_pass)
{
	struct runspec s, got;
	struct err e;
	struct buf b;

	make_spec(&s);
	set_long(&s.commands[0].argv[1], "", RUNSPEC_ARG_BYTES_MAX);
	set_long(&s.commands[0].env[0], "A=", RUNSPEC_ARG_BYTES_MAX);
	set_long(&s.commands[0].cwd, "/", RUNSPEC_CWD_MAX);
	set_long(&s.files[0].name, "", RUNSPEC_FILE_NAME_MAX);
	assert_int_equal(encode(&s, &b, &e), 0);
	assert_int_equal(
	    runspec_decode(buf_data(&b), buf_len(&b), &got, &e), 0);
	runspec_clear(&got);
	runspec_clear(&s);
	buf_clear(&b);
}

TEST(all_in_all_there_is_a_limit_too)
{
	struct runspec s, got;
	struct err e;
	struct buf b;

	make_spec(&s);
	free(s.files[0].data);
	s.files[0].len = RUNSPEC_BYTES_MAX - 100;
	s.files[0].data = xcalloc(1, s.files[0].len);
	assert_int_equal(encode(&s, &b, &e), ERR_LIMIT);
	assert_non_null(strstr(e.msg, "limit 2097152"));
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(
	    runspec_decode(s.files[0].data, RUNSPEC_BYTES_MAX + 1, &got, &e),
	    ERR_LIMIT);
	runspec_clear(&s);
	buf_clear(&b);
}

TEST(a_forged_count_takes_no_memory)
{
	static const uint32_t counts[] = {
	    RUNSPEC_ARGV_MAX, RUNSPEC_ARGV_MAX + 1, UINT32_MAX};
	struct runspec got;
	struct err e;
	struct buf b;

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		buf_init(&b, 0);
		wire_put_u32(&b, RUNSPEC_VERSION);
		wire_put_u8(&b, RUNSPEC_USER_SANDBOX);
		wire_put_u32(&b, 0);
		wire_put_u32(&b, 1);
		wire_put_u32(&b, counts[i]);
		assert_int_equal(
		    runspec_decode(buf_data(&b), buf_len(&b), &got, &e),
		    i == 0 ? ERR_PROTO : ERR_LIMIT);
		buf_clear(&b);
	}
}

TEST(another_version_is_refused)
{
	struct runspec s, got;
	struct err e;
	struct buf b;

	make_spec(&s);
	assert_int_equal(encode(&s, &b, &e), 0);
	buf_data(&b)[0]++;
	assert_int_equal(
	    runspec_decode(buf_data(&b), buf_len(&b), &got, &e), ERR_PROTO);
	assert_non_null(strstr(e.msg, "version 2"));
	runspec_clear(&s);
	buf_clear(&b);
}

TEST(the_error_may_be_of_no_interest)
{
	struct runspec s = {0};
	struct buf b;

	assert_int_equal(encode(&s, &b, NULL), ERR_INVAL);
	assert_int_equal(runspec_decode("", 0, &s, NULL), ERR_PROTO);
}

TEST_MAIN(NULL, NULL)
