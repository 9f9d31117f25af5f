#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>

#include "common/fd.h"
#include "common/ipc.h"
#include "common/xmalloc.h"

static char *
read_source(const char *name)
{
	const char *src = getenv("MCP_SRCDIR");
	AUTO(auto_free)
	char *path = xasprintf("%s/%s", src != NULL ? src : ".", name);
	char *text = NULL;
	size_t len = 0;
	struct err e;

	if (fd_read_file(path, 1 << 20, &text, &len, &e) != 0)
		fail_msg("%s", e.msg);
	return text;
}

/* The number and name of a line of schema/ipc.txt; false for others. */
static bool
parse_line(const char *line, unsigned int *nr, char name[64])
{
	if (!isdigit((unsigned char)line[0]))
		return false;
	assert_int_equal(sscanf(line, "%u %63s", nr, name), 2);
	return true;
}

static void
test_names_agree_with_the_catalogue(void **state)
{
	AUTO(auto_free) char *text = read_source("schema/ipc.txt");
	char *save = NULL;
	unsigned int count = 0, known = 0;

	(void)state;
	for (char *line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		char name[64];
		unsigned int nr;

		if (!parse_line(line, &nr, name))
			continue;
		assert_string_equal(ipc_type_name(nr), name);
		count++;
	}
	assert_true(count > 30);
	for (unsigned int nr = 0; nr <= UINT16_MAX; nr++)
		known += strcmp(ipc_type_name(nr), "?") != 0;
	assert_int_equal(known, count); /* none that the catalogue lacks */
	assert_string_equal(ipc_type_name(UINT32_MAX), "?");
}

/* Walk the enumerators in the text of ipc.h as a compiler would. */
static void
test_the_enum_agrees_with_the_catalogue(void **state)
{
	AUTO(auto_free) char *text = read_source("common/ipc.h");
	char *p = strstr(text, "enum ipc_type {"), *end;
	unsigned int nr = 0, known = 0;

	(void)state;
	assert_non_null(p);
	end = strchr(p, '}');
	assert_non_null(end);
	*end = '\0';
	while ((p = strstr(p, "IPC_")) != NULL) {
		size_t n = strcspn(p, " ,\n");
		AUTO(auto_free) char *name = xstrndup(p + 4, n - 4);

		p += n;
		nr++;
		if (strncmp(p, " = ", 3) == 0)
			nr = (unsigned int)strtoul(p + 3, &p, 10);
		if (strcmp(name, "NONE") == 0)
			continue;
		assert_string_equal(ipc_type_name(nr), name);
		known++;
	}
	assert_int_equal(nr, IPC_SWEPT); /* the walk counts right */
	for (unsigned int i = 0; i <= UINT16_MAX; i++)
		known -= strcmp(ipc_type_name(i), "?") != 0;
	assert_int_equal(known, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names_agree_with_the_catalogue),
	    cmocka_unit_test(test_the_enum_agrees_with_the_catalogue),
	};

	return cmocka_run_group_tests_name("ipc_type", tests, NULL, NULL);
}
