#!/bin/sh
# embed.sh NAME FILE... - print a C table of these files (common/embed.h)
set -eu
name=$1
shift
echo '#include "common/embed.h"'
n=0
for f in "$@"; do
	n=$((n + 1))
	printf 'static const char file_%d[] = {\n' "$n"
	od -An -v -tu1 "$f" | sed 's/  *\([0-9][0-9]*\)/(char)\1,/g'
	echo '0};'
done
printf 'const struct embed_file %s[] = {\n' "$name"
n=0
for f in "$@"; do
	n=$((n + 1))
	printf '{"%s", file_%d, sizeof(file_%d) - 1},\n' "${f##*/}" "$n" "$n"
done
echo '{NULL, NULL, 0}};'
