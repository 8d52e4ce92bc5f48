#!/bin/sh
# Put the documentation of a version (site/, from `make docs`) onto the branch gh-pages:
#
#   publish_docs.sh REMOTE VERSION
#
# Each version has a folder of its own, and `latest` is a copy of the newest that is no candidate.
set -eu
cd "$(dirname "$0")/.."
remote=$1 version=$2

pages=$(mktemp -d "${TMPDIR:-/tmp}/napari-panoptic-pages.XXXXXX")
trap 'rm -rf "$pages"' EXIT
git clone --quiet --depth 1 --branch gh-pages "$remote" "$pages" || {
    git init --quiet --initial-branch gh-pages "$pages"
    git -C "$pages" remote add origin "$remote"
}
rm -rf "${pages:?}/$version" "$pages/latest"
cp -R site "$pages/$version"
newest=$(cd "$pages" && printf '%s\n' [0-9]* | grep -v '[a-z]' | sort -V | tail -n 1)
cp -R "$pages/${newest:-$version}" "$pages/latest"
touch "$pages/.nojekyll"
echo '<meta http-equiv="refresh" content="0; url=latest/">' >"$pages/index.html"
git -C "$pages" add --all
git -C "$pages" -c user.name=release -c user.email=release@localhost \
    commit --quiet --allow-empty --message "Documentation of $version"
git -C "$pages" push --quiet origin gh-pages
