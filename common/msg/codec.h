/*
 * codec.h - structs to bytes and back, by a table
 *
 * schema/gen.py makes a struct codec for each message and frame, and typed
 * functions around what is here: nothing else calls these.  A field is a
 * member of the struct at offset; what each kind is in the struct and on the
 * wire stands in schema/README.md.
 */
#ifndef COMMON_MSG_CODEC_H
#define COMMON_MSG_CODEC_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/wire.h"

enum codec_kind {
	CODEC_U8,
	CODEC_U16,
	CODEC_U32,
	CODEC_U64,
	CODEC_I32,
	CODEC_I64,
	CODEC_BOOL,
	CODEC_ENUM,
	CODEC_UUID,
	CODEC_STR,
	CODEC_BYTES,
	CODEC_FIXED, /* max bytes */
	CODEC_REST,
	CODEC_FD
};

struct codec_field {
	const char *name;
	size_t offset;
	enum codec_kind kind;
	int64_t min;  /* numbers; a descriptor: 0 when it may be missing */
	uint64_t max; /* numbers; bytes of a string without its NUL */
};

struct codec {
	uint16_t type;
	bool has_id; /* the struct begins with uint64_t id */
	const char *name;
	size_t size; /* of the struct */
	const struct codec_field *fields;
	size_t nfields;
};

/* codec_size - bytes that the fields of *m take */
size_t codec_size(const struct codec *c, const void *m);
/*
 * codec_put - the fields of *m at the end of b, which has room for them
 *
 * Descriptors are left out, and so are the bytes of a rest whose p is NULL.
 * What is over a bound is our bug and ends the process.
 */
void codec_put(struct buf *b, const struct codec *c, const void *m);
/* codec_get - all fields from in to the end into *m, descriptors -1; or
 * ERR_PROTO with the names of message and field */
int codec_get(struct wire_in *in, const struct codec *c, void *m,
    struct err *e) MUSTCHECK;

/* codec_fd - the descriptor member that f is, of *m */
int *codec_fd(const struct codec_field *f, void *m);
/* codec_close_fds - those of *m that nobody took */
void codec_close_fds(const struct codec *c, void *m);

/* What a dispatch function ends with: the handler's result with the name of
 * the message before its text, and two ways of refusing. */
int codec_handled(const struct codec *c, int rc, struct err *e);
int codec_not_now(const struct codec *c, struct err *e);
int codec_not_here(const struct codec *c, unsigned int type, struct err *e);

#endif
