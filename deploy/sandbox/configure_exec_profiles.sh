#!/bin/sh
# Writes the commands that may be started in a sprite by name, one script each: ./configure_exec_profiles.sh
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$here/sprites_api.sh"

# write_profile NAME COMMAND [LINES]: the lines come before the command.
write_profile() {
  api PUT "/fs/write?path=$service_root/profiles/$1&mode=0755&mkdirParents=true" --data-binary "#!/bin/sh
cd '$workspace_root' || exit 1
${3:-}exec $2 \"\$@\"
" -H 'content-type: application/octet-stream' >/dev/null
}

write_profile shell 'bash -l'
# A key of the sprite's owner, if there is no login, is in a file that the owner wrote.
write_profile claude claude "if [ -r $claude_env ]; then
  set -a
  . $claude_env
  set +a
fi
"
echo "exec profiles: shell, claude"
