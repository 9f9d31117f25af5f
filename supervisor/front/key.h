/*
 * key.h - the server's own secret, session.key in its directory
 *
 * 32 random bytes that authenticate session ids, so that these survive a
 * restart.  Made once, whole or not at all, readable by its owner only.
 */
#ifndef FRONT_KEY_H
#define FRONT_KEY_H

#include "common/base.h"
#include "common/err.h"

#define KEY_BYTES 32

/* key_load - read it, or make it first; ERR_INVAL when it is no such key or
 * others may read it */
int key_load(const char *dir, uint8_t out[KEY_BYTES], struct err *e) MUSTCHECK;
/* key_look - the same of one that is there; 0 when there is none */
int key_look(const char *dir, uint8_t out[KEY_BYTES], struct err *e) MUSTCHECK;

#endif
