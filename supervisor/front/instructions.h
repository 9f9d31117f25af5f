/*
 * instructions.h - what the server says of itself to models, when they connect
 *
 * Clients that show little of it show its first 128 bytes, so these say what
 * the server is for.  All of it is made of what is there: the image, the
 * network, the limits.
 */
#ifndef FRONT_INSTRUCTIONS_H
#define FRONT_INSTRUCTIONS_H

#include "common/conf.h"

#define INSTRUCTIONS_MAX 1500  /* bytes */
#define INSTRUCTIONS_SHOWN 128 /* by who shows least */

struct languages;

/* instructions_make - the caller frees */
char *instructions_make(
    const struct conf *conf, const struct languages *languages);

#endif
