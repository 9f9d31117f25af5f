/*
 * conf.h - the configuration table (schema/config.txt) and its values
 *
 * The supervisor parses (--config FILE, then environment, then KEY=value
 * arguments; later ones win), checks, and sends each child the keys that the
 * table gives it.  Children fill their own struct conf from CONFIG messages
 * with conf_set.  A wrong value is an error that names the key, what it got
 * and what it wants.
 *
 * A file has the format of systemd's EnvironmentFile: KEY=value, blank lines,
 * comments that start with # or ;.  Blanks around the value are dropped.
 * Without quotes a backslash takes the next character as it is; inside single
 * quotes nothing is special; inside double quotes a backslash takes only " \ `
 * and $. Quoted text may go over several lines, a backslash at the end of a
 * line joins it with the next.
 */
#ifndef COMMON_CONF_H
#define COMMON_CONF_H

#include <stdio.h>

#include "common/base.h"
#include "common/err.h"

enum conf_who {
	CONF_MASTER = 1,
	CONF_FRONT = 2,
	CONF_WORKER = 4,
	CONF_KEYS = 8,
	CONF_COURIER = 16
};

/* CONF_BIND, CONF_PORT, ...: one per line of the table, generated. */
#include "common/conf_keys.h"

#define CONF_BIND_NONE "none" /* BIND: no address */

struct conf; /* opaque: one value per key, defaults at first */

struct conf *conf_new(void);
void conf_free(struct conf *c);
struct conf *conf_copy(const struct conf *c);

/* conf_set - by name; ERR_NOTFOUND for an unknown key, ERR_INVAL for a value
 * the table refuses.  TOOL_DESC_<TOOL>_OVERRIDE and _APPEND are accepted and
 * kept as extra keys for the front. */
int conf_set(struct conf *c, const char *key, const char *value,
    struct err *e) MUSTCHECK;
/* conf_load_env - every key that is set in environ; a name that is nearly one
 * is warned about */
int conf_load_env(struct conf *c, struct err *e) MUSTCHECK;
/* conf_load_file - errors name file and line; a setting of the compatible
 * server that means nothing here is warned about */
int conf_load_file(struct conf *c, const char *path, struct err *e) MUSTCHECK;
/*
 * conf_file_parse - call cb for each assignment in order
 *
 * cb gets the line that the key is on; non-zero from it ends the parse and is
 * returned.  ERR_PARSE for text that is no assignment.  Errors, those of cb
 * too, begin with "name:line".
 */
int conf_file_parse(const char *text, size_t len, const char *name,
    int (*cb)(const char *key, const char *value, void *arg, struct err *e),
    void *arg, struct err *e) MUSTCHECK;
/* conf_nearest - that of the keys which differs least, by at most two
 * characters typed, left out or changed; else the shortest of those that begin
 * with the name, where that is more than a word: a key cut short.  NULL: none,
 * or the name is a key, or short */
const char *conf_nearest(
    const char *name, const char *(*key_at)(size_t i), size_t nkeys);
/* conf_check - rules across keys (DEFAULT_TTL_SECONDS <= MAX_TTL_SECONDS...) */
int conf_check(const struct conf *c, struct err *e) MUSTCHECK;

/* conf_is_safe_url - https, or http on this machine; nobody's password, no
 * fragment
 */
bool conf_is_safe_url(const char *url);

int64_t conf_int(const struct conf *c, enum conf_key k);
bool conf_bool(const struct conf *c, enum conf_key k);
const char *conf_str(const struct conf *c, enum conf_key k); /* never NULL */
/* conf_list - items of a list key, NULL-terminated, the conf's own */
char *const *conf_list(const struct conf *c, enum conf_key k);
/* conf_extra - TOOL_DESC_... value or NULL */
const char *conf_extra(const struct conf *c, const char *key);

/* conf_each - calls cb for every key (and extra) that who is given */
void conf_each(const struct conf *c, enum conf_who who,
    void (*cb)(const char *key, const char *value, void *arg), void *arg);
/* conf_take_reload - take from newer only the keys that may change while
 * running; returns how many others differ and sets *first to the first's
 * name (NULL if none) */
int conf_take_reload(
    struct conf *c, const struct conf *newer, const char **first);
/* conf_apply_log - LOG_LEVEL and LOG_FORMAT are in force from now on */
void conf_apply_log(const struct conf *c);
void conf_print_help(FILE *f); /* the table for --help */

#endif
