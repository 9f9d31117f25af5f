/* picture.h - what kind of picture these bytes are */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include "common/base.h"

/* A model's interface refuses a whole conversation for a picture that is
 * larger, or that it cannot read. */
#define PICTURE_SIDE_MAX 8000

/* picture_type - "image/png", "image/jpeg", "image/gif" or "image/webp", by the
 * beginning of the bytes and by the width and height that they say; NULL: none
 * of these, cut short, or a side is 0 or above PICTURE_SIDE_MAX */
const char *picture_type(const uint8_t *p, size_t n);

#endif
