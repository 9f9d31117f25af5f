/*
 * clients.h - what to paste into MCP clients, from schema/clients.txt
 *
 * "mcp-sandboxd clients" prints it with the address at which a server of this
 * configuration can be reached, and with the place for a token where its
 * settings say that one is wanted.
 */
#ifndef MASTER_CLIENTS_H
#define MASTER_CLIENTS_H

#include <stdio.h>

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"

/* clients_check - is there a client of that name?  ERR_INVAL with the list of
 * those there are */
int clients_check(const char *name, struct err *e) MUSTCHECK;
/* clients_print - one of them, or all where name is NULL.  ERR_INVAL where the
 * configuration says no URL: PORT=0. */
int clients_print(const char *name, const struct conf *conf, FILE *f,
    struct err *e) MUSTCHECK;

#endif
