#!/bin/sh
# Create the passwords once, and give the volumes to the user of the services.
#
#   init-volumes.sh VALKEY_CONF SECRETS_DIR REDIS_DIR PROMETHEUS_DIR GRAFANA_DIR
#
# Writes SECRETS_DIR/redis_password, SECRETS_DIR/valkey.conf and GRAFANA_DIR/admin_password, readable
# by OWNER only (10001:10001 unless set in the environment). An existing password stays. It is never
# an argument of a program, which other users could see.
set -eu
umask 077

conf=$1
secrets=$2
shift 2
grafana=$3

for password in "$secrets/redis_password" "$grafana/admin_password"; do
  if [ ! -s "$password" ]; then
    od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' > "$password.new"
    mv "$password.new" "$password"
  fi
done

{
  cat "$conf"
  printf '\nrequirepass %s\n' "$(cat "$secrets/redis_password")"
} > "$secrets/valkey.conf.new"
mv "$secrets/valkey.conf.new" "$secrets/valkey.conf"

chown -R "${OWNER:-10001:10001}" "$secrets" "$@"
