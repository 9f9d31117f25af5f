/* resources.c - resources: a text, an image, one to watch, and a template */
#include "tests/conformance/fixtures.h"

#include "common/js.h"
#include "common/xmalloc.h"

static const char listed[] =
    "{\"resources\": ["
    "{\"uri\": \"test://static-text\", \"name\": \"static-text\","
    "  \"description\": \"A text\", \"mimeType\": \"text/plain\"},"
    "{\"uri\": \"test://static-binary\", \"name\": \"static-binary\","
    "  \"description\": \"An image\", \"mimeType\": \"image/png\"},"
    "{\"uri\": \"test://watched-resource\", \"name\": \"watched-resource\","
    "  \"description\": \"To be watched\", \"mimeType\": \"text/plain\"}]}";

static const char templates[] =
    "[{\"uriTemplate\": \"test://template/{id}/data\", \"name\": \"template\","
    "  \"description\": \"Data of an id\","
    "  \"mimeType\": \"application/json\"}]";

static void
on_list(struct mcp_call *c, const char *cursor, void *arg)
{
	(void)arg;
	if (cursor != NULL) /* the first page is all */
		mcp_call_error(
		    c, MCP_INVALID_PARAMS, "this cursor is none of ours", NULL);
	else
		mcp_call_answer(c, fixture_json(listed));
}

static void
answer_one(struct mcp_call *c, const char *uri, const char *type,
    const char *member, const char *value)
{
	mcp_call_answer(c,
	    json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri,
		"mimeType", type, member, value));
}

/* "test://template/ID/data"; ID of letters and digits, at most 36.  NULL: it
 * is none. */
static char *
template_id(const char *uri)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	static const char head[] = "test://template/", tail[] = "/data";
	size_t n;

	if (strncmp(uri, head, strlen(head)) != 0)
		return NULL;
	uri += strlen(head);
	n = strspn(uri, alphabet);
	return n > 0 && n <= 36 && strcmp(uri + n, tail) == 0 ?
	    xstrndup(uri, n) :
	    NULL;
}

static void
on_read(struct mcp_call *c, const char *uri, void *arg)
{
	AUTO(auto_free) char *id = template_id(uri);
	AUTO(auto_free) char *data = NULL;

	(void)arg;
	if (strcmp(uri, "test://static-text") == 0) {
		answer_one(c, uri, "text/plain", "text",
		    "This is the content of the static text resource.");
	} else if (strcmp(uri, "test://watched-resource") == 0) {
		answer_one(c, uri, "text/plain", "text", "Watched content.");
	} else if (strcmp(uri, "test://static-binary") == 0) {
		answer_one(c, uri, "image/png", "blob", FIXTURE_PNG_BASE64);
	} else if (id != NULL) {
		data = xasprintf("{\"id\":\"%s\",\"templateTest\":true,"
				 "\"data\":\"Data for ID: %s\"}",
		    id, id);
		answer_one(c, uri, "application/json", "text", data);
	} else {
		mcp_call_no_resource(c, uri);
	}
}

static void
on_watch(struct mcp_call *c, const char *uri, void *arg)
{
	(void)arg;
	if (strcmp(uri, "test://watched-resource") == 0)
		mcp_call_answer(c, json_object());
	else
		mcp_call_no_resource(c, uri);
}

static const struct mcp_resource_ops ops = {
    .list = on_list,
    .read = on_read,
    .watch = on_watch,
};

void
resource_fixtures(struct fixtures *f)
{
	AUTO(auto_json) json_t *array = fixture_json(templates);

	mcp_set_resources(f->mcp, array, &ops, f);
}
