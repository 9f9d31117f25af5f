#include "supervisor/stdio/glimpse.h"

#define TOO_LONG SIZE_MAX

void
glimpse_init(struct glimpse *g)
{
	memset(g, 0, sizeof(*g));
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
is_id(const struct glimpse *g)
{
	return g->is_value && g->key_len == 2 && memcmp(g->key, "id", 2) == 0;
}

static void
keep_key(struct glimpse *g, char c)
{
	if (g->key_len < GLIMPSE_KEY_MAX)
		g->key[g->key_len] = c;
	g->key_len++; /* longer than all that are looked for */
}

static void
keep_id(struct glimpse *g, char c)
{
	if (g->id_len == TOO_LONG)
		return;
	if (g->id_len == GLIMPSE_ID_MAX) {
		g->id_len = TOO_LONG;
		g->id[0] = '\0';
		return;
	}
	g->id[g->id_len++] = c;
	g->id[g->id_len] = '\0';
}

/* A member of the object at the top begins. */
static void
begin_member(struct glimpse *g)
{
	g->is_value = false;
	g->key_len = 0;
}

static void
end_key(struct glimpse *g)
{
	g->is_value = true;
	if (g->key_len == 6 && memcmp(g->key, "method", 6) == 0)
		g->has_method = true;
	if (is_id(g)) { /* the last of that name counts, as for jansson */
		g->id_len = 0;
		g->id[0] = '\0';
	}
}

static void
take_in_string(struct glimpse *g, char c)
{
	bool ends = c == '"' && !g->is_escaped;

	g->is_escaped = c == '\\' && !g->is_escaped;
	if (ends)
		g->in_string = false;
	if (g->depth != 1)
		return;
	if (is_id(g))
		keep_id(g, c);
	else if (!g->is_value && !ends)
		keep_key(g, c);
}

static void
take_closing(struct glimpse *g)
{
	if (g->depth > 0)
		g->depth--;
	g->is_over = g->depth == 0;
}

static void
take_mark(struct glimpse *g, char c)
{
	bool at_id = g->depth == 1 && is_id(g);

	switch (c) {
	case '{':
	case '[':
		if (at_id) /* no id is one of these */
			g->id_len = TOO_LONG;
		if (g->depth++ == 0) {
			begin_member(g);
			/* Members of an array are none of an object. */
			g->is_over = c == '[';
		}
		break;
	case '}':
	case ']':
		take_closing(g);
		break;
	case ':':
		if (g->depth == 1 && !g->is_value)
			end_key(g);
		break;
	case ',':
		if (g->depth == 1)
			begin_member(g);
		break;
	default:
		if (c == '"')
			g->in_string = true;
		if (at_id && !is_blank(c))
			keep_id(g, c);
	}
}

void
glimpse_feed(struct glimpse *g, const char *p, size_t n)
{
	for (size_t i = 0; i < n && !g->is_over; i++)
		if (g->in_string)
			take_in_string(g, p[i]);
		else
			take_mark(g, p[i]);
}

/* null is none. */
static bool
has_id(const struct glimpse *g)
{
	return g->id_len != TOO_LONG && g->id_len > 0 &&
	    (g->id[0] == '"' || g->id[0] == '-' ||
		(g->id[0] >= '0' && g->id[0] <= '9'));
}

bool
glimpse_is_request(const struct glimpse *g)
{
	return g->has_method && has_id(g);
}

bool
glimpse_is_response(const struct glimpse *g)
{
	return !g->has_method && has_id(g);
}
