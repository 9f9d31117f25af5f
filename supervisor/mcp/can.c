#include "supervisor/mcp/can.h"

/* Where it stands in ClientCapabilities, and the revisions that have it. */
static const struct {
	enum mcp_can what;
	const char *member, *within; /* within NULL: the member itself */
	uint32_t since;
} places[] = {
    {MCP_CAN_ELICIT, "elicitation", NULL, 20250618},
    {MCP_CAN_ELICIT_URL, "elicitation", "url", 20251125},
    {MCP_CAN_SAMPLE, "sampling", NULL, 20241105},
    {MCP_CAN_LIST_ROOTS, "roots", NULL, 20241105},
    {MCP_CAN_TASKS, "extensions", "io.modelcontextprotocol/tasks", 20260728},
};

/* {} is elicitation by forms, as it was before there was another mode (MCP
 * 2025-11-25, elicitation, capabilities). */
static bool
has_forms(const json_t *elicitation)
{
	return json_object_get(elicitation, "form") != NULL ||
	    json_object_get(elicitation, "url") == NULL;
}

unsigned int
can_of(const json_t *capabilities, const struct era_revision *rev)
{
	unsigned int all = 0;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const json_t *v =
		    json_object_get(capabilities, places[i].member);

		if (places[i].within != NULL)
			v = json_object_get(v, places[i].within);
		if (!json_is_object(v) || rev->number < places[i].since ||
		    (places[i].what == MCP_CAN_ELICIT && !has_forms(v)))
			continue;
		all |= can_bit(places[i].what);
	}
	return all;
}

json_t *
can_required(enum mcp_can what)
{
	json_t *out = json_object();

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		json_t *v = json_object();

		if (places[i].what != what) {
			json_decref(v);
			continue;
		}
		if (places[i].within != NULL)
			json_object_set_new(v, places[i].within, json_object());
		json_object_set_new(out, places[i].member, v);
	}
	return out;
}
