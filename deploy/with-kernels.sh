#!/bin/sh
# Run a program with the kernels that were compiled with the image.
#
#   with-kernels.sh PROGRAM ARGUMENT...
#
# numba ignores a cache folder that it cannot write to, even if all its kernels are there. So each
# container copies `kernels` beside this script (0.8 MB) to NUMBA_CACHE_DIR once. On another kind of
# CPU than the build's, numba adds kernels there. If the folder cannot be written, the program still
# starts, and compiles the kernels itself.

kernels=$(dirname "$0")/kernels
cache=$NUMBA_CACHE_DIR
if [ -n "$cache" ] && [ -d "$kernels" ] && [ ! -e "$cache" ]; then
  # Rename it when it is complete, after removing the remains of a container killed in between.
  rm -rf "$cache.new"
  mkdir -p "$cache.new" && cp -R "$kernels/." "$cache.new" && mv "$cache.new" "$cache" \
    || rm -rf "$cache.new"
fi
exec "$@"
