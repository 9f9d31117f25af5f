/* A box's life, from a table: what happens, and what the front hears of it. */
#include "tests/unit/worker/ground.h"

#define MAKE MSG_OPEN_MODE_CREATE
#define ADOPT MSG_OPEN_MODE_ADOPT

enum step {
	THE_END,
	OPENED,      /* the backend made it */
	OPEN_FAILED, /* or did not */
	OPEN_UNSAID, /* or may have made it */
	NAME_TAKEN,
	CREATED, /* it was made, and not started yet */
	STARTED,
	START_FAILED,
	HELLO,      /* its agent is there */
	OTHER_LIFE, /* an agent is there that began anew */
	LINK_LOST,
	LINK_BROKEN, /* the agent broke the protocol */
	SEEN,        /* the engine shows it, running */
	SEEN_EXITED,
	SEEN_OOM,
	SEEN_ANOTHERS,
	SEEN_OLD_POLICY,
	SEEN_NOT_OURS,
	SEEN_RESTARTED,
	SEEN_NOT,  /* the engine knows none */
	NOT_SAID,  /* the engine is away */
	ENGINE_UP, /* and there again */
	EVENT_DIED,
	EVENT_DESTROYED,
	REMOVE, /* the front says so */
	REMOVED,
	NOT_REMOVED
};

static void
show(enum step s)
{
	struct backend_container c = ground_container();

	c.running = s != SEEN_EXITED && s != SEEN_OOM;
	c.oom_killed = s == SEEN_OOM;
	if (s == SEEN_ANOTHERS)
		c.identity.uuid.b[0] = 0xcd;
	c.is_ours = s != SEEN_NOT_OURS;
	if (s == SEEN_OLD_POLICY)
		c.identity.fingerprint[0] ^= 1;
	if (s == SEEN_RESTARTED)
		memcpy(c.handle.life, "other", sizeof("other"));
	ground_inspected(0, &c);
}

static void
take_event(enum step s)
{
	struct backend_handle h;

	backend_handle_named(&h, GROUND_ID);
	worker_watch.on_change(
	    &h, s == EVENT_DIED ? BACKEND_DIED : BACKEND_DESTROYED, &ground.w);
}

static void
take_step(enum step s)
{
	if (s >= OPENED && s <= NAME_TAKEN)
		ground_opened(s == OPENED ? 0 :
			s == OPEN_FAILED  ? ERR_BACKEND :
			s == OPEN_UNSAID  ? ERR_LOST :
					    ERR_CONFLICT);
	else if (s == CREATED)
		ground_created(0);
	else if (s == STARTED || s == START_FAILED)
		ground_done(&ground.starts, s == STARTED ? 0 : ERR_BACKEND);
	else if (s == HELLO || s == OTHER_LIFE)
		fake_link_greet_as(&ground.link, s == HELLO ? 1 : 2);
	else if (s == LINK_LOST || s == LINK_BROKEN)
		ground_link_closes(s == LINK_LOST ? ERR_LOST : ERR_PROTO);
	else if (s >= SEEN && s <= SEEN_RESTARTED)
		show(s);
	else if (s == SEEN_NOT || s == NOT_SAID)
		ground_inspected(
		    s == SEEN_NOT ? ERR_NOTFOUND : ERR_BACKEND, NULL);
	else if (s == ENGINE_UP)
		worker_watch.on_state(true, "", &ground.w);
	else if (s == EVENT_DIED || s == EVENT_DESTROYED)
		take_event(s);
	else if (s == REMOVE)
		ground_remove_box();
	else
		ground_removed(s == REMOVED ? 0 : ERR_BACKEND);
}

struct life {
	const char *name;
	enum msg_open_mode mode;
	enum step steps[12];
	const char *told; /* without the SANDBOX_ before each word */
	unsigned int forgets;
	bool busy; /* being made or taken away at the end */
};

