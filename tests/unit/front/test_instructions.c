/* test_instructions.c - what models are told first, and that it is true */
#include "supervisor/front/instructions.h"

#include "common/xmalloc.h"
#include "supervisor/tools/languages.h"
#include "tests/unit/test.h"

/* With these pairs of key and value, then NULL; the caller frees. */
static char *
made(const char *const *settings)
{
	struct languages *languages = NULL;
	struct conf *conf = conf_new();
	struct err e;
	char *text;

	assert_int_equal(languages_load(&languages, &e), 0);
	for (; settings != NULL && *settings != NULL; settings += 2)
		assert_int_equal(
		    conf_set(conf, settings[0], settings[1], &e), 0);
	text = instructions_make(conf, languages);
	assert_in_range(strlen(text), INSTRUCTIONS_SHOWN, INSTRUCTIONS_MAX - 1);
	/* It ends as a sentence: nothing was cut. */
	assert_int_equal(text[strlen(text) - 1], '.');
	conf_free(conf);
	languages_free(languages);
	return text;
}

static void
expect(const char *const *settings, const char *part, int is_there)
{
	char *text = made(settings);

	if ((strstr(text, part) != NULL) != is_there)
		fail_msg("%s: %s", part, text);
	free(text);
}

TEST(the_first_sentence_is_whole_where_least_is_shown)
{
	char *text = made(NULL);

	assert_int_equal(
	    strncmp(text,
		"Run shell commands and code (python, bash, sh) in isolated "
		"Linux sandboxes that keep files and processes between calls.",
		strcspn(text, ".") + 1),
	    0);
	assert_in_range(strcspn(text, ".") + 1, 60, INSTRUCTIONS_SHOWN);
	free(text);
}

TEST(it_names_the_calls_and_no_option_that_is_the_default)
{
	expect(NULL, "call get_run with its run_id", true);
	expect(NULL, "Both wait 25 s for the end", true);
	expect(NULL, "await_completion", false);
}

TEST(it_says_what_the_settings_say)
{
	static const char *const other[] = {"SANDBOX_IMAGE",
	    "registry.example/tools:7", "SANDBOX_NETWORK_MODE", "bridge",
	    "DEFAULT_AWAIT_COMPLETION", "false", "DEFAULT_MEMORY_MB", "77",
	    "DEFAULT_TTL_SECONDS", "78", NULL};

	expect(NULL, "A sandbox is Debian 12 with Python 3.11 ", true);
	expect(NULL, " and no network: nothing can be downloaded", true);
	expect(other, "made of the image registry.example/tools:7, ", true);
	expect(other, "Debian", false);
	expect(other, " and a network.", true);
	expect(other, "no network", false);
	expect(other, "run_sandbox does not wait for the end", true);
	expect(other, " 77 MiB", true);
	expect(other, " 78 s ", true);
}

/* Whoever builds another image by the same name says so. */
TEST(of_an_image_of_ones_own_nothing_is_claimed)
{
	static const char *const own[] = {
	    "SANDBOX_DOCKERFILE_PATH", "/etc/mine/Dockerfile", NULL};

	expect(own, "Debian", false);
}

TEST(the_longest_name_of_an_image_has_room)
{
	char name[256];
	const char *const settings[] = {"SANDBOX_IMAGE", name, NULL};

	memset(name, 'i', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	expect(settings, name, true);
}

TEST_MAIN(NULL, NULL)
