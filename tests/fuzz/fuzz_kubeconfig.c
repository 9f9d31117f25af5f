/* fuzz_kubeconfig.c - whatever a kubeconfig may hold
 * libs: worker common */
#include "tests/fuzz/fuzz.h"
#include "worker/http/server_address.h"
#include "worker/kubernetes/kubeconfig.h"

static void
check_header(const char *s)
{
	for (; *s != '\0'; s++)
		REQUIRE(*s > ' ' && *s < 0x7f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubeconfig k;
	struct server_address at;
	struct err e;

	if (kubeconfig_parse((const char *)data, size, "/nonexistent", "f",
		NULL, &k, &e) != 0) {
		REQUIRE(e.code == ERR_INVAL && e.msg[0] != '\0');
		return 0;
	}
	REQUIRE(server_address_parse(k.url, &at, &e) == 0 && at.is_https);
	REQUIRE(k.ca != NULL && k.ns[0] != '\0');
	REQUIRE(k.token != NULL || (k.cert != NULL && k.key != NULL));
	if (k.token != NULL)
		check_header(k.token);
	kubeconfig_clear(&k);
	return 0;
}
