#include "worker/kubernetes/yaml_tree.h"

#include <yaml.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* A mapping waits for a key, or has one and waits for its value. */
struct level {
	json_t *at; /* borrowed */
	char key[YAML_TREE_KEY_MAX + 1];
	bool has_key;
};

struct tree {
	struct level levels[YAML_TREE_DEPTH_MAX];
	size_t depth;
	size_t nodes;
	unsigned int documents;
	json_t *root;
	const char *why; /* it is refused */
};

static int
refuse(struct tree *t, const char *why)
{
	t->why = why;
	return -1;
}

static json_t *
must(json_t *j)
{
	if (j == NULL)
		fatal(EXIT_MEMORY, "no memory for JSON");
	return j;
}

/* Takes j.  The second document is refused before its first node. */
static int
put(struct tree *t, json_t *j)
{
	struct level *l;

	if (t->depth == 0) {
		t->root = j;
		return 0;
	}
	l = &t->levels[t->depth - 1];
	if (json_is_array(l->at))
		(void)json_array_append_new(l->at, j);
	else
		(void)json_object_set_new(l->at, l->key, j);
	l->has_key = false;
	return 0;
}

/* A mapping's key comes as a scalar, like a value. */
static bool
wants_key(const struct tree *t)
{
	const struct level *l;

	if (t->depth == 0)
		return false;
	l = &t->levels[t->depth - 1];
	return json_is_object(l->at) && !l->has_key;
}

static int
take_key(struct tree *t, const char *text, size_t n)
{
	struct level *l = &t->levels[t->depth - 1];

	if (n > YAML_TREE_KEY_MAX)
		return refuse(t, "a key is too long");
	memcpy(l->key, text, n);
	l->key[n] = '\0';
	if (json_object_get(l->at, l->key) != NULL)
		return refuse(t, "a key is there twice");
	l->has_key = true;
	return 0;
}

static bool
is_null(const char *text, size_t n)
{
	return n == 0 || (n == 1 && text[0] == '~') ||
	    (n == 4 &&
		(memcmp(text, "null", 4) == 0 || memcmp(text, "Null", 4) == 0 ||
		    memcmp(text, "NULL", 4) == 0));
}

static int
take_scalar(struct tree *t, const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;
	size_t n = ev->data.scalar.length;

	if (memchr(text, '\0', n) != NULL)
		return refuse(t, "a text has a NUL character");
	if (wants_key(t))
		return take_key(t, text, n);
	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	    is_null(text, n))
		return put(t, json_null());
	return put(t, must(json_stringn(text, n)));
}

static int
enter(struct tree *t, json_t *j)
{
	if (t->depth == YAML_TREE_DEPTH_MAX || wants_key(t)) {
		json_decref(j);
		return refuse(t,
		    t->depth == YAML_TREE_DEPTH_MAX ? "it nests too deep" :
						      "a key is no text");
	}
	(void)put(t, j);
	t->levels[t->depth++] = (struct level){.at = j};
	return 0;
}

static int
take_event(struct tree *t, const yaml_event_t *ev)
{
	if (++t->nodes > YAML_TREE_NODES_MAX)
		return refuse(t, "it has too many values");
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return take_scalar(t, ev);
	case YAML_MAPPING_START_EVENT:
		return enter(t, must(json_object()));
	case YAML_SEQUENCE_START_EVENT:
		return enter(t, must(json_array()));
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		t->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(t, "it has an alias (*)");
	case YAML_DOCUMENT_START_EVENT:
		return t->documents++ == 0 ? 0 :
					     refuse(t, "it is two documents");
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	default:
		return 0;
	}
}

/* libyaml's own words quote nothing of the text. */
static int
fail(const struct tree *t, const yaml_parser_t *p, struct err *e)
{
	const char *why = t->why != NULL ? t->why :
	    p->problem != NULL           ? p->problem :
					   "it is no YAML";
	size_t line = t->why == NULL && p->problem != NULL ?
	    p->problem_mark.line :
	    p->mark.line;

	return err_set(e, ERR_PARSE, "line %zu: %.120s", line + 1, why);
}

static int
read_events(struct tree *t, yaml_parser_t *p)
{
	yaml_event_type_t type;
	yaml_event_t ev;
	int rc;

	do {
		if (yaml_parser_parse(p, &ev) == 0)
			return -1;
		type = ev.type;
		rc = take_event(t, &ev);
		yaml_event_delete(&ev);
	} while (rc == 0 && type != YAML_STREAM_END_EVENT);
	return rc;
}

int
yaml_tree_parse(const char *text, size_t n, json_t **out, struct err *e)
{
	struct tree t = {.depth = 0};
	yaml_parser_t p;
	int rc;

	if (yaml_parser_initialize(&p) == 0)
		fatal(EXIT_MEMORY, "no memory for libyaml");
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	rc = read_events(&t, &p);
	if (rc == 0 && t.root == NULL)
		rc = refuse(&t, "it is empty");
	if (rc != 0)
		rc = fail(&t, &p, e);
	yaml_parser_delete(&p);
	if (rc != 0) {
		yaml_tree_free(t.root);
		return rc;
	}
	*out = t.root;
	return 0;
}

static void
wipe(json_t *j)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_string(j))
		explicit_bzero((void *)(uintptr_t)json_string_value(j),
		    json_string_length(j));
	json_object_foreach (j, key, value)
		wipe(value);
	json_array_foreach (j, i, value)
		wipe(value);
}

void
yaml_tree_free(json_t *tree)
{
	wipe(tree);
	json_decref(tree);
}
