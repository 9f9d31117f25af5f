/*
 * layout.h - what lies in DATA_DIR, and whose it is
 *
 *	DATA_DIR	root's (one-user mode: the user's); others only pass
 *	DATA_DIR/front	the front's: database, logs, artifacts, session key
 *	DATA_DIR/links	the workers': one directory per sandbox
 *	DATA_DIR/admin.sock	root's: what the front serves to who administers
 *	DATA_DIR/secrets.key	root's: what tenants' secrets are sealed with,
 *			unless SECRETS_KEY_FILE names another place
 *
 * No ancestor of links is the front's: what the engine mounts is found by its
 * path, so whoever may rename on the way chooses it (decision 22).
 */
#ifndef COMMON_LAYOUT_H
#define COMMON_LAYOUT_H

#define LAYOUT_FRONT "front"
#define LAYOUT_LINKS "links"
#define LAYOUT_ADMIN "admin.sock"
#define LAYOUT_SECRETS_KEY "secrets.key"

#endif
