#include "common/weburl.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

TEST(parts_are_told_apart)
{
	static const struct {
		const char *text, *host;
		uint32_t port;
		bool is_https;
	} table[] = {
	    {"https://hooks.example/a?b=c", "hooks.example", 443, true},
	    {"http://Hooks.Example", "hooks.example", 80, false},
	    {"https://a_b.example:8443/", "a_b.example", 8443, true},
	    {"https://192.0.2.1:443?x", "192.0.2.1", 443, true},
	    {"https://0x7f.1/", "0x7f.1", 443, true},
	    {"https://[2001:DB8::1]:1024/x", "2001:db8::1", 1024, true}};
	struct weburl u;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		assert_int_equal(weburl_parse(table[i].text, &u, &e), 0);
		assert_string_equal(u.host, table[i].host);
		assert_int_equal(u.port, table[i].port);
		assert_int_equal(u.is_https, table[i].is_https);
	}
}

TEST(what_two_readers_could_read_differently_is_refused)
{
	static const char *const bad[] = {"", "hooks.example", "ftp://a/",
	    "HTTPS://a/", "https:/a", "https://", "https:///x", "https://:443/",
	    "https://u@a/", "https://u:p@a/", "https://a@b@c/",
	    "https://a\\@b/", "https://a/#x", "https://a b/", "https://a/\t",
	    "https://a/\n", "https://a/\x7f", "https://a/\xc3\xa4",
	    "https://a%2eb/", "https://[::1/", "https://::1/", "https://[a]/",
	    "https://[1.2.3.4]/", "https://[::1]x/", "https://[]/",
	    "https://a:/", "https://a:x/", "https://a:22/", "https://a:0/",
	    "https://a:65536/", "https://a:4294967739/", "https://a:443:1/"};
	struct weburl u;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e.msg[0] = '\0';
		assert_int_equal(weburl_parse(bad[i], &u, &e), ERR_INVAL);
		assert_true(e.msg[0] != '\0');
	}
}

TEST(lengths_are_bounded)
{
	AUTO(auto_free) char *text = xcalloc(1, WEBURL_MAX + 2);
	struct weburl u;
	struct err e;

	memset(text, 'a', WEBURL_MAX);
	memcpy(text, "https://a/", 10);
	assert_int_equal(weburl_parse(text, &u, &e), 0);
	text[WEBURL_MAX] = 'a';
	assert_int_equal(weburl_parse(text, &u, &e), ERR_INVAL);
	memset(text, 0, WEBURL_MAX + 2);
	memset(text, 'a', 8 + WEBURL_HOST_MAX);
	memcpy(text, "https://", 8);
	assert_int_equal(weburl_parse(text, &u, &e), 0);
	text[8 + WEBURL_HOST_MAX] = 'a';
	assert_int_equal(weburl_parse(text, &u, &e), ERR_INVAL);
}

TEST_MAIN(NULL, NULL)