static const struct life lives[] = {
    {"it is made and up", MAKE, {OPENED, HELLO}, "READY", 0, false},
    {"it is being made", MAKE, {THE_END}, "", 0, true},
    {"the engine refuses it", MAKE, {OPEN_FAILED}, "FAILED", 1, false},
    {"it does not start", MAKE, {CREATED, START_FAILED, REMOVED}, "FAILED", 1,
	false},
    {"it ends while it starts", MAKE, {CREATED, STARTED, SEEN_OOM, REMOVED},
	"FAILED", 1, false},
    {"it starts and another one is shown", MAKE,
	{CREATED, STARTED, SEEN_ANOTHERS, REMOVED}, "FAILED", 1, false},
    {"it may have been made, and was", MAKE, {OPEN_UNSAID, SEEN, REMOVED},
	"FAILED", 1, false},
    {"it may have been made, and was not", MAKE, {OPEN_UNSAID, SEEN_NOT},
	"FAILED", 1, false},
    {"it may have been made, and another has its name", MAKE,
	{OPEN_UNSAID, SEEN_ANOTHERS}, "FAILED", 1, false},
    {"an earlier worker made it", MAKE, {NAME_TAKEN, SEEN, SEEN, HELLO},
	"READY", 0, false},
    {"an earlier box of its tenant has its name", MAKE,
	{NAME_TAKEN, SEEN_ANOTHERS, REMOVED, OPENED, HELLO}, "READY", 0, false},
    {"two boxes have its name", MAKE,
	{NAME_TAKEN, SEEN_ANOTHERS, REMOVED, NAME_TAKEN, SEEN_ANOTHERS},
	"FAILED", 1, false},
    {"a stranger has its name, and keeps it", MAKE, {NAME_TAKEN, SEEN_NOT_OURS},
	"FAILED", 1, false},
    {"removed while it starts", MAKE, {CREATED, REMOVE, STARTED, REMOVED},
	"REMOVED", 1, false},
    {"removed while its name is looked at", MAKE,
	{NAME_TAKEN, REMOVE, SEEN, REMOVED}, "REMOVED", 1, false},
    {"its agent lies before it is up", MAKE, {OPENED, LINK_BROKEN, REMOVED},
	"FAILED", 1, false},
    {"its agent lies later", MAKE, {OPENED, HELLO, LINK_BROKEN, REMOVED},
	"READY LOST", 1, false},
    {"removed while up", MAKE, {OPENED, HELLO, REMOVE, REMOVED},
	"READY REMOVED", 1, false},
    {"removed twice, told once", MAKE, {OPENED, HELLO, REMOVE, REMOVE, REMOVED},
	"READY REMOVED", 1, false},
    {"it cannot be removed", MAKE, {OPENED, HELLO, REMOVE, NOT_REMOVED},
	"READY REMOVED", 0, false},
    {"it is being removed", MAKE, {OPENED, HELLO, REMOVE}, "READY", 0, true},
    {"removed before its agent came", MAKE, {OPENED, REMOVE, REMOVED},
	"REMOVED", 1, false},
    {"removed while it is made, which comes through", MAKE,
	{REMOVE, OPENED, REMOVED}, "REMOVED", 1, false},
    {"removed while it is made, which does not", MAKE, {REMOVE, OPEN_FAILED},
	"REMOVED", 1, false},

    {"the link is lost and comes again", MAKE,
	{OPENED, HELLO, LINK_LOST, SEEN, HELLO}, "READY", 0, false},
    {"the agent is back before the engine has answered", MAKE,
	{OPENED, HELLO, LINK_LOST, HELLO, SEEN}, "READY", 0, false},
    {"the link is lost while the engine is away", MAKE,
	{OPENED, HELLO, LINK_LOST, NOT_SAID, HELLO}, "READY", 0, false},
    {"the link is lost because it has exited", MAKE,
	{OPENED, HELLO, LINK_LOST, SEEN_EXITED, REMOVED}, "READY LOST", 1,
	false},
    {"the link is lost because it is gone", MAKE,
	{OPENED, HELLO, LINK_LOST, SEEN_NOT, REMOVED}, "READY LOST", 1, false},
    {"it was restarted from outside", MAKE,
	{OPENED, HELLO, LINK_LOST, SEEN_RESTARTED, REMOVED}, "READY LOST", 1,
	false},
    {"its agent began anew", MAKE,
	{OPENED, HELLO, LINK_LOST, OTHER_LIFE, REMOVED}, "READY LOST", 1,
	false},

    {"an event says that it died", MAKE,
	{OPENED, HELLO, EVENT_DIED, SEEN_OOM, REMOVED}, "READY LOST", 1, false},
    {"an event says that it died, and it did not", MAKE,
	{OPENED, HELLO, EVENT_DIED, SEEN}, "READY", 0, false},
    {"an event says that it is gone", MAKE,
	{OPENED, HELLO, EVENT_DESTROYED, REMOVED}, "READY LOST", 1, false},
    {"events of a box that is being removed are its removal's", MAKE,
	{OPENED, HELLO, REMOVE, EVENT_DIED, EVENT_DESTROYED, REMOVED},
	"READY REMOVED", 1, false},
    {"it died before its agent came", MAKE,
	{OPENED, EVENT_DIED, SEEN_EXITED, REMOVED}, "LOST", 1, false},

    {"it is adopted", ADOPT, {SEEN, HELLO}, "READY", 0, false},
    {"adopted when the engine is there again", ADOPT,
	{NOT_SAID, ENGINE_UP, SEEN, HELLO}, "READY", 0, false},
    {"there is none to adopt", ADOPT, {SEEN_NOT, SEEN_NOT}, "LOST", 1, false},
    {"the one to adopt has exited: told when nothing is left", ADOPT,
	{SEEN_EXITED, SEEN_EXITED, REMOVED}, "LOST", 1, false},
    {"the one to adopt is another's and is left alone", ADOPT,
	{SEEN_ANOTHERS, SEEN_ANOTHERS}, "LOST", 1, false},
    {"the one to adopt is of an old policy", ADOPT,
	{SEEN_OLD_POLICY, SEEN_OLD_POLICY, REMOVED}, "LOST", 1, false},
    {"removed before it was looked at", ADOPT, {REMOVE, SEEN, SEEN, REMOVED},
	"REMOVED", 1, false},
    {"removed while what is lost is taken away", ADOPT,
	{SEEN_EXITED, REMOVE, SEEN_EXITED, REMOVED}, "REMOVED", 1, false},
    {"adopted, and its agent lies", ADOPT, {SEEN, LINK_BROKEN, REMOVED}, "LOST",
	1, false},
};

