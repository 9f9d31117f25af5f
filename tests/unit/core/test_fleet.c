#include "tests/unit/core/core_ground.h"

#include "supervisor/core/fleet.h"

/* What is known of the workers' engines. */

static void
say_engine(const char *version)
{
	msg_send_engine_is(g.worker[0].chan,
	    &(struct msg_engine_is){.name = "Docker Engine",
		.version = version,
		.api = "1.41",
		.runtime = "runc",
		.runtimes = " runc runsc "});
	ground_settle(0);
}

static void
say_state(bool up)
{
	msg_send_worker_state(g.worker[0].chan,
	    &(struct msg_worker_state){
		.engine_up = up, .detail = up ? "" : "it is gone"});
	for (int k = 0; k < 20; k++)
		(void)event_base_loop(g.base, EVLOOP_NONBLOCK);
}

static struct fleet_look
look(void)
{
	return fleet_look_at(core_fleet(g.core), 0);
}

TEST(a_runtime_is_checked_once_the_engine_said_what_it_has)
{
	const struct fleet *f = core_fleet(g.core);
	struct err e;

	assert_int_equal(fleet_check_runtime(f, 0, "kata", &e), 0);
	say_engine("20.10.23");
	assert_int_equal(fleet_check_runtime(f, 0, "runsc", &e), 0);
	assert_int_equal(fleet_check_runtime(f, 0, "", &e), 0);
	assert_int_equal(fleet_check_runtime(f, 0, "kata", &e), ERR_POLICY);
	assert_non_null(strstr(e.msg, "no runtime kata; it has: runc runsc"));
}

TEST(an_engine_is_what_its_worker_said_last)
{
	const struct fleet_engine *en;

	assert_null(look().engine);
	assert_null(fleet_engine(core_fleet(g.core)));
	say_engine("20.10.23");
	say_engine("20.10.24");
	en = fleet_engine(core_fleet(g.core));
	assert_non_null(en);
	assert_string_equal(en->name, "Docker Engine");
	assert_string_equal(en->version, "20.10.24");
	assert_string_equal(en->api, "1.41");
	assert_string_equal(en->runtime, "runc");
}

TEST(an_engine_that_went_is_down_since_then)
{
	int64_t up_ms, down_ms;

	say_engine("20.10.24");
	up_ms = look().since_ms;
	assert_true(up_ms > 0 && up_ms <= clock_wall_ms());
	say_state(false);
	down_ms = look().since_ms;
	assert_string_equal(look().word, "down");
	assert_string_equal(look().detail, "it is gone");
	assert_true(down_ms >= up_ms);
	/* What it was is still known, but for who asks what is there. */
	assert_string_equal(look().engine->version, "20.10.24");
	assert_null(fleet_engine(core_fleet(g.core)));
	while (clock_wall_ms() <= down_ms)
		;
	say_state(false);
	assert_int_equal(look().since_ms, down_ms);
	say_state(true);
	assert_string_equal(look().word, "up");
	assert_true(look().since_ms > down_ms);
}

static void
say_lack(const char *text)
{
	msg_send_worker_state(g.worker[0].chan,
	    &(struct msg_worker_state){
		.engine_up = true, .detail = "", .lack = text});
	for (int k = 0; k < 20; k++)
		(void)event_base_loop(g.base, EVLOOP_NONBLOCK);
}

/* Nobody is kept from trying: only who asks whether all is well hears it. */
TEST(what_an_engine_lacks_is_said_by_the_check_of_all)
{
	struct err e;

	say_engine("20.10.24");
	say_lack("");
	assert_int_equal(fleet_check_all(core_fleet(g.core), &e), 0);
	say_lack("image x is missing");
	assert_int_equal(fleet_check_all(core_fleet(g.core), &e), ERR_BACKEND);
	assert_string_equal(e.msg, "image x is missing");
	assert_string_equal(look().word, "up");
	assert_string_equal(look().detail, "image x is missing");
	assert_int_equal(fleet_check(core_fleet(g.core), 0, &e), 0);
	say_lack("");
	assert_int_equal(fleet_check_all(core_fleet(g.core), &e), 0);
	assert_string_equal(look().detail, "");
}

TEST(a_worker_that_went_takes_its_engine_with_it)
{
	say_engine("20.10.24");
	ground_kill_worker(0);
	assert_string_equal(look().word, "away");
	assert_null(look().engine);
	assert_null(fleet_engine(core_fleet(g.core)));
	assert_true(look().since_ms > 0);
}

TEST(a_word_with_control_characters_ends_the_channel)
{
	say_engine("20.10\x1b[2J");
	assert_string_equal(look().word, "away");
}

TEST_MAIN(ground_set_up, ground_tear_down)
