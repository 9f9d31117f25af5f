/*
 * parcel.h - an answer's bytes, which another thread gives to the socket
 *
 *	EMPTY --fill--> FULL --send--> SENT --take--> TAKEN
 *	  |               |
 *	  +-send or take--+--take--> TAKEN
 *
 * The loop's thread makes it, fills it when it knows the answer, and takes it
 * back before it uses or closes the socket itself; the other thread sends it
 * when the answer may be given, once and without waiting for the client.  One
 * who comes too late finds it TAKEN.
 */
#ifndef COMMON_PARCEL_H
#define COMMON_PARCEL_H

#include "common/base.h"

struct parcel;

struct parcel *parcel_new(void); /* one reference */
struct parcel *parcel_ref(struct parcel *p);
void parcel_unref(struct parcel *p); /* any thread's last; NULL is fine */
/* parcel_fill - text is the parcel's; false: too late, or filled before, and
 * text is freed */
bool parcel_fill(struct parcel *p, int fd, char *text, size_t n) MUSTCHECK;
void parcel_send(struct parcel *p);
/* parcel_take - from here on nobody uses the socket.  The bytes that it took,
 * 0: none.  *rest, of *n bytes, is what it did not, good as long as p */
size_t parcel_take(struct parcel *p, const char **rest, size_t *n);

#endif