/* "SANDBOX_READY SANDBOX_LOST" as "READY LOST"; states of the engine, which
 * have no test here, are left out. */
static const char *
told_short(void)
{
	static char out[512];
	char all[512], *save = NULL;
	const char *word;

	out[0] = '\0';
	(void)snprintf(all, sizeof(all), "%s", ground_told());
	for (word = strtok_r(all, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save)) {
		size_t used = strlen(out);

		if (strncmp(word, "SANDBOX_", 8) == 0)
			(void)snprintf(out + used, sizeof(out) - used, "%s%s",
			    used > 0 ? " " : "", word + 8);
	}
	return out;
}

static void
live(const struct life *l)
{
	void *state = NULL;

	assert_int_equal(ground_setup(&state), 0);
	ground_box(l->mode);
	for (size_t i = 0; l->steps[i] != THE_END; i++) {
		take_step(l->steps[i]);
		fixture_settle(ground.base);
	}
	assert_string_equal(told_short(), l->told);
	assert_int_equal(ground.forgets, l->forgets);
	assert_int_equal(boxes_is_busy(ground.w.boxes), l->busy);
	assert_int_equal(ground_teardown(&state), 0);
}

TEST(every_life_is_told_as_it_was)
{
	for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
		print_message("# %s\n", lives[i].name);
		live(&lives[i]);
	}
}

