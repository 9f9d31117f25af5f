#include "worker/kubernetes/pod_labels.h"

#include <stdio.h>

#include <openssl/sha.h>

#include "common/hex.h"
#include "common/xmalloc.h"

void
pod_label(const char *prefix, const char *word, char out[POD_LABEL_MAX + 1])
{
	(void)snprintf(out, POD_LABEL_MAX + 1, "%s/%s", prefix, word);
}

void
pod_tenant(const char *tenant, char out[POD_TENANT_LEN + 1])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	(void)SHA256((const uint8_t *)tenant, strlen(tenant), digest);
	hex_encode(digest, POD_TENANT_LEN / 2, out);
}

char *
pod_selector(const char *prefix, const char *id)
{
	return xasprintf("%s/" POD_LABEL_ID "=%s", prefix, id);
}
