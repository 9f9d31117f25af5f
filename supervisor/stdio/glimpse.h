/*
 * glimpse.h - what a JSON-RPC message is, from its bytes as they pass
 *
 * Knows the id and whether there is a method, of an object at the top of a
 * JSON text of any length, without keeping it: for messages that are too long
 * to be kept, and for those that are only passed on.  The text is believed to
 * be JSON: of one that is not, what comes out is of no meaning, and harmless.
 */
#ifndef STDIO_GLIMPSE_H
#define STDIO_GLIMPSE_H

#include "common/base.h"

#define GLIMPSE_ID_MAX 256 /* bytes of an id, with its quotes */
#define GLIMPSE_KEY_MAX 8

struct glimpse {
	char id[GLIMPSE_ID_MAX + 1]; /* JSON, as it stands there; "": none */
	bool has_method;
	/* Inside. */
	size_t depth;
	bool is_over; /* the text's first value has ended */
	bool in_string;
	bool is_escaped;
	bool is_value; /* behind a member's colon */
	char key[GLIMPSE_KEY_MAX + 1];
	size_t key_len;
	size_t id_len;
};

void glimpse_init(struct glimpse *g);
void glimpse_feed(struct glimpse *g, const char *p, size_t n);
/* glimpse_is_request - to be answered, if only by an error */
bool glimpse_is_request(const struct glimpse *g);
/* glimpse_is_response - to a request of the other side */
bool glimpse_is_response(const struct glimpse *g);

#endif