/* ---- what a table does not say */

TEST_WITH(ground_setup, ground_teardown,
    the_agent_of_its_handle_is_let_in_and_nobody_before)
{
	ground_box(MAKE);
	assert_int_equal(ground.listens, 1);
	assert_int_equal(ground.expected, 0);
	ground_opened(0);
	assert_int_equal(ground.expected, 99);
}

TEST_WITH(ground_setup, ground_teardown, what_the_policy_forbids_is_not_made)
{
	const struct box_start s = {.sandbox = GROUND_SANDBOX,
	    .uuid = ground_uuid,
	    .name = GROUND_NAME,
	    .container_id = "",
	    .template = {.image = "another:1", .runtime = ""},
	    .tenant = 1,
	    .tenant_name = "default",
	    .claim = {.identifier = "a"}};
	struct err e;

	assert_int_equal(boxes_open(ground.w.boxes, &s, &e), 0);
	assert_string_equal(ground_told(), "SANDBOX_FAILED");
	assert_null(ground.created_cb);
	assert_int_equal(ground.listens, 0);
}

TEST_WITH(
    ground_setup, ground_teardown, a_carrier_that_cannot_is_a_box_that_failed)
{
	ground.prepare_rc = ERR_SYS;
	ground_box(MAKE);
	assert_string_equal(ground_told(), "SANDBOX_FAILED");
	assert_null(ground.created_cb);
	assert_false(boxes_is_busy(ground.w.boxes));
}

TEST_WITH(ground_setup, ground_teardown,
    an_agent_that_cannot_be_delivered_is_a_box_that_failed)
{
	ground.deliver_rc = ERR_SYS;
	ground_box(MAKE);
	assert_string_equal(ground_told(), "SANDBOX_FAILED");
	assert_null(ground.created_cb);
	assert_false(boxes_is_busy(ground.w.boxes));
}

/* Its first process is this one, which is root. */
TEST_WITH(ground_setup, ground_teardown, a_remap_that_is_none_leaves_no_box)
{
	if (geteuid() != 0)
		skip();
	ground.w.policy.as_root = POLICY_ROOT_REMAPPED;
	ground.users = BACKEND_USERS_MAPPED;
	ground.pid = getpid();
	ground_box(MAKE);
	ground_opened(0);
	assert_string_equal(ground_told(), "");
	ground_removed(0);
	assert_string_equal(ground_told(), "SANDBOX_FAILED");
	assert_int_equal(ground.forgets, 1);
}

TEST_WITH(ground_setup, ground_teardown, a_number_and_a_uuid_have_one_box_each)
{
	struct box_start s = {.sandbox = GROUND_SANDBOX,
	    .mode = ADOPT,
	    .uuid = {{1}},
	    .name = GROUND_NAME,
	    .container_id = ""};
	struct err e;

	ground_box(MAKE);
	assert_int_equal(boxes_open(ground.w.boxes, &s, &e), ERR_PROTO);
	s.sandbox++;
	s.uuid = ground_uuid;
	assert_int_equal(boxes_open(ground.w.boxes, &s, &e), ERR_PROTO);
}

TEST_WITH(ground_setup, ground_teardown, a_lost_box_gives_its_number_free)
{
	ground_box(MAKE);
	ground_opened(0);
	fake_link_greet(&ground.link);
	take_event(EVENT_DESTROYED);
	fixture_settle(ground.base);
	ground_box(MAKE); /* while the old one is taken away */
	ground_removed(0);
	ground_opened(0);
	fake_link_greet(&ground.link);
	assert_string_equal(
	    ground_told(), "SANDBOX_READY SANDBOX_LOST SANDBOX_READY");
}

static void
loop_until_removed(void)
{
	bool asked = false;

	while (!asked) {
		(void)event_base_loop(ground.base, EVLOOP_ONCE);
		asked = ground.removes.n > 0;
	}
}

