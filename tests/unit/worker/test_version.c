#include "worker/doctor/version.h"
#include "tests/unit/test.h"

TEST(versions_are_ordered_as_debian_orders_them)
{
	static const char *const rising[] = {"1.0.0~rc93", "1.0.0", "1.0.1",
	    "1.1.5", "1.1.5+ds1-1", "1.1.5+ds1-1+deb12u1",
	    "1.1.5+ds1-1+deb12u10", "1.1.12", "1.2.0", "20.10.24",
	    "20.10.24+dfsg1-1+deb12u1", "20.10.24+dfsg1-1+deb12u1+b6", "28.0"};

	for (size_t i = 0; i < ARRAY_LEN(rising); i++)
		for (size_t k = 0; k < ARRAY_LEN(rising); k++) {
			int got = version_compare(rising[i], rising[k]);

			assert_int_equal(
			    (got > 0) - (got < 0), (i > k) - (i < k));
		}
	assert_int_equal(version_compare("1.01", "1.1"), 0);
	assert_true(version_compare("99999999999999999999", "2") > 0);
}

TEST(upstreams_version_is_what_comes_first)
{
	static const struct {
		const char *given, *want;
	} cases[] = {{"1.1.5+ds1-1+deb12u1", "1.1.5"}, {"v1.7.2", "1.7.2"},
	    {"1.0.0-rc93", "1.0.0~rc93"}, {"6.18.44-fc-v657", "6.18.44"},
	    {"6.1.0-37-amd64", "6.1.0"}, {"1.0.0~rc93+ds1-5", "1.0.0~rc93"},
	    {"28.0.0-beta.1", "28.0.0~beta.1"}, {"", ""}, {"none", ""}};
	char got[32], tight[4];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		version_upstream(cases[i].given, got, sizeof(got));
		assert_string_equal(got, cases[i].want);
	}
	version_upstream("123456", tight, sizeof(tight));
	assert_string_equal(tight, "123");
}

TEST(each_branch_has_its_own_first_good_one)
{
	static const char fixed[] = "1.2.8,1.3.3";

	assert_false(version_is_fixed("1.2.7", fixed));
	assert_true(version_is_fixed("1.2.8", fixed));
	assert_false(version_is_fixed("1.3.2", fixed));
	assert_true(version_is_fixed("1.3.10", fixed));
	assert_false(version_is_fixed("1.1.15", fixed));
	assert_true(version_is_fixed("1.4.0", fixed));
	assert_false(version_is_fixed("1.3.3~rc1", fixed));
	assert_false(version_is_fixed("1.20.1", "1.21.0"));
}

TEST(a_package_is_mended_within_its_release)
{
	static const char fixed[] =
	    "1.1.5+ds1-1+deb12u1,1.0.0~rc93+ds1-5+deb11u3";

	assert_true(version_is_packaged_fixed("1.1.5+ds1-1+deb12u1", fixed));
	assert_true(version_is_packaged_fixed("1.1.5+ds1-1+deb12u2", fixed));
	assert_true(version_is_packaged_fixed("1.1.5+ds1-1+deb12u1+b6", fixed));
	assert_false(version_is_packaged_fixed("1.1.5+ds1-1", fixed));
	assert_false(
	    version_is_packaged_fixed("1.0.0~rc93+ds1-5+deb11u2", fixed));
	assert_false(version_is_packaged_fixed("1.1.5+ds1-1+deb13u9", fixed));
	assert_false(version_is_packaged_fixed("1.1.5+ds1-1+deb12u1", ""));
}

TEST_MAIN(NULL, NULL)
