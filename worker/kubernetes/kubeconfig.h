/*
 * kubeconfig.h - where a cluster is, and who we are there
 *
 * A kubeconfig file as kubectl writes it, of which one context counts, or what
 * a Pod has of its service account.  What would start another program for
 * credentials is refused: this process starts none.
 */
#ifndef WORKER_KUBERNETES_KUBECONFIG_H
#define WORKER_KUBERNETES_KUBECONFIG_H

#include "common/base.h"
#include "common/err.h"

#define KUBECONFIG_BYTES_MAX 1048576
#define KUBECONFIG_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* NULL: not there.  url, ca and ns always are. */
struct kubeconfig {
	char *url;             /* https://HOST[:PORT][/PREFIX] */
	char *tls_server_name; /* that its certificate bears */
	char *ca;              /* PEM; else the host's authorities */
	char *cert, *key;      /* PEM; both or neither */
	char *token;           /* as it is now, and for good without a file */
	char *token_file;      /* absolute: it is renewed there */
	char *ca_file;         /* likewise, absolute */
	char *ns;              /* "default" where none is said */
};

/* kubeconfig_read - ERR_INVAL names file and entry, what is wrong and what to
 * do, and never a secret.  context NULL or "": the current one. */
int kubeconfig_read(const char *path, const char *context,
    struct kubeconfig *out, struct err *e) MUSTCHECK;
/* kubeconfig_parse - the same of n bytes; directory: for names of files that
 * are relative; name: for texts */
int kubeconfig_parse(const char *text, size_t n, const char *directory,
    const char *name, const char *context, struct kubeconfig *out,
    struct err *e) MUSTCHECK;
/* kubeconfig_in_cluster - by KUBERNETES_SERVICE_HOST and _PORT and the service
 * account in that directory; NULL: KUBECONFIG_ACCOUNT */
int kubeconfig_in_cluster(
    const char *directory, struct kubeconfig *out, struct err *e) MUSTCHECK;
/* kubeconfig_read_token - of a file, without blanks around; the caller frees.
 * ERR_BACKEND: it cannot be read, or has none. */
int kubeconfig_read_token(
    const char *path, char **out, struct err *e) MUSTCHECK;
/* kubeconfig_set_token - another one, which is k's then */
void kubeconfig_set_token(struct kubeconfig *k, char *token);
/* kubeconfig_clear - secrets are overwritten */
void kubeconfig_clear(struct kubeconfig *k);

#endif
