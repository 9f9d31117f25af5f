/*
 * hosts.h - a name for the loopback address
 *
 * An engine that gives a container no network also empties its /etc/hosts,
 * whatever the image brought, and in most images nothing else knows
 * "localhost".
 */
#ifndef AGENT_HOSTS_H
#define AGENT_HOSTS_H

#define HOSTS_FILE "/etc/hosts"

/* hosts_fill - the two lines for localhost into path, if that is an empty
 * regular file; any other, or one that cannot be written, stays as it is */
void hosts_fill(const char *path);

#endif
