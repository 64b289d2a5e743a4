#!/usr/bin/env bash
# Provide the programs that tests need and Python does not bring: chromium, which shows the pages,
# and prometheus with promtool, which scrape the metrics.
#
#   tests/debian_tools.sh FOLDER
#
# What is on PATH is used. Otherwise Debian's packages are taken: chromium is installed (root only,
# it needs many libraries), prometheus is unpacked into FOLDER, so that no service of the system
# starts. Tests look for programs in FOLDER/usr/bin and on PATH. Where neither works, this says what
# to install, and the tests that need the program fail and say so, too.
set -euo pipefail
folder=$1
mkdir -p "$folder"
updated=

update() {
  [ -n "$updated" ] || { apt-get update -qq || true; updated=yes; }
}

missing() {
  echo "tests: $1 is missing and could not be installed: install it, e.g. as root: apt-get install $1" >&2
}

if ! command -v chromium > /dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends chromium > "$folder/chromium.log" 2>&1 \
      || { update && apt-get install -y -qq --no-install-recommends chromium > "$folder/chromium.log" 2>&1; } \
      || missing chromium
  else
    missing chromium
  fi
fi

if ! { command -v prometheus && command -v promtool; } > /dev/null && [ ! -x "$folder/usr/bin/promtool" ]; then
  if command -v apt-get > /dev/null; then
    packages=$(mktemp -d)
    trap 'rm -rf "$packages"' EXIT
    download() { (cd "$packages" && apt-get download prometheus > "$folder/prometheus.log" 2>&1); }
    { download || { update && download; }; } \
      && dpkg-deb -x "$packages"/prometheus_*.deb "$folder" \
      || missing prometheus
  else
    missing prometheus
  fi
fi
