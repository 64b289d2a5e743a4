#!/usr/bin/env bash
# Write the hashes of all files of every pinned release, for all platforms: `make pins`.
#
# requirements.txt has the installed versions. To update one, change its version there and run this:
# it rewrites the hashes, and the pins of the benches and the image.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

# Without building any package, for every platform and every Python that pyproject.toml allows.
lock() {
  "$tools/venv/bin/uv" pip compile --quiet --generate-hashes --universal --python-version 3.11 \
    --no-header --no-annotate --only-binary :all: "$@"
}

# The comments at the top of a file, and its lines without hashes.
head_of() { sed -n '/^#/!q;p' "$1"; }
versions_of() { sed -E '/^#/d; /^ *--hash/d; s/ *\\$//' "$1"; }

# write FILE ARGUMENTS...: write the output of `lock ARGUMENTS` below FILE's top comments.
write() {
  local file=$1
  shift
  lock "$@" --output-file "$tools/locked" > /dev/null
  { head_of "$file"; cat "$tools/locked"; } > "$tools/new"
  cp "$tools/new" "$file"
  rm "$tools/locked"
}

versions_of requirements.txt > "$tools/versions.txt"
write requirements.txt --no-deps "$tools/versions.txt"

sed -nE 's/^((cqlsh|gevent)==[^ ]+).*/\1/p' bench/requirements.txt > "$tools/bench.txt"
write bench/requirements.txt --constraint "$tools/versions.txt" "$tools/bench.txt"

printf '%s\n' build cyclonedx-bom 'setuptools>=77' twine > "$tools/release.txt"
write release/requirements.txt "$tools/release.txt"

# The image builds ringhaul without isolation, so its build needs setuptools.
echo setuptools > "$tools/build.txt"
write deploy/requirements/core.txt --constraint "$tools/versions.txt" pyproject.toml "$tools/build.txt"
for extra in s3 gcs; do
  write "deploy/requirements/$extra.txt" --constraint "$tools/versions.txt" --extra "$extra" \
    pyproject.toml "$tools/build.txt"
done
