#!/usr/bin/env bash
# Load yesterday's orders. In a crontab, at half past two every night:
#
#   30 2 * * * /opt/etl/nightly.sh
#
# With --job-id the script may run again after any failure: the day has one job, which a second run
# continues, or reports if it is done.
set -euo pipefail

folder=${ETL_FOLDER:-/data/orders}
table=${ETL_TABLE:-shop.orders}
ringhaul=${ETL_COMMAND:-ringhaul}
day=${1:-$(date --date yesterday +%F)}
job=orders-$day

# Two runs at the same time would only show the same job twice: let the second one leave.
exec 9> "${TMPDIR:-/tmp}/$job.lock"
flock --nonblock 9 || { echo "$job is already running" >&2; exit 0; }

code=0
"$ringhaul" load "$folder/$day.csv" --table "$table" --job-id "$job" --max-errors 1% \
  --progress plain --summary "$folder/$job.json" || code=$?

case $code in
  0) ;;
  # Some records were rejected. They can be corrected and loaded with the same options.
  1) "$ringhaul" errors "$job" --export "$folder/$job-rejects.csv" ;;
  # Nothing else is worth a retry by this script: cron sends what was printed.
  *) echo "$job: exit code $code" >&2 ;;
esac
exit "$code"
