#include "supervisor/store/store.h"

#include "common/embed.h"
#include "supervisor/store/db.h"
#include "supervisor/store/migrate.h"

static int
look_who_may_call(struct db *db, bool *wants_tokens, struct err *e)
{
	int64_t tables, tokens, next;

	if (db_exec_int(db, DB_TOKENS_THERE, &tables, e) != 0)
		return e->code;
	if (tables == 0) /* a schema from before there were any, or none */
		return 0;
	if (db_exec_int(db, DB_TOKENS_COUNT, &tokens, e) != 0 ||
	    db_exec_int(db, DB_TENANT_NEXT, &next, e) != 0)
		return e->code;
	*wants_tokens =
	    !store_directory_is_open((uint64_t)tokens, (uint64_t)next);
	return 0;
}

int
store_look(const char *dir, bool *wants_tokens, struct err *e)
{
	struct err why = {0};
	struct db *db;
	int rc = db_open(dir, DB_LOOK, &db, &why);

	*wants_tokens = false;
	if (rc == 0) {
		rc = migrate_check(db, embed_sql, &why);
		if (rc == 0)
			rc = look_who_may_call(db, wants_tokens, &why);
		db_close(db);
	}
	return rc == 0 || rc == ERR_NOTFOUND ? 0 :
					       err_set(e, rc, "%s", why.msg);
}
