#!/bin/sh
# Runs a program with the kernels that were compiled when the image was built.
#
#   with-kernels.sh PROGRAM ARGUMENT...
#
# numba passes over a folder that it cannot write to, even if all it wants is there. So what is in
# `kernels` beside this script is copied, 0.8 MB, to where NUMBA_CACHE_DIR says, once for a container.
# On another kind of CPU than that of the build numba adds its own there. Where nothing can be written
# the program starts all the same, and compiles for itself.

kernels=$(dirname "$0")/kernels
kept=$NUMBA_CACHE_DIR
if [ -n "$kept" ] && [ -d "$kernels" ] && [ ! -e "$kept" ]; then
  # Renamed when it is whole. What is left of a container that was killed meanwhile goes first.
  rm -rf "$kept.new"
  mkdir -p "$kept.new" && cp -R "$kernels/." "$kept.new" && mv "$kept.new" "$kept" \
    || rm -rf "$kept.new"
fi
exec "$@"
