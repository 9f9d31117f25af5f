/*
 * ceilings.h - the ceilings of all tenants, as the supervisor told them, and
 * what they let a sandbox be
 *
 * TENANT_CEILING holds for what TENANTS_FILE does not say of a tenant, and for
 * every tenant that it does not name: a front that makes tenants up gets no
 * more by it than TOTAL_CEILING, which all tenants have together.
 */
#ifndef WORKER_CEILINGS_H
#define WORKER_CEILINGS_H

#include "common/base.h"
#include "common/ceiling.h"
#include "common/conf.h"
#include "common/err.h"
#include "worker/policy.h"

struct backend_container;
struct ceilings;

struct ceilings *ceilings_new(void);
void ceilings_free(struct ceilings *cs); /* NULL is fine */

/* ceilings_say - of one tenant; ERR_INVAL for a word that is none */
int ceilings_say(struct ceilings *cs, const char *tenant, const char *word,
    struct err *e) MUSTCHECK;
/* ceilings_settle - all was said, and this is the configuration; ERR_INVAL
 * names the setting */
int ceilings_settle(
    struct ceilings *cs, const struct conf *c, struct err *e) MUSTCHECK;
/* ceilings_check_conf - of the configuration alone */
int ceilings_check_conf(const struct conf *c, struct err *e) MUSTCHECK;

/* ceilings_of - never NULL; of NULL, one that says nothing */
const struct ceiling *ceilings_of(
    const struct ceilings *cs, const char *tenant);
const struct ceiling *ceilings_total(const struct ceilings *cs);

/* ceilings_check - ERR_POLICY with a text for the client when the template is
 * beyond the ceiling; blanks are filled in so that they are not, and rules
 * hold */
int ceilings_check(const struct ceiling *c, const struct policy *p,
    struct policy_template *t, struct err *e) MUSTCHECK;
/* ceilings_fingerprint - the policy's, or where rules change what a sandbox is
 * one of both */
void ceilings_fingerprint(const struct ceiling *c, const struct policy *p,
    char out[POLICY_FINGERPRINT_LEN + 1]);

/* What sandboxes have together. */
struct ceilings_sum {
	uint64_t sandboxes;
	uint64_t nano_cpus;
	uint64_t memory_bytes;
};
void ceilings_add(
    struct ceilings_sum *t, uint64_t nano_cpus, uint64_t memory_bytes);
/* ceilings_counts - whether sums are bounded, so that there is to be counted */
bool ceilings_counts(const struct ceiling *c);
/* ceilings_check_sum - ERR_LIMIT when one more of *t beside *others is too
 * much; whose is "tenant NAME" or the like */
int ceilings_check_sum(const struct ceiling *c,
    const struct ceilings_sum *others, const struct policy_template *t,
    const char *whose, struct err *e) MUSTCHECK;

#endif
