#!/bin/sh
# Makes the broker's password, once, and gives the volumes to the user the services run as.
#
#   init-volumes.sh VALKEY_CONF SECRETS_DIR DATA_DIR [OWNER]
#
# Writes SECRETS_DIR/redis_password and SECRETS_DIR/valkey.conf, readable by OWNER alone. A password
# that is there already stays. It is never an argument of a program, which others could see.
set -eu
umask 077

conf=$1
secrets=$2
data=$3
owner=${4:-10001:10001}

if [ ! -s "$secrets/redis_password" ]; then
  od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' > "$secrets/redis_password.new"
  mv "$secrets/redis_password.new" "$secrets/redis_password"
fi

{
  cat "$conf"
  printf '\nrequirepass %s\n' "$(cat "$secrets/redis_password")"
} > "$secrets/valkey.conf.new"
mv "$secrets/valkey.conf.new" "$secrets/valkey.conf"

chown -R "$owner" "$secrets" "$data"
