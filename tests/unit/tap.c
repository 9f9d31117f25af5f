/*
 * tap.c - part of every unit test: remembers that make check wants TAP
 *
 * cmocka asks the environment each time it prints, and a test may clear its
 * environment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void tap_remember(void) __attribute__((constructor));

static void
tap_remember(void)
{
	const char *form = getenv("CMOCKA_MESSAGE_OUTPUT");

	if (form != NULL && strcmp(form, "TAP") == 0)
		cmocka_set_message_output(CM_OUTPUT_TAP);
}
