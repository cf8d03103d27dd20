/** Name of the service that runs sandboxd in a sprite. */
export const SERVICE = 'sandwire'
/** The user's files; the only folder that is served. */
export const WORKSPACE = '/home/sprite/workspace'
/** Program and state of sandboxd. */
const SERVICE_ROOT = '/srv/workspace-api'
export const PROGRAM = `${SERVICE_ROOT}/sandboxd`
export const START_SCRIPT = `${SERVICE_ROOT}/start.sh`

/** Command search path in a sprite; the API replaces its own environment when one is given. */
export const SPRITE_PATH =
  '/home/sprite/.local/bin:/.sprite/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Starts the shell of terminals; operators may replace it by one of their own. */
export const SHELL_PROFILE = `${SERVICE_ROOT}/profiles/shell`
export const SHELL_PROFILE_TEXT = `#!/bin/sh
cd '${WORKSPACE}' || exit 1
exec bash -l "$@"
`

/** Starts Claude Code for `/ws/claude-stream`. As deploy/sandbox/configure_exec_profiles.sh writes it. */
export const CLAUDE_PROFILE = `${SERVICE_ROOT}/profiles/claude`
/** Environment of Claude Code that the sprite's owner wrote, such as a key; outside the workspace. Nothing of the server is in it. */
export const CLAUDE_ENV = '/home/sprite/.auth/claude.env'
export const CLAUDE_PROFILE_TEXT = `#!/bin/sh
cd '${WORKSPACE}' || exit 1
if [ -r ${CLAUDE_ENV} ]; then
  set -a
  . ${CLAUDE_ENV}
  set +a
fi
exec claude "$@"
`

/** Starts sandboxd as a service of a sprite; the environment is that of `startupEnv`, with the port. */
export const START_SCRIPT_TEXT = `#!/bin/sh
# Starts sandboxd as a service of a sprite. Written by Sandwire at every start of the sandbox.
set -eu
root=${SERVICE_ROOT}
workspace=${WORKSPACE}
run=$root/run
mkdir -p "$workspace"
umask 077
mkdir -p "$run" "$root/state"
case "$(readlink -f "$root")/" in "$(readlink -f "$workspace")/"*)
  echo "start.sh: the service is inside the workspace" >&2
  exit 64 ;;
esac
printf '%s\\n' "$SANDWIRE_PUBLIC_KEY" >"$run/public-key"
set -- --listen "127.0.0.1:$SANDWIRE_PORT" --host localhost --workspace "$workspace" --state "$root/state" \\
  --stop-seconds 8 --public-key "$run/public-key" --sandbox "$SANDWIRE_SANDBOX"
if [ -n "\${SANDWIRE_ENV:-}" ]; then
  printf '%s' "$SANDWIRE_ENV" >"$run/env.json"
  index=1
  while eval "part=\\\${SANDWIRE_ENV_$index:-}" && [ -n "$part" ]; do
    printf '%s' "$part" >>"$run/env.json"
    index=$((index + 1))
  done
  set -- "$@" --env-file "$run/env.json"
fi
[ -z "\${SANDWIRE_MAX_SESSIONS:-}" ] || set -- "$@" --max-sessions "$SANDWIRE_MAX_SESSIONS"
[ -z "\${SANDWIRE_OUTPUT_BYTES_PER_SECOND:-}" ] ||
  set -- "$@" --output-bytes-per-second "$SANDWIRE_OUTPUT_BYTES_PER_SECOND"
# As root, sandboxd runs the user's processes as the user, who then cannot change its files.
if [ "$(id -u)" = 0 ] && id sprite >/dev/null 2>&1; then
  chown sprite: "$workspace"
  set -- "$@" --run-as "$(id -u sprite):$(id -g sprite)"
fi
exec env -i HOME=/home/sprite SHELL=/bin/bash LANG="\${LANG:-C.UTF-8}" \\
  PATH=${SPRITE_PATH} \\
  "$root/sandboxd" "$@"
`

/** Downloads sandboxd and checks it; the arguments are the URL and the hash. */
export const INSTALL_COMMAND = `set -eu
mkdir -p ${SERVICE_ROOT}
cd ${SERVICE_ROOT}
curl -fsSL --proto =https,http -o sandboxd.new "$1"
printf '%s  sandboxd.new\\n' "$2" | sha256sum -c --quiet
chmod 755 sandboxd.new
mv sandboxd.new sandboxd`
