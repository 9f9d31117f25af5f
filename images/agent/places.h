/*
 * places.h - files and directories that every sandbox has
 *
 * Commands begin in /workspace and leave their artifacts in /artifacts.  Our
 * image has both; in any other one they are made, and what the engine made
 * for root is given to the sandbox's user.
 *
 * An engine that gives a container no network also empties its /etc/hosts,
 * whatever the image brought, and in most images nothing else knows
 * "localhost".
 */
#ifndef AGENT_PLACES_H
#define AGENT_PLACES_H

#define PLACES_HOSTS "/etc/hosts"

/* places_make - once, at the start; what cannot be had is warned about */
void places_make(void);
/* places_fill_hosts - the two lines for localhost into path, if that is an
 * empty regular file; any other, or one that cannot be written, stays as it
 * is */
void places_fill_hosts(const char *path);

#endif
