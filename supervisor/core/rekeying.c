#include "supervisor/core/rekeying.h"

#include "common/err.h"
#include "common/log.h"

enum rekeying_verdict
rekeying_verdict_of(const struct rekeying *k)
{
	if (!k->is_asked || k->waiting > 0)
		return REKEYING_GOES_ON;
	if (k->left > 0)
		return REKEYING_LEFT;
	return k->has_older ? REKEYING_DONE : REKEYING_IDLE;
}

static void
say(const struct rekeying *k)
{
	switch (rekeying_verdict_of(k)) {
	case REKEYING_GOES_ON:
	case REKEYING_IDLE:
		return;
	case REKEYING_DONE:
		log_info("%zu secrets are sealed anew with the first key of "
			 "SECRETS_KEY_FILE, and none is left with another: the "
			 "older keys can go",
		    k->anew);
		return;
	case REKEYING_LEFT:
		log_warn("%zu secrets are not sealed with the first key of "
			 "SECRETS_KEY_FILE: keep the older keys; the log says "
			 "why, for each or how many; mend that, or set these "
			 "secrets anew or delete them, and start again",
		    k->left);
		return;
	}
}

void
rekeying_begin(struct rekeying *k)
{
	k->waiting++;
}

void
rekeying_stored_cb(int rc, const struct err *why, void *arg)
{
	struct rekeying *k = arg;

	k->waiting--;
	if (rc == 0) {
		k->anew++;
	} else {
		k->left++;
		log_warn("a secret is not on disk as it was sealed anew: %s",
		    why->msg);
	}
	say(k);
}

void
rekeying_leave(struct rekeying *k)
{
	k->left++;
}

void
rekeying_asked(struct rekeying *k, bool has_older)
{
	k->is_asked = true;
	k->has_older = has_older;
	say(k);
}
