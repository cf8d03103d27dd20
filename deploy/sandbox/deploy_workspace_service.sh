#!/bin/sh
# Installs sandboxd in a sprite: ./deploy_workspace_service.sh [FILE]. FILE is a compiled sandboxd, with rg beside it; without it, both are built.
# Running it again changes nothing if the same program is installed.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$here/sprites_api.sh"

program=${1:-}
case $program in '' | */*) ;; *) program=./$program ;; esac
if [ -z "$program" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  (cd "$here/../.." && node scripts/bootstrap.mjs && node_modules/.bin/bun scripts/build.ts "$folder") >&2 ||
    fail 'Cannot build sandboxd'
  program=$folder/sandboxd
fi
[ -f "$program" ] || fail "No such file: $program"

in_sprite sh -c "case \"\$(readlink -m $service_root)/\" in \"\$(readlink -m $workspace_root)\"/*) exit 1 ;; esac" >/dev/null ||
  fail "The service folder $service_root is inside the workspace $workspace_root: remove the link in the sprite"
in_sprite mkdir -p "$workspace_root" "$service_root" >/dev/null || fail 'Cannot create the folders in the sprite'

# install_file FILE NAME: copies a program to the service folder unless the same one is there.
install_file() {
  target=$service_root/$2
  hash=$(sha256sum "$1" | cut -d ' ' -f 1)
  installed=$(in_sprite sh -c "sha256sum $target 2>/dev/null | cut -d ' ' -f 1; exit 0")
  if [ "$installed" = "$hash" ]; then
    echo "$2 is up to date"
    return
  fi
  api PUT "/fs/write?path=$target.new&mode=0755&mkdirParents=true" --data-binary "@$1" \
    -H 'content-type: application/octet-stream' >/dev/null
  in_sprite sh -c "echo '$hash  $target.new' | sha256sum -c --quiet && mv $target.new $target" >/dev/null ||
    fail "The uploaded $2 is damaged"
  echo "$2 was installed"
}
install_file "$program" sandboxd
# sandboxd searches in files with the ripgrep beside it; without one, with that of the sprite.
[ ! -f "${program%/*}/rg" ] || install_file "${program%/*}/rg" rg
SPRITES_API_TOKEN=$token SPRITES_API_TOKEN_FILE= "$here/configure_exec_profiles.sh"
