# Functions for the Sprites API; sourced by the scripts of this folder. The token is on no command line.
# Environment: SPRITES_SPRITE_NAME, SPRITES_API_TOKEN or SPRITES_API_TOKEN_FILE, SPRITES_BASE_URL,
# SPRITES_WORKSPACE_SERVICE_PORT.

fail() {
  echo "${0##*/}: $1" >&2
  exit 1
}

base=${SPRITES_BASE_URL:-https://api.sprites.dev}
sprite=${SPRITES_SPRITE_NAME:-}
port=${SPRITES_WORKSPACE_SERVICE_PORT:-8080}
# As in apps/control/src/providers/sprites/layout.ts.
workspace_root=/home/sprite/workspace
service_root=/srv/workspace-api
sprite_path=/home/sprite/.local/bin:/.sprite/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
claude_env=/home/sprite/.auth/claude.env
service=sandwire

[ -n "$sprite" ] || fail 'SPRITES_SPRITE_NAME is not set: give the name of the sprite'
if [ -n "${SPRITES_API_TOKEN_FILE:-}" ]; then
  SPRITES_API_TOKEN=$(cat "$SPRITES_API_TOKEN_FILE")
fi
[ -n "${SPRITES_API_TOKEN:-}" ] || fail 'SPRITES_API_TOKEN is not set: give the token, or a file with it in SPRITES_API_TOKEN_FILE'
# Programs that the scripts start do not need it.
token=$SPRITES_API_TOKEN
unset SPRITES_API_TOKEN

# api METHOD PATH [curl options]: prints the body; fails with the status.
api() {
  method=$1
  path=$2
  shift 2
  body=$(mktemp)
  status=$(curl -sS --max-time 300 -o "$body" -w '%{http_code}' -X "$method" -K /dev/fd/3 "$@" \
    "$base/v1/sprites/$sprite$path" 3<<EOF
header = "Authorization: Bearer $token"
EOF
  ) || status=000
  case $status in
    2*) cat "$body" && rm -f "$body" ;;
    000) rm -f "$body" && fail "Cannot reach $base: check SPRITES_BASE_URL and the network" ;;
    401 | 403) rm -f "$body" && fail 'The API rejects the token: set SPRITES_API_TOKEN to a valid one' ;;
    *) rm -f "$body" && fail "The API answers $method $path with status $status" ;;
  esac
}

# in_sprite ARGUMENT…: runs a command in the sprite; prints its output, and fails with it. The last two bytes of the response are
# the frame with the exit code, and the first byte of a frame names its stream.
in_sprite() {
  query=
  for argument in "$@"; do
    query="$query&cmd=$(printf '%s' "$argument" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g')"
  done
  output=$(mktemp)
  api POST "/exec?${query#&}" >"$output" || exit 1
  code=$(tail -c 1 "$output" | od -An -tu1 | tr -d ' ')
  head -c -2 "$output" | tr -d '\001\002'
  rm -f "$output"
  [ "$code" = 0 ]
}
