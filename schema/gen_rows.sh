#!/bin/sh
# gen_rows.sh header|sql|source FILE - C for the rows of schema/rows.txt
#
#	header  supervisor/store/rows_gen.h      structs, clear, copy
#	sql     supervisor/store/rows_sql_gen.h  pieces of statements, put, get
#	source  supervisor/store/rows_gen.c
#
# A line that is malformed ends it with status 1, and so the build.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: gen_rows.sh header|sql|source FILE" >&2
	exit 2
fi
LC_ALL=C exec awk -v form="$1" '
function fail(why)
{
	printf "%s:%d: %s\n", FILENAME, FNR, why | "cat >&2"
	close("cat >&2")
	failed = 1
	exit 1
}
# What stands behind "--".
function remark(    at)
{
	at = index($0, "-- ")
	return at == 0 ? "" : substr($0, at + 3)
}
function is_column(i)
{
	return when[i] == "key" || when[i] == "begin" || when[i] == "end"
}
function is_pointer(i)
{
	return type[i] == "bytes" || type[i] == "secret"
}
function is_list(i)
{
	return type[i] ~ /^list:/
}
function list_row(i)
{
	return "store_" substr(type[i], 6)
}
function is_word(i)
{
	return type[i] !~ /^(u64|u32|i64|i32|bool|uuid|uuid0|sha256|text|bytes|secret)$/ &&
	    !is_list(i)
}

# The struct.
function declare(i,    c)
{
	c = note[i] == "" ? "" : " /* " note[i] " */"
	if (type[i] ~ /^[ui](32|64)$/)
		printf "\t%sint%s_t %s;%s\n", type[i] ~ /^u/ ? "u" : "",
		    substr(type[i], 2), field[i], c
	else if (type[i] == "bool")
		printf "\tbool %s;%s\n", field[i], c
	else if (type[i] == "uuid" || type[i] == "uuid0")
		printf "\tstruct uuid %s;%s\n", field[i], c
	else if (type[i] == "sha256")
		printf "\tuint8_t %s[32];%s\n", field[i], c
	else if (type[i] == "text")
		printf "\tchar *%s;%s\n", field[i], c
	else if (is_pointer(i))
		printf "\tuint8_t *%s;%s\n\tsize_t %s_len;\n", field[i], c,
		    field[i]
	else if (is_list(i))
		printf "\tstruct %s *%s;%s\n\tuint32_t n%s;\n", list_row(i),
		    field[i], c, field[i]
	else
		printf "\tenum %s %s;%s\n", type[i], field[i], c
}
function header(    i)
{
	printf "\n/* %s */\nstruct store_%s {\n", about, row
	for (i = 1; i <= n; i++)
		declare(i)
	print "};"
	printf "/* frees what it points to, and zeroes it */\n"
	printf "void store_%s_clear(struct store_%s *r);\n", row, row
	printf "/* a copy of all of it; a text that is NULL becomes \"\" */\n"
	printf "void store_%s_copy(\n    struct store_%s *to," \
	    " const struct store_%s *from);\n", row, row, row
}

# Pieces of statements.
function sql(    i, at, names, values, same, set, where)
{
	at = before
	for (i = 1; i <= n; i++)
		if (is_column(i)) {
			at++
			names = names ", " column[i]
			values = values ", ?" at
			if (when[i] != "key")
				same = same ", " column[i] " = excluded." \
				    column[i]
		}
	printf "\n#define %s_COLUMNS \"%s\"\n", toupper(row), substr(names, 3)
	printf "#define %s_VALUES \"%s\"\n", toupper(row), substr(values, 3)
	at = before
	for (i = 1; i <= n; i++)
		if (when[i] == "key")
			where = where " AND " column[i] " = ?" (++at)
	for (i = 1; i <= n; i++)
		if (when[i] == "end")
			set = set ", " column[i] " = ?" (++at)
	if (set == "" && where != "")
		printf "#define %s_SET_ALL \"%s\"\n", toupper(row),
		    substr(same, 3)
	if (set != "") {
		printf "#define %s_END_SET \"%s\"\n", toupper(row),
		    substr(set, 3)
		printf "#define %s_END_WHERE \"%s\"\n", toupper(row),
		    substr(where, 6)
		printf "void rows_put_%s_end(struct db_call *c," \
		    " const struct store_%s *r);\n", row, row
	}
	printf "void rows_put_%s(struct db_call *c," \
	    " const struct store_%s *r);\n", row, row
	printf "int rows_get_%s(struct db_call *c, struct store_%s *r," \
	    " struct err *e) MUSTCHECK;\n", row, row
}

