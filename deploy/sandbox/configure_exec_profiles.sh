#!/bin/sh
# Writes the commands that may be started in a sprite by name, one script each: ./configure_exec_profiles.sh
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$here/sprites_api.sh"

write_profile() {
  api PUT "/fs/write?path=$service_root/profiles/$1&mode=0755&mkdirParents=true" --data-binary "#!/bin/sh
cd '$workspace_root' || exit 1
exec $2 \"\$@\"
" -H 'content-type: application/octet-stream' >/dev/null
}

write_profile shell 'bash -l'
write_profile claude 'claude'
echo "exec profiles: shell, claude"
