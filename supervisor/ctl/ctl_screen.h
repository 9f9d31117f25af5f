/*
 * ctl_screen.h - what standard output is, and how texts stand on it
 *
 * On a terminal tables are cut to its width (COLUMNS, else what it says) and
 * have colours, unless NO_COLOR is set or TERM is "dumb".  Elsewhere they are
 * whole and plain, so that what a script reads does not depend on a window.
 */
#ifndef CTL_SCREEN_H
#define CTL_SCREEN_H

#include "common/base.h"

#define CTL_SCREEN_WHOLE 0 /* no limit of columns */

struct ctl_screen {
	bool is_terminal;
	bool has_colours;
	size_t columns; /* or CTL_SCREEN_WHOLE */
	size_t lines;   /* likewise */
};

/* ctl_screen_look - now: a window changes its size */
struct ctl_screen ctl_screen_look(void);
/* ctl_screen_width - columns that text takes; wide characters take two */
size_t ctl_screen_width(const char *text);
/* ctl_screen_cut - text in at most so many columns (1 or more), with an
 * ellipsis where something is missing; the caller's to free */
char *ctl_screen_cut(const char *text, size_t columns);
/* ctl_screen_paint - the colour of a word that says a state, else "" */
const char *ctl_screen_paint(const char *word);
#define CTL_SCREEN_BOLD "\033[1m"
#define CTL_SCREEN_PLAIN "\033[0m"
#define CTL_SCREEN_CLEAR "\033[H\033[2J\033[3J"

#endif
