#include "worker/kubernetes/watch_line.h"

#include "common/js.h"
#include "common/text.h"

#define DEPTH_MAX 64
#define GONE 410

static const struct {
	const char *type;
	enum watch_line_kind kind;
} kinds[] = {{"ADDED", WATCH_THERE}, {"MODIFIED", WATCH_THERE},
    {"DELETED", WATCH_GONE}, {"BOOKMARK", WATCH_BOOKMARK},
    {"ERROR", WATCH_ERROR}};

static enum watch_line_kind
kind_of(const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(type, kinds[i].type) == 0)
			return kinds[i].kind;
	return WATCH_OTHER;
}

/* Its object is a Status. */
static void
read_error(struct watch_line *out)
{
	const char *message = js_text(out->object, "message");

	if (json_integer_value(json_object_get(out->object, "code")) == GONE)
		out->kind = WATCH_EXPIRED;
	text_clean(out->why, sizeof(out->why), message, strlen(message));
}

int
watch_line_read(
    const char *line, size_t n, struct watch_line *out, struct err *e)
{
	memset(out, 0, sizeof(*out));
	if (js_parse(line, n, WATCH_LINE_MAX, DEPTH_MAX, &out->all, e) != 0)
		return ERR_PARSE;
	out->kind = kind_of(js_text(out->all, "type"));
	out->object = json_object_get(out->all, "object");
	out->version = js_text(
	    json_object_get(out->object, "metadata"), "resourceVersion");
	if (out->kind == WATCH_ERROR)
		read_error(out);
	return 0;
}

void
watch_line_clear(struct watch_line *l)
{
	json_decref(l->all);
	memset(l, 0, sizeof(*l));
}