TEST_WITH(ground_setup, ground_teardown,
    an_agent_that_answers_no_question_costs_its_box)
{
	ground.w.box_host.ping_ms = 5;
	ground_box(MAKE);
	ground_opened(0);
	fake_link_greet(&ground.link);
	loop_until_removed();
	assert_string_equal(ground_told(), "SANDBOX_READY SANDBOX_LOST");
}

static void
answer_question(void)
{
	struct wire_in in = fake_link_sent(&ground.link, FRAME_PING);
	const struct frame_pong m = {.token = wire_get_u64(&in)};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(frame_put_pong(&b, &m), 0);
	assert_int_equal(fake_link_say(&ground.link, &b, &e), 0);
}

TEST_WITH(ground_setup, ground_teardown, an_agent_that_answers_is_asked_again)
{
	ground.w.box_host.ping_ms = 1;
	ground_box(MAKE);
	ground_opened(0);
	fake_link_greet(&ground.link);
	(void)fake_link_sent(&ground.link, FRAME_WELCOME);
	for (int i = 0; i < 20; i++) {
		while (buf_len(link_out(ground.link.l)) == 0)
			(void)event_base_loop(ground.base, EVLOOP_ONCE);
		answer_question();
	}
	assert_string_equal(ground_told(), "SANDBOX_READY");
}

/* What waits behind a front that is slow is not the agent's silence. */
TEST_WITH(
    ground_setup, ground_teardown, an_agent_that_nobody_reads_is_not_silent)
{
	uint64_t end = clock_mono_ms() + 100;

	ground.w.box_host.ping_ms = 1;
	ground_box(MAKE);
	ground_opened(0);
	fake_link_greet(&ground.link);
	boxes_pause(ground.w.boxes);
	while (clock_mono_ms() < end)
		(void)event_base_loop(ground.base, EVLOOP_ONCE);
	assert_string_equal(ground_told(), "SANDBOX_READY");
	boxes_resume(ground.w.boxes);
	loop_until_removed();
}

TEST_WITH(ground_setup, ground_teardown, an_answer_to_no_question_is_a_lie)
{
	const struct frame_pong m = {.token = 1};
	struct buf b;
	struct err e;

	ground_box(MAKE);
	ground_opened(0);
	fake_link_greet(&ground.link);
	buf_init(&b, 0);
	assert_int_equal(frame_put_pong(&b, &m), 0);
	assert_int_equal(fake_link_say(&ground.link, &b, &e), ERR_PROTO);
}

static void
remove_unknown(void)
{
	ground_remove_box();
	assert_true(boxes_is_busy(ground.w.boxes));
	assert_string_equal(ground.inspects.all[0].what, GROUND_NAME);
}

TEST_WITH(ground_setup, ground_teardown, an_unknown_box_is_removed_by_its_name)
{
	struct backend_container c = ground_container();

	remove_unknown();
	ground_inspected(0, &c);
	assert_string_equal(ground.removes.all[0].what, GROUND_ID);
	ground_removed(0);
	assert_string_equal(ground_told(), "SANDBOX_REMOVED");
	assert_int_equal(ground.forgets, 1);
	assert_false(boxes_is_busy(ground.w.boxes));
}

TEST_WITH(
    ground_setup, ground_teardown, so_many_unknown_boxes_are_removed_at_a_time)
{
	struct msg_sandbox_remove m = {
	    .tenant_name = "default", .name = GROUND_NAME};
	struct err e;

	for (m.id = 1; m.id <= BOXES_UNKNOWN_MAX; m.id++) {
		memcpy(m.uuid.b, &m.id, sizeof(m.id));
		assert_int_equal(boxes_remove(ground.w.boxes, &m, &e), 0);
	}
	assert_int_equal(ground.inspects.n, BOXES_UNKNOWN_MAX);
	assert_string_equal(ground_told(), "");
	memcpy(m.uuid.b, &m.id, sizeof(m.id));
	assert_int_equal(boxes_remove(ground.w.boxes, &m, &e), 0);
	assert_string_equal(ground_told(), "SANDBOX_REMOVED"); /* it failed */
	while (ground.inspects.n > 0)
		ground_inspected(ERR_NOTFOUND, NULL);
	assert_false(boxes_is_busy(ground.w.boxes));
}

