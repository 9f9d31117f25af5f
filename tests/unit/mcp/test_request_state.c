#include "supervisor/mcp/request_state.h"

#include "common/err.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/offer.h"
#include "tests/unit/test.h"

#define NOW 1800000000

static const uint8_t key[32] = "0123456789abcdef0123456789abcde";
static const struct principal alice = {
    .tenant = {1}, .tenant_name = "one", .subject = "alice"};
static const struct principal bob = {
    .tenant = {1}, .tenant_name = "one", .subject = "bob"};

struct ground {
	struct text_signer *signer;
	json_t *input;
	struct request_bound bound;
	char *state; /* "step 1", for that */
};

static int
setup(void **state)
{
	struct ground *g = xcalloc(1, sizeof(*g));

	g->signer = text_signer_new(key, sizeof(key));
	g->input = json_pack("{s:i, s:s}", "a", 1, "b", "x");
	g->bound =
	    (struct request_bound){&alice, "tools/call", "delete", g->input};
	g->state = request_state_make(g->signer, &g->bound, "step 1", NOW);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct ground *g = *state;

	text_signer_free(g->signer);
	json_decref(g->input);
	free(g->state);
	free(g);
	return 0;
}

static void
expect_refused(const struct ground *g, const struct request_bound *bound,
    const char *state, int64_t now_s)
{
	char *text = NULL;

	assert_int_equal(
	    request_state_read(g->signer, bound, state, now_s, &text),
	    ERR_NOTFOUND);
	assert_null(text);
}

TEST(a_state_comes_back_for_its_request)
{
	struct ground *g = *state;
	AUTO(auto_free) char *text = NULL;

	assert_int_equal(
	    request_state_read(g->signer, &g->bound, g->state, NOW, &text), 0);
	assert_string_equal(text, "step 1");
}

TEST(states_of_each_length_come_back)
{
	struct ground *g = *state;
	char long_text[MCP_STATE_MAX + 1];

	memset(long_text, 'x', MCP_STATE_MAX);
	for (size_t n = 0; n <= MCP_STATE_MAX; n += n < 9 ? 1 : 1021) {
		AUTO(auto_free) char *made = NULL;
		AUTO(auto_free) char *text = NULL;

		long_text[n] = '\0';
		made = request_state_make(g->signer, &g->bound, long_text, NOW);
		assert_int_equal(
		    request_state_read(g->signer, &g->bound, made, NOW, &text),
		    0);
		assert_string_equal(text, long_text);
		long_text[n] = 'x';
	}
}

TEST(the_order_of_arguments_does_not_matter)
{
	struct ground *g = *state;
	struct request_bound bound = g->bound;
	AUTO(auto_json)
	json_t *same = json_pack("{s:s, s:i}", "b", "x", "a", 1);
	AUTO(auto_free) char *text = NULL;

	bound.input = same;
	assert_int_equal(
	    request_state_read(g->signer, &bound, g->state, NOW, &text), 0);
}

TEST(a_changed_state_is_refused)
{
	struct ground *g = *state;
	AUTO(auto_free) char *longer = xasprintf("%s-TAMPERED", g->state);
	AUTO(auto_free) char *whole = xasprintf("%sAAAA", g->state);

	expect_refused(g, &g->bound, longer, NOW);
	expect_refused(g, &g->bound, whole, NOW);
	expect_refused(g, &g->bound, "", NOW);
	expect_refused(g, &g->bound, "step 1", NOW);
	for (char *p = g->state; *p != '\0'; p++) {
		char was = *p;

		*p = was == 'A' ? 'B' : 'A';
		expect_refused(g, &g->bound, g->state, NOW);
		*p = was;
	}
}

TEST(a_state_of_another_principal_is_refused)
{
	struct ground *g = *state;
	struct request_bound bound = g->bound;

	bound.who = &bob;
	expect_refused(g, &bound, g->state, NOW);
}

TEST(a_state_of_another_request_is_refused)
{
	struct ground *g = *state;
	struct request_bound bound = g->bound;
	AUTO(auto_json)
	json_t *other = json_pack("{s:i, s:s}", "a", 2, "b", "x");

	bound.method = "prompts/get";
	expect_refused(g, &bound, g->state, NOW);
	bound = g->bound;
	bound.name = "create";
	expect_refused(g, &bound, g->state, NOW);
	bound = g->bound;
	bound.input = other;
	expect_refused(g, &bound, g->state, NOW);
	bound.input = NULL;
	expect_refused(g, &bound, g->state, NOW);
}

TEST(a_state_expires_after_an_hour)
{
	struct ground *g = *state;
	AUTO(auto_free) char *text = NULL;

	assert_int_equal(request_state_read(g->signer, &g->bound, g->state,
			     NOW + REQUEST_STATE_TTL_S, &text),
	    0);
	expect_refused(g, &g->bound, g->state, NOW + REQUEST_STATE_TTL_S + 1);
}

TEST(a_state_under_another_key_is_refused)
{
	static const uint8_t other[32] = "another key, of the same length";
	struct ground *g = *state;

	text_signer_free(g->signer);
	g->signer = text_signer_new(other, sizeof(other));
	expect_refused(g, &g->bound, g->state, NOW);
}

TEST_MAIN(setup, teardown)
