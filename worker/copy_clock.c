#include "worker/copy_clock.h"

#include "common/clock.h"

void
copy_clock_init(struct copy_clock *k, uint32_t allowed_ms)
{
	*k = (struct copy_clock){.allowed_us = (uint64_t)allowed_ms * 1000};
}

static void
look(struct copy_clock *k)
{
	uint64_t now_us, went_us;

	if (k->since_us == 0)
		return;
	now_us = clock_mono_us();
	went_us = now_us - k->since_us;
	if (went_us > (uint64_t)COPY_CLOCK_LEAP_MS * 1000)
		went_us = (uint64_t)COPY_CLOCK_LEAP_MS * 1000;
	k->waited_us += went_us;
	k->since_us = now_us;
}

void
copy_clock_go(struct copy_clock *k)
{
	if (k->since_us == 0)
		k->since_us = clock_mono_us();
}

void
copy_clock_stand(struct copy_clock *k)
{
	look(k);
	k->since_us = 0;
}

void
copy_clock_skip(struct copy_clock *k)
{
	if (k->since_us != 0)
		k->since_us = clock_mono_us();
}

static void
earn(struct copy_clock *k, uint64_t us)
{
	look(k);
	k->waited_us -= k->waited_us < us ? k->waited_us : us;
}

void
copy_clock_earn_bytes(struct copy_clock *k, size_t n)
{
	earn(k, (uint64_t)n * 1000 / COPY_CLOCK_BYTES_PER_MS);
}

void
copy_clock_earn_piece(struct copy_clock *k)
{
	earn(k, (uint64_t)COPY_CLOCK_PIECE_MS * 1000);
}

bool
copy_clock_is_late(struct copy_clock *k)
{
	look(k);
	return k->waited_us > k->allowed_us;
}
