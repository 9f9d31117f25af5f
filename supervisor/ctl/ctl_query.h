/* ctl_query.h - words KEY=VALUE as the query of a path */
#ifndef CTL_QUERY_H
#define CTL_QUERY_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_call.h"

/*
 * ctl_query_path - path, and behind it --tenant and the words from the first
 * on; *out is the caller's to free
 *
 * Values are escaped.  The server knows the keys, and names what is wrong.
 * Over the admin socket the tenant is "default" unless another is named.
 * ERR_INVAL for a word that is no KEY=VALUE.
 */
int ctl_query_path(const struct ctl_call *c, const char *path, int first,
    char **out, struct err *e) MUSTCHECK;
/* ctl_query_is_name - letters, digits, ".", "_" and "-", and not dots alone: it
 * may go into a path */
bool ctl_query_is_name(const char *word);
/*
 * ctl_query_of_tenant - /api/v1/KIND/NAME, of --tenant as in ctl_query_path;
 * *out is the caller's to free
 *
 *	name	"": all of them
 *	more	what follows it
 *	wrong	what to say of a name, or a tenant, that is none: ERR_INVAL
 */
int ctl_query_of_tenant(const struct ctl_call *c, const char *kind,
    const char *name, const char *more, const char *wrong, char **out,
    struct err *e) MUSTCHECK;
/* ctl_query_add - one more parameter; *path grows */
void ctl_query_add(char **path, const char *key, const char *value);

#endif