TEST_WITH(ground_setup, ground_teardown, anothers_container_of_that_name_stays)
{
	struct backend_container c = ground_container();

	c.is_ours = false;
	remove_unknown();
	ground_inspected(0, &c);
	assert_int_equal(ground.removes.n, 0);
	assert_string_equal(ground_told(), "SANDBOX_REMOVED");
}

TEST_WITH(ground_setup, ground_teardown,
    a_removal_that_fails_is_told_and_forgets_nothing)
{
	remove_unknown();
	ground_inspected(ERR_BACKEND, NULL);
	assert_string_equal(ground_told(), "SANDBOX_REMOVED");
	assert_int_equal(ground.forgets, 0);
}

/* ---- its tasks */

static void
start(uint64_t number)
{
	struct task_start s = ground_task(number);
	struct err e;

	assert_int_equal(
	    boxes_start_task(ground.w.boxes, GROUND_SANDBOX, &s, &e), 0);
}

static void
come_up(void)
{
	ground_box(MAKE);
	ground_opened(0);
	fake_link_greet(&ground.link);
	(void)fake_link_sent(&ground.link, FRAME_WELCOME);
	assert_string_equal(ground_told(), "SANDBOX_READY");
}

TEST_WITH(ground_setup, ground_teardown, a_task_waits_for_its_boxs_agent)
{
	ground_box(MAKE);
	start(1);
	ground_opened(0);
	fake_link_greet(&ground.link);
	(void)fake_link_sent(&ground.link, FRAME_WELCOME);
	(void)fake_link_sent(&ground.link, FRAME_OPEN_SEQUENCE);
	fake_link_sent_nothing(&ground.link);
}

/* The agent says that it has the runs 1 to n, and how many processes live that
 * commands left behind. */
static void
greet_with(uint32_t n, uint32_t left)
{
	const struct frame_hello hello = {
	    .version = FRAME_VERSION, .boot = {{1}}, .runs = n};
	const struct frame_hello_end end = {.left = left};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	fake_link_open(&ground.link);
	assert_int_equal(frame_put_hello(&b, &hello), 0);
	for (uint32_t i = 1; i <= n; i++)
		assert_int_equal(frame_put_hello_run(&b,
				     &(struct frame_hello_run){
					 .run = {{(uint8_t)i}}, .length = 1}),
		    0);
	assert_int_equal(frame_put_hello_end(&b, &end), 0);
	assert_int_equal(fake_link_say(&ground.link, &b, &e), 0);
	(void)fake_link_sent(&ground.link, FRAME_WELCOME);
}

TEST_WITH(ground_setup, ground_teardown,
    how_many_are_left_behind_is_told_and_none_once)
{
	static const uint32_t counts[] = {0, 3, 3, 0, 0, UINT32_MAX};

	come_up();
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		fake_link_lose(&ground.link);
		greet_with(0, counts[i]);
		assert_string_equal(ground_told(),
		    counts[i] != 0 || (i > 0 && counts[i - 1] != 0) ?
			"SANDBOX_LEFT" :
			"");
		ground.link.l->user->on_turn(ground.link.l->arg);
		assert_string_equal(ground_told(), "");
	}
}

static void
start_as_root(uint64_t number)
{
	struct task_start s = ground_task(number);
	struct err e;

	s.is_root = true;
	assert_int_equal(
	    boxes_start_task(ground.w.boxes, GROUND_SANDBOX, &s, &e), 0);
}

