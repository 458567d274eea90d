#!/bin/sh
# The binary of the shim that misbehaves; who installs it fills in the names in braces.
while [ $# -gt 1 ]; do
  [ "$1" = -id ] && id=$2
  shift
done
case "$1" in
  -v)
    printf 'fake:\n  Version:  2.0.0\n'
    ;;
  start)
    socket={dir}/$(printf %.12s "$id").sock
    setsid {node} {script} {dir} -id "$id" < /dev/null > /dev/null 2>&1 &
    while [ ! -e "$socket.ready" ]; do sleep 0.01; done
    printf '{"version":3,"address":"unix://%s","protocol":"ttrpc"}' "$socket"
    ;;
  delete)
    echo "$id" >> {dir}/deleted
    ;;
esac
