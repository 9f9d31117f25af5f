#include "supervisor/store/run_texts.h"

#include "common/js.h"
#include "common/runspec.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"

static size_t
command_bytes(const struct store_command *k)
{
	return text_bytes(k->shell) + text_bytes(k->argv_json) +
	    text_bytes(k->cwd) + text_bytes(k->env_json);
}

uint64_t
run_texts_sum(const struct store_run *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->ncommands; i++)
		n += command_bytes(&r->commands[i]);
	return n;
}

/* Of a command, so that all have room: what is shorter stays whole. */
static size_t
level_of(const struct store_run *r)
{
	size_t level = COMMAND_TEXTS_MAX;
	uint64_t sum;

	for (;; level /= 2) {
		sum = 0;
		for (uint32_t i = 0; i < r->ncommands; i++) {
			size_t n = command_bytes(&r->commands[i]);

			sum += n < level ? n : level;
		}
		if (sum <= RUN_TEXTS_MAX ||
		    level <= RUN_TEXTS_MAX / RUNSPEC_COMMANDS_MAX)
			return level;
	}
}

static void
clear_text(char *text)
{
	if (text != NULL)
		text[0] = '\0';
}

static size_t
cut_shell(char *shell, size_t room)
{
	size_t n = text_bytes(shell);

	if (n > room) {
		n = utf8_complete_len(shell, room);
		shell[n] = '\0';
	}
	return n;
}

/* The words that fit, and the beginning of the next one. */
static json_t *
words_that_fit(const json_t *argv, size_t room)
{
	json_t *kept = json_array();
	size_t used = strlen("[]");

	for (size_t i = 0; i < json_array_size(argv); i++) {
		const char *word = json_string_value(json_array_get(argv, i));
		size_t n = text_bytes(word), fits;

		if (word == NULL || used + strlen("\"\",") > room)
			break;
		used += strlen("\"\",");
		fits = js_bytes_fit(word, n, room - used);
		fits = fits < n ? utf8_complete_len(word, fits) : n;
		json_array_append_new(kept, json_stringn(word, fits));
		used += js_bytes_cost(word, fits);
		if (fits < n)
			break;
	}
	return kept;
}

static void
cut_argv(char *argv_json, size_t room)
{
	const size_t n = text_bytes(argv_json);
	AUTO(auto_json) json_t *argv = NULL;
	AUTO(auto_json) json_t *kept = NULL;
	AUTO(auto_free) char *text = NULL;

	if (n <= room)
		return;
	if (js_parse(argv_json, n, n, 2, &argv, NULL) == 0) {
		kept = words_that_fit(argv, room);
		text = js_dump(kept);
	}
	if (text == NULL || strlen(text) > n)
		clear_text(argv_json);
	else
		(void)strcpy(argv_json, text);
}

static void
cut_command(struct store_command *k, size_t level)
{
	size_t kept = cut_shell(k->shell, level);

	cut_argv(k->argv_json, level - kept);
	clear_text(k->cwd);
	clear_text(k->env_json);
}

void
run_texts_cut(struct store_run *r)
{
	size_t level;

	if (run_texts_sum(r) <= COMMAND_TEXTS_MAX)
		return;
	level = level_of(r);
	for (uint32_t i = 0; i < r->ncommands; i++)
		if (command_bytes(&r->commands[i]) > level)
			cut_command(&r->commands[i], level);
}

int
run_texts_bytes(struct db *db, uint64_t run, uint64_t *bytes, struct err *e)
{
	return db_ask_with(db, DB_COMMANDS_SUM, run, bytes, e);
}
