#!/bin/sh
# First process of a sandbox's container: executes sandboxd, which keeps only the capabilities to act as the user.
set -eu

fail() {
  echo "startup: $1" >&2
  exit 64
}

[ -n "${SANDWIRE_SANDBOX:-}" ] || fail 'SANDWIRE_SANDBOX is not set: give the id of the sandbox'
[ -n "${SANDWIRE_PUBLIC_KEY:-}" ] || fail "SANDWIRE_PUBLIC_KEY is not set: give control's public key"

run=/run/sandwire
umask 077
printf '%s\n' "$SANDWIRE_PUBLIC_KEY" >"$run/public-key"
# Control sends the same Host header as on a unix socket. Processes end before the 10 s of "docker stop" are over.
set -- --listen "0.0.0.0:${SANDWIRE_PORT:-8080}" --host localhost --workspace /workspace --save-home /home/user --state /var/lib/sandwire \
  --stop-seconds "${SANDWIRE_STOP_SECONDS:-8}" --last-save-seconds "${SANDWIRE_LAST_SAVE_SECONDS:-0}" \
  --public-key "$run/public-key" --sandbox "$SANDWIRE_SANDBOX" --run-as 1000:1000
if [ -n "${SANDWIRE_ENV:-}" ]; then
  printf '%s' "$SANDWIRE_ENV" >"$run/env.json"
  # A value too long for one variable continues in SANDWIRE_ENV_1 and so on.
  index=1
  while eval "part=\${SANDWIRE_ENV_$index:-}" && [ -n "$part" ]; do
    printf '%s' "$part" >>"$run/env.json"
    index=$((index + 1))
  done
  set -- "$@" --env-file "$run/env.json"
fi
[ -z "${SANDWIRE_MAX_SESSIONS:-}" ] || set -- "$@" --max-sessions "$SANDWIRE_MAX_SESSIONS"
[ -z "${SANDWIRE_OUTPUT_BYTES_PER_SECOND:-}" ] ||
  set -- "$@" --output-bytes-per-second "$SANDWIRE_OUTPUT_BYTES_PER_SECOND"
chown -R sandboxd:sandboxd "$run"
# That of processes, and so the same as in other sandboxes.
umask 022

# When control proxies web requests, it uses certificates of this authority, which is unique to this container.
authority=/etc/cloudflare/certs/cloudflare-containers-ca.crt
[ ! -f "$authority" ] || cat "$authority" >>/etc/ssl/certs/ca-certificates.crt

# Linux 6.16 drops capabilities at exec when the effective group is not in the process's group list, hence --groups.
caps=+setuid,+setgid,+setpcap,+kill
exec env -i HOME=/home/user USER=user LOGNAME=user SHELL=/bin/bash LANG="${LANG:-C.UTF-8}" \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin MIMALLOC_PURGE_DELAY=50 \
  setpriv --reuid=900 --regid=900 --groups=900 --inh-caps="$caps" --ambient-caps="$caps" \
  /usr/local/bin/sandboxd "$@"
