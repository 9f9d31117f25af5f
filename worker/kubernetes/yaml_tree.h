/*
 * yaml_tree.h - a YAML document as JSON
 *
 * Every scalar is a string, but for plain "null", "~" and nothing, which are
 * null.  A document that is JSON is YAML, too.
 */
#ifndef WORKER_KUBERNETES_YAML_TREE_H
#define WORKER_KUBERNETES_YAML_TREE_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

#define YAML_TREE_DEPTH_MAX 16
#define YAML_TREE_NODES_MAX 20000
#define YAML_TREE_KEY_MAX 256

/* yaml_tree_parse - *out is the caller's, for yaml_tree_free.  ERR_PARSE names
 * the line, and nothing of the text: more than one document, aliases, a key
 * twice, a NUL character and what is over the limits are refused. */
int yaml_tree_parse(
    const char *text, size_t n, json_t **out, struct err *e) MUSTCHECK;
/* yaml_tree_free - overwrites its strings, which may be secrets; nobody else
 * may hold a part of it.  NULL is fine. */
void yaml_tree_free(json_t *tree);

#endif
