#!/bin/sh
# words.sh - no file names a registry, a mirror, a developer's own directory,
# or work left undone
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

# Written apart so that this file does not find itself.
hosts='deb\.deb''ian\.org|registry\.npm''js|pypi''\.org|snapshot\.deb''ian'
hosts="$hosts|security\\.deb''ian\\.org|docker\\.i""o/"
paths='(^|[^A-Za-z0-9_.])/(wo''rk/main|wo''rk/shared|fa''rm/|tmp/b''ld)'
undone='(^|[^A-Za-z_])(TO''DO|FIX''ME|XX''X)([^A-Za-z_]|$)'

files . | grep -v -E -e '(^LICENSE|package-lock\.json)$' -e '/corpus/' |
    xargs -r grep -n -I -E "$hosts|$paths|$undone" |
    cut -c1-160 |
    verdict 'read mirrors and paths from the machine; finish what is undone'