# Functions.
function free_field(i)
{
	if (type[i] == "text")
		printf "\tfree(r->%s);\n", field[i]
	if (type[i] == "secret")
		printf "\tif (r->%s != NULL)\n\t\texplicit_bzero(r->%s," \
		    " r->%s_len);\n", field[i], field[i], field[i]
	if (is_pointer(i))
		printf "\tfree(r->%s);\n", field[i]
	if (is_list(i))
		printf "\tfor (uint32_t i = 0; i < r->n%s; i++)\n\t\t" \
		    "%s_clear(&r->%s[i]);\n\tfree(r->%s);\n", field[i],
		    list_row(i), field[i], field[i]
}
function copy_field(i)
{
	if (type[i] == "text")
		printf "\tto->%s = xstrdup(from->%s == NULL ? \"\" :" \
		    " from->%s);\n", field[i], field[i], field[i]
	if (is_pointer(i))
		printf "\tif (from->%s != NULL)\n\t\tto->%s = " \
		    "xmemdup(from->%s, from->%s_len);\n", field[i], field[i],
		    field[i], field[i]
	if (is_list(i))
		printf "\tto->%s = xcalloc(from->n%s, sizeof(*to->%s));\n" \
		    "\tfor (uint32_t i = 0; i < from->n%s; i++)\n\t\t" \
		    "%s_copy(&to->%s[i], &from->%s[i]);\n", field[i],
		    field[i], field[i], field[i], list_row(i), field[i],
		    field[i]
}
function put_field(i)
{
	if (type[i] == "u64" || type[i] == "u32")
		printf "\tdb_put_uint(c, r->%s);\n", field[i]
	else if (type[i] ~ /^(i64|i32|bool)$/)
		printf "\tdb_put_int(c, r->%s);\n", field[i]
	else if (type[i] == "uuid")
		printf "\tdb_put_blob(c, r->%s.b, sizeof(r->%s.b));\n",
		    field[i], field[i]
	else if (type[i] == "uuid0")
		printf "\tdb_put_blob(c, uuid_is_zero(&r->%s) ? NULL :" \
		    " r->%s.b,\n\t    sizeof(r->%s.b));\n", field[i], field[i],
		    field[i]
	else if (type[i] == "sha256")
		printf "\tdb_put_blob(c, r->%s, sizeof(r->%s));\n", field[i],
		    field[i]
	else if (type[i] == "text")
		printf "\tdb_put_text(c, r->%s);\n", field[i]
	else if (is_pointer(i))
		printf "\tdb_put_blob(c, r->%s, r->%s_len);\n", field[i],
		    field[i]
	else
		printf "\tdb_put_text(c, %s(r->%s));\n",
		    type[i] ~ /_word$/ ? type[i] : type[i] "_word", field[i]
}
function get_field(i)
{
	if (type[i] == "u64")
		printf "\tr->%s = db_get_uint(c);\n", field[i]
	else if (type[i] == "u32")
		printf "\tr->%s = db_get_u32(c);\n", field[i]
	else if (type[i] == "i64")
		printf "\tr->%s = db_get_int(c);\n", field[i]
	else if (type[i] == "i32")
		printf "\tr->%s = (int32_t)db_get_int(c);\n", field[i]
	else if (type[i] == "bool")
		printf "\tr->%s = db_get_int(c) != 0;\n", field[i]
	else if (type[i] == "uuid" || type[i] == "uuid0")
		printf "\tdb_get_bytes(c, r->%s.b, sizeof(r->%s.b));\n",
		    field[i], field[i]
	else if (type[i] == "sha256")
		printf "\tdb_get_bytes(c, r->%s, sizeof(r->%s));\n", field[i],
		    field[i]
	else if (type[i] == "text")
		printf "\tr->%s = db_get_text(c);\n", field[i]
	else if (is_pointer(i))
		printf "\tr->%s = db_get_blob(c, &r->%s_len);\n", field[i],
		    field[i]
	else
		printf "\tword = db_get_word(c);\n" \
		    "\tif (rc == 0 && %s_parse(word, &r->%s) != 0)\n" \
		    "\t\trc = err_set(e, ERR_DB, \"database: \\\"%%s\\\" is" \
		    " no %s of a %s\", word);\n", type[i], field[i],
		    column[i], row
}
function source(    i, words)
{
	printf "\nvoid\nstore_%s_clear(struct store_%s *r)\n{\n", row, row
	for (i = 1; i <= n; i++)
		free_field(i)
	print "\tmemset(r, 0, sizeof(*r));\n}"
	printf "\nvoid\nstore_%s_copy(struct store_%s *to," \
	    " const struct store_%s *from)\n{\n\t*to = *from;\n", row, row, row
	for (i = 1; i <= n; i++)
		copy_field(i)
	print "}"
	printf "\nvoid\nrows_put_%s(struct db_call *c," \
	    " const struct store_%s *r)\n{\n", row, row
	for (i = 1; i <= n; i++)
		if (is_column(i))
			put_field(i)
	print "}"
	source_end()
	for (i = 1; i <= n; i++)
		words += is_word(i)
	printf "\nint\nrows_get_%s(struct db_call *c, struct store_%s *r," \
	    " struct err *e)\n{\n", row, row
	if (words)
		print "\tconst char *word;\n\tint rc = 0;\n"
	print "\tmemset(r, 0, sizeof(*r));"
	for (i = 1; i <= n; i++)
		if (is_column(i))
			get_field(i)
	for (i = 1; i <= n; i++)
		if (when[i] == "apart")
			get_field(i)
	if (words)
		printf "\tif (rc != 0)\n\t\tstore_%s_clear(r);\n" \
		    "\treturn rc;\n}\n", row
	else
		print "\t(void)e;\n\treturn 0;\n}"
}
function source_end(    i, ends)
{
	for (i = 1; i <= n; i++)
		ends += when[i] == "end"
	if (!ends)
		return
	printf "\nvoid\nrows_put_%s_end(struct db_call *c," \
	    " const struct store_%s *r)\n{\n", row, row
	for (i = 1; i <= n; i++)
		if (when[i] == "key")
			put_field(i)
	for (i = 1; i <= n; i++)
		if (when[i] == "end")
			put_field(i)
	print "}"
}
function finish()
{
	if (row == "")
		return
	if (n == 0)
		fail("row " row " has no fields")
	if (form == "header")
		header()
	else if (form == "sql")
		sql()
	else
		source()
}
BEGIN {
	made = "/* generated by schema/gen_rows.sh, do not edit */"
	print made
	if (form == "header") {
		print "#ifndef STORE_ROWS_GEN_H\n#define STORE_ROWS_GEN_H\n"
		print "#include \"common/base.h\"\n#include \"common/uuid.h\""
		print "#include \"common/event_kinds_gen.h\""
		print "#include \"common/words_gen.h\""
	} else if (form == "sql") {
		print "#ifndef STORE_ROWS_SQL_GEN_H"
		print "#define STORE_ROWS_SQL_GEN_H\n"
		print "#include \"supervisor/store/rows_gen.h\"\n"
		print "struct db_call;"
	} else if (form == "source") {
		print "#include \"supervisor/store/rows_sql_gen.h\"\n"
		print "#include \"common/xmalloc.h\""
		print "#include \"supervisor/store/db.h\""
	} else
		fail("unknown form " form)
}
/^#/ || /^$/ {
	next
}
$1 == "row" {
	finish()
	if ($2 !~ /^[a-z]+$/ || $3 !~ /^[0-9]$/)
		fail("want: row NAME BEFORE -- what it is")
	row = $2; before = $3 + 0; about = remark(); n = 0
	next
}
{
	if (row == "" || NF < 3 || $1 !~ /^[a-z][a-z0-9_]*$/ ||
	    $2 !~ /^[a-z][a-z0-9_:]*$/ ||
	    $3 !~ /^(key|begin|end|apart|-)$/)
		fail("want: FIELD TYPE WHEN [COLUMN] -- what it is")
	if ((row, $1) in seen)
		fail($1 " again")
	seen[row, $1] = 1
	n++
	field[n] = $1; type[n] = $2; when[n] = $3; note[n] = remark()
	column[n] = NF > 3 && $4 != "--" ? $4 : $1
}
END {
	if (failed)
		exit 1
	finish()
	if (failed)
		exit 1
	if (form == "header" || form == "sql")
		print "\n#endif"
}
' "$2"
