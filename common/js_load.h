/*
 * js_load.h - jansson, made cheap for long strings
 *
 * jansson takes a string apart byte by byte: a request of 1.8 MB costs it 16
 * ms.  Long strings are therefore read here, a stretch at a time, and jansson
 * reads the rest of the text, in which names stand for them
 * (docs/decisions/0033).  What it says of a text, and what it makes of it, is
 * the same: a string that is not plain good JSON is left to it, and so is the
 * whole text when it finds anything wrong.
 */
#ifndef COMMON_JS_LOAD_H
#define COMMON_JS_LOAD_H

#include <jansson.h>

#include "common/base.h"

/* Shorter strings are jansson's. */
#define JS_LONG_BYTES 512

/* js_load - as json_loadb; flags: JSON_REJECT_DUPLICATES, JSON_DECODE_ANY,
 * JSON_ALLOW_NUL.  The text must not be nested deeper than the stack can bear
 * (js_is_deeper). */
json_t *js_load(
    const char *text, size_t len, size_t flags, json_error_t *e) MUSTCHECK;
/* js_string_end - where the string ends whose first byte, behind the quote,
 * is at "at": the index of its closing quote; len when it has none */
size_t js_string_end(const char *text, size_t len, size_t at);

#endif
