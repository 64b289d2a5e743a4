#!/usr/bin/env bash
# Check that every pin has a wheel on each Python and platform that ringhaul supports, and that no
# pin is missing there: `deploy/wheels.sh`. A dry run of pip's rules (hashes, markers) by uv: it can
# judge a platform that it does not run on. Downloads metadata only, and installs nothing.
#
# Prints a line for each; ends with 1 if one fails that should not.
set -euo pipefail
cd "$(dirname "$0")/.."

pythons=(3.11 3.12 3.13 3.14)
# Wheels for glibc 2.28 and later: Debian 10, RHEL 8.
platforms=(x86_64-manylinux_2_28 aarch64-manylinux_2_28 x86_64-apple-darwin aarch64-apple-darwin)
files=(requirements.txt deploy/requirements/core.txt deploy/requirements/s3.txt deploy/requirements/gcs.txt)
# numba ended its wheels for macOS on Intel with 0.62, which knows Python up to 3.13.
unsupported=("3.14 x86_64-apple-darwin")

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

failed=0
for python in "${pythons[@]}"; do
  for platform in "${platforms[@]}"; do
    known=no
    for one in "${unsupported[@]}"; do
      [ "$one" = "$python $platform" ] && known=yes
    done
    for file in "${files[@]}"; do
      if "$tools/venv/bin/uv" pip install --dry-run --require-hashes --only-binary :all: \
        --python-version "$python" --python-platform "$platform" --target "$tools/target" \
        --requirement "$file" 2> "$tools/said"; then
        result=$(sed -nE 's/^Would install ([0-9]+) packages?$/\1 wheels/p' "$tools/said")
      elif [ "$known" = yes ]; then
        result="not supported"
      else
        result="FAILED: $(grep -E 'error|cause' "$tools/said" | tr '\n' ' ')"
        failed=1
      fi
      printf '%-5s %-24s %-30s %s\n' "$python" "$platform" "$file" "$result"
    done
  done
done
exit "$failed"
