#include "tests/unit/store/files_ground.h"

#include "common/js.h"
#include "common/runspec.h"
#include "common/utf8.h"
#include "supervisor/store/run_texts.h"

/* What rows keep of long commands. */

static char *
text_of(const char *piece, size_t bytes)
{
	char *text = xcalloc(1, bytes + 1);

	for (size_t at = 0; at < bytes; at += strlen(piece))
		memcpy(text + at, piece, strlen(piece));
	return text;
}

static void
make_run(struct store_run *r, uint64_t id, uint32_t ncommands)
{
	const struct store_command first = {
	    .status = COMMAND_QUEUED, .exit_code = -1, .timeout_ms = 1000};

	fixture_run(r, id, 1, "a");
	r->commands =
	    xreallocarray(r->commands, ncommands, sizeof(*r->commands));
	for (uint32_t i = 1; i < ncommands; i++) {
		struct store_command *k = &r->commands[i];

		*k = first;
		k->index = i;
		k->shell = xstrdup("true");
		k->argv_json = xstrdup("");
		k->cwd = xstrdup("/workspace");
		k->env_json = xstrdup("");
		k->error = xstrdup("");
	}
	r->ncommands = ncommands;
}

enum way {
	WAY_AT_ONCE, /* the begin is on disk, and the texts leave memory */
	WAY_HELD     /* one write, as it ended */
};

static void
end_all(struct store_run *r)
{
	fixture_run_ended(r, RUN_STATE_COMPLETED);
	for (uint32_t i = 1; i < r->ncommands; i++)
		r->commands[i].status = COMMAND_COMPLETED;
}

static void
put_run(struct fixture *f, struct store_run *r, enum way way)
{
	if (way == WAY_HELD) {
		store_run_begin(f->store, r, NULL, STORE_SOON, NULL, NULL);
	} else {
		fixture_insert(f, r);
		r->asked_bytes = RUNSPEC_BYTES_MAX;
		for (uint32_t i = 0; i < r->ncommands; i++) {
			fixture_set(&r->commands[i].shell, "");
			fixture_set(&r->commands[i].argv_json, "");
			fixture_set(&r->commands[i].cwd, "");
			fixture_set(&r->commands[i].env_json, "");
		}
	}
	end_all(r);
	fixture_end(f, r);
}

static void
got_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct store_run *to = arg;

	(void)why;
	assert_int_equal(rc, 0);
	store_run_copy(to, row);
}

