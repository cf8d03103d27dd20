#!/bin/sh
# Restarts sandboxd in a sprite, for instance after it was replaced: ./restart_workspace_service.sh
# Sandwire defines the service when the sandbox starts; until then there is nothing to restart.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
. "$here/sprites_api.sh"

case $(api GET /services) in
  *"\"name\":\"$service\""*) ;;
  *)
    echo "the service is not defined; it starts with the sandbox"
    exit 0
    ;;
esac
api POST "/services/$service/restart?duration=1s" >/dev/null
echo "the service was restarted"
