# MCP_CFLAGS_PROBE(VARIABLE, FLAGS) - set VARIABLE to those FLAGS that the
# compiler takes without a word.  Clang only warns about a flag it does not
# know, hence -Werror while asking.
AC_DEFUN([MCP_CFLAGS_PROBE], [
	$1=
	for mcp_flag in m4_normalize([$2]); do
		AC_MSG_CHECKING([whether $CC takes $mcp_flag])
		mcp_saved_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -Werror $mcp_flag"
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int probe; int
		    main(void) { return probe; }]])],
		    [AC_MSG_RESULT([yes])
		     $1="$$1 $mcp_flag"],
		    [AC_MSG_RESULT([no])])
		CFLAGS=$mcp_saved_CFLAGS
	done
])

# MCP_LDFLAGS_PROBE(VARIABLE, FLAGS) - the same for flags of the link
AC_DEFUN([MCP_LDFLAGS_PROBE], [
	$1=
	for mcp_flag in m4_normalize([$2]); do
		AC_MSG_CHECKING([whether $CC links with $mcp_flag])
		mcp_saved_CFLAGS=$CFLAGS
		mcp_saved_LDFLAGS=$LDFLAGS
		CFLAGS="$CFLAGS -Werror $PIE_CFLAGS"
		LDFLAGS="$LDFLAGS $mcp_flag"
		AC_LINK_IFELSE([AC_LANG_SOURCE([[int probe; int
		    main(void) { return probe; }]])],
		    [AC_MSG_RESULT([yes])
		     $1="$$1 $mcp_flag"],
		    [AC_MSG_RESULT([no])])
		CFLAGS=$mcp_saved_CFLAGS
		LDFLAGS=$mcp_saved_LDFLAGS
	done
])
