#include <string.h>

#include "common/call.h"
#include "tests/unit/test.h"

static unsigned int canceled;
static uint64_t told;

static void
on_cancel(struct call *c, void *arg)
{
	(void)c;
	canceled += *(const unsigned int *)arg;
}

static void
on_progress(struct call *c, const struct call_progress *p)
{
	(void)c;
	told = p->done;
}

static const struct call_ops with_progress = {on_progress};
static const struct call_ops without = {NULL};

static struct call
a_call(const struct call_ops *up)
{
	struct principal *who = principal_new(
	    (struct tenant_id){7}, "acme", "alice", PRINCIPAL_USER);
	struct call c;

	call_init(&c, up, who, "r-1");
	principal_unref(who); /* the call has its own reference */
	canceled = 0;
	told = 0;
	return c;
}

TEST(a_call_keeps_its_principal)
{
	struct call c = a_call(&without);
	struct principal *other = principal_ref(c.who);

	assert_string_equal(c.who->tenant_name, "acme");
	assert_string_equal(c.request_id, "r-1");
	call_clear(&c);
	assert_int_equal(other->refs, 1);
	principal_unref(other);
}

TEST(the_holder_hears_of_a_cancel_once)
{
	struct call c = a_call(&without);
	unsigned int one = 1;

	call_hold(&c, on_cancel, &one);
	call_cancel(&c);
	call_cancel(&c);
	assert_true(c.canceled);
	assert_int_equal(canceled, 1);
	call_clear(&c);
}

TEST(who_comes_after_the_cancel_hears_of_it_at_once)
{
	struct call c = a_call(&without);
	unsigned int one = 1;

	call_cancel(&c);
	assert_int_equal(canceled, 0);
	call_hold(&c, on_cancel, &one);
	assert_int_equal(canceled, 1);
	call_clear(&c);
}

TEST(only_the_last_holder_hears)
{
	struct call c = a_call(&without);
	unsigned int one = 1, ten = 10;

	call_hold(&c, on_cancel, &one);
	call_release(&c);
	call_hold(&c, on_cancel, &ten);
	call_cancel(&c);
	assert_int_equal(canceled, 10);
	call_clear(&c);
}

TEST(progress_goes_up_until_the_cancel)
{
	struct call c = a_call(&with_progress);
	struct call_progress p = {.done = 3};

	assert_true(call_wants_progress(&c));
	call_progress(&c, &p);
	assert_int_equal(told, 3);
	call_cancel(&c);
	assert_false(call_wants_progress(&c));
	p.done = 4;
	call_progress(&c, &p);
	assert_int_equal(told, 3);
	call_clear(&c);
}

TEST(who_did_not_ask_gets_no_progress)
{
	struct call c = a_call(&without);

	assert_false(call_wants_progress(&c));
	call_progress(&c, &(struct call_progress){.done = 1});
	call_clear(&c);
}

TEST(a_long_request_id_is_cut)
{
	struct principal *who =
	    principal_new((struct tenant_id){1}, "t", "s", PRINCIPAL_USER);
	char text[200];
	struct call c;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	call_init(&c, &without, who, text);
	assert_int_equal(strlen(c.request_id), CALL_REQUEST_ID_MAX);
	call_clear(&c);
	principal_unref(who);
}

TEST(a_servers_address_that_is_too_long_is_not_known)
{
	char text[CALL_SERVER_URL_MAX + 2];
	struct call c = {0};

	call_set_server_url(&c, "http://127.0.0.1:8080");
	assert_string_equal(c.server_url, "http://127.0.0.1:8080");
	memset(text, 'a', sizeof(text));
	text[CALL_SERVER_URL_MAX + 1] = '\0';
	call_set_server_url(&c, text);
	assert_string_equal(c.server_url, "");
	call_set_server_url(&c, text + 1);
	assert_string_equal(c.server_url, text + 1);
	call_set_server_url(&c, NULL);
	assert_string_equal(c.server_url, "");
}

TEST_MAIN(NULL, NULL)
