#!/bin/sh
# Installs sandboxd in a sprite: ./deploy_workspace_service.sh [FILE]. FILE is a compiled sandboxd; without it, it is built.
# Running it again changes nothing if the same program is installed.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$here/sprites_api.sh"

program=${1:-}
if [ -z "$program" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  (cd "$here/../.." && node scripts/bootstrap.mjs && node_modules/.bin/bun scripts/build.ts "$folder") >&2 ||
    fail 'Cannot build sandboxd'
  program=$folder/sandboxd
fi
[ -f "$program" ] || fail "No such file: $program"

hash=$(sha256sum "$program" | cut -d ' ' -f 1)
installed=$(in_sprite sh -c "sha256sum $service_root/sandboxd 2>/dev/null | cut -d ' ' -f 1; exit 0")
in_sprite sh -c "case \"\$(readlink -m $service_root)/\" in \"\$(readlink -m $workspace_root)\"/*) exit 1 ;; esac" >/dev/null ||
  fail "The service folder $service_root is inside the workspace $workspace_root: remove the link in the sprite"
in_sprite mkdir -p "$workspace_root" "$service_root" >/dev/null || fail 'Cannot create the folders in the sprite'
if [ "$installed" = "$hash" ]; then
  echo "sandboxd is up to date"
else
  api PUT "/fs/write?path=$service_root/sandboxd.new&mode=0755&mkdirParents=true" --data-binary "@$program" \
    -H 'content-type: application/octet-stream' >/dev/null
  in_sprite sh -c "echo '$hash  $service_root/sandboxd.new' | sha256sum -c --quiet && mv $service_root/sandboxd.new $service_root/sandboxd" >/dev/null ||
    fail 'The uploaded sandboxd is damaged'
  echo "sandboxd was installed"
fi
SPRITES_API_TOKEN=$token SPRITES_API_TOKEN_FILE= "$here/configure_exec_profiles.sh"
