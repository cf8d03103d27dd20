#!/bin/sh
# Answers what wrangler asks Docker when it builds and pushes an image, and writes down what that was.
echo "$*" >>"$STAND_IN_DOCKER_LOG"
digest=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
case "$*" in
  build\ * | login\ *) cat >/dev/null ;;
  *Layers*) echo '1000 3' ;;
  image\ inspect\ registry.*) echo "[\"${3%:*}@$digest\"]" ;;
  image\ inspect\ *) echo '[]' ;;
  manifest\ inspect\ *) echo "{\"Descriptor\":{\"digest\":\"$digest\"}}" ;;
esac