static void
read_run(struct fixture *f, const struct store_run *r, struct store_run *to)
{
	*to = (struct store_run){0};
	(void)store_run_get(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    &r->uuid, 0, got_cb, to);
	for (int i = 0; i < FIXTURE_PATIENCE_S * 1000 && to->id == 0; i++) {
		(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
		(void)usleep(1000);
	}
	assert_int_equal(to->id, r->id);
}

static void
assert_beginning(const char *kept, const char *whole)
{
	size_t n = strlen(kept);

	assert_in_range(n, COMMAND_TEXTS_MAX - 3, COMMAND_TEXTS_MAX);
	assert_memory_equal(kept, whole, n);
	assert_true(utf8_is_valid(kept, n));
}

TEST(of_a_long_text_the_beginning_is_kept)
{
	AUTO(auto_free) char *whole = text_of("\xe2\x82\xac", 300000);
	struct store_run r, got;

	fixture_put_sandbox(f, 1, "a");
	for (uint64_t id = 1; id <= 2; id++) {
		make_run(&r, id, 2);
		fixture_set(&r.commands[0].shell, whole);
		put_run(f, &r, id == 1 ? WAY_AT_ONCE : WAY_HELD);
		read_run(f, &r, &got);
		assert_beginning(got.commands[0].shell, whole);
		assert_true(store_command_is_cut(&got.commands[0]));
		assert_string_equal(got.commands[1].shell, "true");
		assert_false(store_command_is_cut(&got.commands[1]));
		store_run_clear(&got);
		store_run_clear(&r);
	}
	assert_counts_agree(f);
}

TEST(of_long_arguments_the_first_are_kept)
{
	AUTO(auto_free) char *word = text_of("\"x", 3000);
	AUTO(auto_json) json_t *argv = json_array();
	AUTO(auto_json) json_t *kept = NULL;
	AUTO(auto_free) char *json = NULL;
	struct store_run r, got;
	size_t n;

	fixture_put_sandbox(f, 1, "a");
	for (int i = 0; i < 100; i++)
		json_array_append_new(argv, json_string(word));
	json = js_dump(argv);
	make_run(&r, 1, 1);
	fixture_set(&r.commands[0].shell, "");
	fixture_set(&r.commands[0].argv_json, json);
	put_run(f, &r, WAY_AT_ONCE);
	read_run(f, &r, &got);
	assert_in_range(strlen(got.commands[0].argv_json),
	    COMMAND_TEXTS_MAX - 16, COMMAND_TEXTS_MAX);
	kept = json_loads(got.commands[0].argv_json, 0, NULL);
	n = json_array_size(kept);
	assert_true(n > 1 && n < 10);
	for (size_t i = 0; i + 1 < n; i++)
		assert_string_equal(
		    json_string_value(json_array_get(kept, i)), word);
	assert_true(store_command_is_cut(&got.commands[0]));
	assert_counts_agree(f);
	store_run_clear(&got);
	store_run_clear(&r);
}

/* Names of variables are text as well. */
TEST(names_of_variables_have_no_bound_of_their_own)
{
	AUTO(auto_free) char *name = text_of("N", 100000);
	AUTO(auto_free) char *env = xasprintf("{\"%s\":\"***\"}", name);
	struct store_run r, got;

	fixture_put_sandbox(f, 1, "a");
	make_run(&r, 1, 1);
	fixture_set(&r.commands[0].env_json, env);
	put_run(f, &r, WAY_HELD);
	read_run(f, &r, &got);
	assert_string_equal(got.commands[0].env_json, "");
	assert_string_equal(got.commands[0].shell, "true");
	assert_true(store_command_is_cut(&got.commands[0]));
	assert_counts_agree(f);
	store_run_clear(&got);
	store_run_clear(&r);
}

TEST(many_commands_share_what_is_kept)
{
	AUTO(auto_free) char *whole = text_of("abcd", 30000);
	struct store_run r, got;

	fixture_put_sandbox(f, 1, "a");
	make_run(&r, 1, RUNSPEC_COMMANDS_MAX);
	for (uint32_t i = 1; i < r.ncommands; i++)
		fixture_set(&r.commands[i].shell, whole);
	put_run(f, &r, WAY_AT_ONCE);
	read_run(f, &r, &got);
	assert_true(run_texts_sum(&got) <= RUN_TEXTS_MAX);
	assert_true(run_texts_sum(&got) > RUN_TEXTS_MAX / 3);
	assert_false(store_command_is_cut(&got.commands[0]));
	assert_true(store_command_is_cut(&got.commands[63]));
	assert_counts_agree(f);
	store_run_clear(&got);
	store_run_clear(&r);
}

/* As much as code and its command take, and as four such commands. */
TEST(what_is_short_is_whole)
{
	AUTO(auto_free) char *whole = text_of("c", 16384);
	struct store_run r, got;

	fixture_put_sandbox(f, 1, "a");
	make_run(&r, 1, 3);
	for (uint32_t i = 0; i < r.ncommands; i++)
		fixture_set(&r.commands[i].shell, whole);
	put_run(f, &r, WAY_AT_ONCE);
	read_run(f, &r, &got);
	for (uint32_t i = 0; i < r.ncommands; i++) {
		assert_string_equal(got.commands[i].shell, whole);
		assert_string_equal(got.commands[i].cwd, "/workspace");
	}
	assert_counts_agree(f);
	store_run_clear(&got);
	store_run_clear(&r);
}

TEST_MAIN(fixture_setup, fixture_teardown)
