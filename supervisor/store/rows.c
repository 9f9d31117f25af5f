#include "supervisor/store/store.h"

#include "common/xmalloc.h"

/* Where the strings of a row are, so that no copy forgets one. */

static const size_t sandbox_texts[] = {
    offsetof(struct store_sandbox, identifier),
    offsetof(struct store_sandbox, name),
    offsetof(struct store_sandbox, container_id),
    offsetof(struct store_sandbox, image),
    offsetof(struct store_sandbox, state),
    offsetof(struct store_sandbox, origin),
};

static const size_t command_texts[] = {
    offsetof(struct store_command, shell),
    offsetof(struct store_command, argv_json),
    offsetof(struct store_command, cwd),
    offsetof(struct store_command, env_json),
    offsetof(struct store_command, status),
    offsetof(struct store_command, end_reason),
    offsetof(struct store_command, error),
};

static const size_t run_texts[] = {
    offsetof(struct store_run, identifier),
    offsetof(struct store_run, sandbox_name),
    offsetof(struct store_run, container_id),
    offsetof(struct store_run, tool),
    offsetof(struct store_run, state),
    offsetof(struct store_run, end_reason),
    offsetof(struct store_run, error),
    offsetof(struct store_run, artifacts_error),
};

static char **
text_at(void *row, size_t offset)
{
	return (char **)(void *)((char *)row + offset);
}

static void
texts_free(void *row, const size_t *offsets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(*text_at(row, offsets[i]));
}

/* row is a plain copy of another, whose strings it still points to. */
static void
texts_copy(void *row, const size_t *offsets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char **p = text_at(row, offsets[i]);

		*p = xstrdup(*p == NULL ? "" : *p);
	}
}

static uint8_t *
bytes_copy(const uint8_t *p, size_t n)
{
	return p == NULL ? NULL : xmemdup(p, n);
}

void
store_sandbox_clear(struct store_sandbox *s)
{
	texts_free(s, sandbox_texts, ARRAY_LEN(sandbox_texts));
	memset(s, 0, sizeof(*s));
}

void
store_sandbox_copy(struct store_sandbox *to, const struct store_sandbox *from)
{
	*to = *from;
	texts_copy(to, sandbox_texts, ARRAY_LEN(sandbox_texts));
}

void
store_run_clear(struct store_run *r)
{
	texts_free(r, run_texts, ARRAY_LEN(run_texts));
	for (uint32_t i = 0; i < r->ncommands; i++)
		texts_free(
		    &r->commands[i], command_texts, ARRAY_LEN(command_texts));
	for (uint32_t i = 0; i < r->nartifacts; i++)
		free(r->artifacts[i].path);
	free(r->commands);
	free(r->artifacts);
	if (r->spec != NULL) /* environment values: not left in the heap */
		explicit_bzero(r->spec, r->spec_len);
	free(r->spec);
	free(r->log);
	memset(r, 0, sizeof(*r));
}

void
store_run_copy(struct store_run *to, const struct store_run *from)
{
	*to = *from;
	texts_copy(to, run_texts, ARRAY_LEN(run_texts));
	to->spec = bytes_copy(from->spec, from->spec_len);
	to->log = bytes_copy(from->log, from->log_len);
	to->commands = xcalloc(from->ncommands, sizeof(*to->commands));
	for (uint32_t i = 0; i < from->ncommands; i++) {
		to->commands[i] = from->commands[i];
		texts_copy(
		    &to->commands[i], command_texts, ARRAY_LEN(command_texts));
	}
	to->artifacts = xcalloc(from->nartifacts, sizeof(*to->artifacts));
	for (uint32_t i = 0; i < from->nartifacts; i++) {
		to->artifacts[i] = from->artifacts[i];
		to->artifacts[i].path = xstrdup(from->artifacts[i].path);
	}
}

void
store_snapshot_clear(struct store_snapshot *s)
{
	for (size_t i = 0; i < s->nsandboxes; i++)
		store_sandbox_clear(&s->sandboxes[i]);
	for (size_t i = 0; i < s->nruns; i++)
		store_run_clear(&s->runs[i]);
	free(s->sandboxes);
	free(s->runs);
	memset(s, 0, sizeof(*s));
}