TEST_WITH(ground_setup, ground_teardown,
    what_root_has_begun_goes_on_and_no_more_is_begun)
{
	static const struct {
		enum policy_root as_root;
		enum backend_users users;
	} hosts[] = {{POLICY_ROOT_DENY, BACKEND_USERS_MAPPED},
	    {POLICY_ROOT_REMAPPED, BACKEND_USERS_SAME}};

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		if (i > 0) {
			(void)ground_teardown(NULL);
			(void)ground_setup(NULL);
		}
		ground.w.policy.as_root = hosts[i].as_root;
		ground.users = hosts[i].users;
		ground_box(ADOPT);
		start_as_root(1);
		start_as_root(2);
		take_step(SEEN);
		greet_with(1, 0);
		(void)fake_link_sent(&ground.link, FRAME_OPEN_SEQUENCE);
		fake_link_sent_nothing(&ground.link);
		start_as_root(3);
		fake_link_sent_nothing(&ground.link);
		assert_string_equal(
		    ground_told(), "SANDBOX_READY RUN_ENDED RUN_ENDED");
	}
}

/* A worker that has just begun knows nothing of its engine yet. */
TEST_WITH(ground_setup, ground_teardown,
    a_task_of_root_waits_until_the_engine_has_said_whose_root)
{
	ground.w.policy.as_root = POLICY_ROOT_REMAPPED;
	ground_box(ADOPT);
	start_as_root(1);
	take_step(SEEN);
	assert_int_equal(ground.listens, 0);
	assert_string_equal(ground_told(), "");
	ground.users = BACKEND_USERS_MAPPED;
	take_step(ENGINE_UP);
	take_step(SEEN);
	greet_with(0, 0);
	(void)fake_link_sent(&ground.link, FRAME_OPEN_SEQUENCE);
	assert_null(strstr(ground_told(), "RUN_ENDED"));
}

TEST_WITH(
    ground_setup, ground_teardown, a_task_that_is_told_twice_is_started_once)
{
	struct task_start other = ground_task(2);
	struct err e;

	come_up();
	start(1);
	start(1);
	(void)fake_link_sent(&ground.link, FRAME_OPEN_SEQUENCE);
	fake_link_sent_nothing(&ground.link);
	other.id = 1;
	assert_int_equal(
	    boxes_start_task(ground.w.boxes, GROUND_SANDBOX, &other, &e),
	    ERR_PROTO);
}

TEST_WITH(ground_setup, ground_teardown, a_task_in_no_box_is_lost)
{
	start(1);
	assert_string_equal(ground_told(), "RUN_ENDED");
	assert_null(ground_find_task(1));
}

TEST_WITH(ground_setup, ground_teardown, a_task_in_a_box_that_goes_is_lost)
{
	come_up();
	ground_remove_box();
	start(1);
	assert_string_equal(ground_told(), "RUN_ENDED");
}

TEST_WITH(
    ground_setup, ground_teardown, tasks_end_before_their_box_is_told_lost)
{
	come_up();
	start(1);
	start(2);
	take_event(EVENT_DESTROYED);
	assert_string_equal(ground_told(), "RUN_ENDED RUN_ENDED SANDBOX_LOST");
}

TEST_WITH(ground_setup, ground_teardown,
    a_task_is_cancelled_at_once_where_nothing_can_have_begun)
{
	ground_box(MAKE);
	start(1);
	tasks_item_cancel(ground_find_task(1), RUNLOG_CANCELED);
	assert_string_equal(ground_told(), "RUN_ENDED");
	assert_non_null(ground_find_task(1));
	tasks_item_forget(ground_find_task(1));
	assert_null(ground_find_task(1));
}

TEST_WITH(ground_setup, ground_teardown,
    a_task_that_may_have_begun_is_cancelled_by_its_agent)
{
	come_up();
	start(1);
	(void)fake_link_sent(&ground.link, FRAME_OPEN_SEQUENCE);
	tasks_item_cancel(ground_find_task(1), RUNLOG_CANCELED);
	assert_string_equal(ground_told(), "");
	(void)fake_link_sent(&ground.link, FRAME_CANCEL);
}

TEST_MAIN(NULL, NULL)
