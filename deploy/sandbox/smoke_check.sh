#!/bin/sh
# Checks a sprite: the program and its version, exec, an attach to a running process, and the health of the service if it runs:
# ./smoke_check.sh
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$here/sprites_api.sh"

api GET '' >/dev/null
version=$(in_sprite "$service_root/sandboxd" --version) || fail 'sandboxd does not run in the sprite: run deploy_workspace_service.sh'
expected=$(sed -n "s/^export const SOFTWARE_VERSION = '\(.*\)'.*/sandboxd \1/p" "$here"/../../packages/protocol/src/*.ts)
[ "$version" = "$expected" ] || fail "sandboxd in the sprite is \"$version\", expected \"$expected\": run deploy_workspace_service.sh"
echo "version    $version"

answer=$(in_sprite "$service_root/profiles/shell" -c 'pwd') || fail 'Cannot run a command in the sprite: run configure_exec_profiles.sh'
[ "$answer" = "$workspace_root" ] || fail "Commands start in \"$answer\", expected \"$workspace_root\""
echo "exec       $answer"

bun=$here/../../node_modules/.bin/bun
[ -x "$bun" ] || fail 'The attach check needs Bun: run npm ci in this repository'
attached=$(SPRITES_API_TOKEN=$token "$bun" "$here/exec_attach.ts" "$base" "$sprite" "$service_root/profiles/shell" "$workspace_root" 2>&1) ||
  fail "Cannot attach to a process of the sprite: $attached"
echo "attach     $attached"

# Not needed by anything but /ws/claude-stream, which otherwise answers agent_not_configured.
claude=$(in_sprite env HOME=/home/sprite "PATH=$sprite_path" "$service_root/profiles/claude" --version 2>/dev/null) || claude='not installed'
echo "claude     $claude"

case $(api GET /services) in
  *"\"name\":\"$service\""*)
    health=$(in_sprite curl -fsS -H 'Host: localhost' "http://127.0.0.1:$port/healthz") ||
      fail 'The service does not respond: run restart_workspace_service.sh'
    echo "health     $health"
    ;;
  *) echo "health     the service is not defined; it starts with the sandbox" ;;
esac
