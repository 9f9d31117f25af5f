/*
 * screen.h - what a terminal would show of what a program printed
 *
 * A progress bar is its last state, and colours are gone.  What moves the
 * cursor is done: carriage return, backspace, erase in line and below (CSI K,
 * J), left, right and to a column (CSI D, C, G), up and down among the last
 * SCREEN_ROWS lines (CSI A, B, E, F), save and restore.  Where the cursor is
 * sent to a place of the whole screen (CSI H, clear), a line begins instead:
 * nothing of what was there before is lost.  All other sequences (CSI, OSC,
 * charsets, single ESC) and control characters but tab and line feed are left
 * out; NUL, which stands between things more than it is printed, is a blank.
 * What is no UTF-8 is U+FFFD.
 *
 * It knows neither the screen's width nor the font's: one character is one
 * place, and a move to the right of all that stands in a line is one blank.
 * So the text is never longer than the bytes are as UTF-8, and memory and time
 * are a small multiple of that.
 */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include "common/base.h"
#include "common/buf.h"

#define SCREEN_ROWS 64            /* that the cursor can be moved among */
#define SCREEN_SEQUENCE_MAX 4096u /* a longer one is none */

/* screen_show - append the text of n bytes; out has room for 3 n bytes, or no
 * limit */
void screen_show(struct buf *out, const void *p, size_t n);
/* screen_show_block - the same, and a line feed if there is something and it
 * does not end with one */
void screen_show_block(struct buf *out, const void *p, size_t n);
/*
 * Output is shown in pieces.  Who cuts it asks where:
 *
 * screen_unfinished_len - bytes at the end that are the beginning of a sequence
 *	(at most SCREEN_SEQUENCE_MAX) and are better left for the next piece
 * screen_broken_start_len - bytes at the beginning that look like the rest of
 *	a colour, for pieces that are cut anywhere
 */
size_t screen_unfinished_len(const void *bytes, size_t n);
size_t screen_broken_start_len(const void *bytes, size_t n);

#endif
