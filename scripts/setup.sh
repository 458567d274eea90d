#!/bin/sh
# Installs what is missing and nothing else: the npm dependencies of this clone, and the Debian packages whose programs
# scribe, its tests or the CRI tools need. Runs before node_modules exists, so it is plain POSIX sh and needs no Node
# of ours. Doing it again installs nothing.
#
#   sh scripts/setup.sh run        npm dependencies, and what running pods needs
#   sh scripts/setup.sh test       the same, and what the tests need, crictl and critest among it where Go is at hand
#   sh scripts/setup.sh cri-tools  as run, and builds crictl and critest into the cache directory, or fails
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/scribe/bin
cri_tools_version=v1.36.0
log=
job=

say() { echo "setup: $*" >&2; }
fail() {
  echo "setup: $1" >&2
  [ $# -lt 2 ] || echo "       $2" >&2
  exit 1
}
cleanup() {
  # Background jobs of a script ignore the interrupt key.
  [ -z "$job" ] || kill "$job" 2>/dev/null || :
  [ -z "$log" ] || rm -f "$log"
  [ -z "${policy:-}" ] || rm -f "$policy"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

has() { command -v "$1" >/dev/null 2>&1; }

# Runs a long command with its output in a file: shown whole when it fails, a beat every few seconds meanwhile.
quietly() {
  what=$1
  shift
  log=$(mktemp)
  say "$what ..."
  started=$(date +%s)
  "$@" >"$log" 2>&1 &
  job=$!
  while kill -0 "$job" 2>/dev/null; do
    sleep 1
    now=$(($(date +%s) - started))
    [ "$now" -eq 0 ] || [ $((now % 15)) -ne 0 ] || say "$what ... ${now} s"
  done
  if wait "$job"; then status=0; else status=1; fi
  job=
  [ "$status" -eq 0 ] || cat "$log" >&2
  rm -f "$log"
  log=
  return "$status"
}

npm_dependencies() {
  installed=$top/node_modules/.package-lock.json
  [ ! -e "$installed" ] || [ "$top/package-lock.json" -nt "$installed" ] || return 0
  has npm || fail "npm is not installed." "Install Node.js with npm (apt-get install nodejs npm, or from nodejs.org)."
  quietly "installing npm dependencies" npm ci --ignore-scripts --no-audit --no-fund ||
    fail "npm ci failed (its output is above)." "Is the package registry reachable? Then run 'npm ci --ignore-scripts' in $top."
  # npm keeps the time stamps of an unchanged tree, so the comparison above needs a fresh one.
  touch "$installed"
}

# The Node that npm installed loads the program once, so that the first real start finds its compiled code.
warm_up() {
  [ -e "$top/src/cli/main.ts" ] || return 0
  [ ! -d "$top/node_modules/.cache/scribe" ] || return 0
  "$top/bin/scribe" --help >/dev/null 2>&1 || :
}

# What a program or file is for, where it may be, and the Debian package that has it.
missing=
missing_programs=
need() {
  package=$1
  shift
  for candidate in "$@"; do
    case $candidate in
      /*) [ ! -e "$candidate" ] || return 0 ;;
      *) PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin command -v "$candidate" >/dev/null 2>&1 && return 0 ;;
    esac
  done
  missing="$missing $package"
  missing_programs="$missing_programs $1"
}

need_for_run() {
  need runc runc
  # Debian's containerd package is there for its shim alone; the daemon in it is not started.
  need containerd containerd-shim-runc-v2
  need containernetworking-plugins /opt/cni/bin/bridge /usr/lib/cni/bridge
  need busybox-static busybox
  need iproute2 ip
  need iptables iptables
  need util-linux nsenter
}

need_for_test() {
  need docker-registry docker-registry
  need nginx-light nginx
}

debian_packages() {
  [ -n "$missing" ] || return 0
  if ! has apt-get; then
    fail "these programs are missing:$missing_programs" \
      "This is not a Debian system: install them with its package manager (Debian calls the packages:$missing)."
  fi
  [ "$(id -u)" -eq 0 ] || fail "missing Debian packages:$missing" "Run this as root, or: sudo apt-get install --no-install-recommends$missing"
  # Packages with daemons would start them; all that is wanted is their programs.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  # shellcheck disable=SC2086 # a list of package names
  if ! apt-get install --simulate --no-install-recommends $missing >/dev/null 2>&1; then
    quietly "updating the package lists" apt-get update ||
      fail "apt-get update failed (its output is above)." "Is the network there, and a Debian mirror in /etc/apt?"
  fi
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive quietly "installing$missing" apt-get install -y --no-install-recommends $missing ||
    fail "apt-get install failed (its output is above)." "Mend that, or install by hand:$missing"
  if [ -n "${policy:-}" ]; then
    rm -f "$policy"
    policy=
  fi
  missing=
  missing_programs=
}

# Go before 1.21 can not fetch the newer compiler that the tools ask for.
usable_go() {
  has go || return 1
  minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  [ "${minor:-0}" -ge 21 ]
}

has_cri_tools() {
  [ -x "$cache/crictl" ] && [ -x "$cache/critest" ] && [ "$(cat "$cache/cri-tools.version")" = "$cri_tools_version" ]
}

cri_tools() {
  ! has_cri_tools || return 0
  if ! usable_go && has apt-get; then
    need golang-go golang-go
    debian_packages
  fi
  usable_go || fail "building crictl and critest needs Go 1.21 or later, and there is $(go version 2>/dev/null || echo none)." \
    "Install Go from go.dev/dl or your distribution's backports, and run: sh scripts/setup.sh cri-tools"
  mkdir -p "$cache"
  build=$(mktemp -d)
  quietly "fetching the source of cri-tools $cri_tools_version" \
    sh -c "cd '$build' && go mod download -json sigs.k8s.io/cri-tools@$cri_tools_version >module.json" ||
    fail "the Go module proxy did not deliver cri-tools $cri_tools_version (output above)." "Is it reachable (go env GOPROXY)?"
  source=$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p' "$build/module.json")
  cp -r "$source" "$build/cri-tools"
  chmod -R u+w "$build"
  quietly "building crictl $cri_tools_version" \
    sh -c "cd '$build/cri-tools' && go build -ldflags '-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=$cri_tools_version' -o '$cache/crictl.new' ./cmd/crictl" &&
    quietly "building critest $cri_tools_version" \
      sh -c "cd '$build/cri-tools' && go test -c -ldflags '-s -w' -o '$cache/critest.new' ./cmd/critest" ||
    fail "building cri-tools failed (output above)." "The sources are in $build"
  mv "$cache/crictl.new" "$cache/crictl"
  mv "$cache/critest.new" "$cache/critest"
  echo "$cri_tools_version" >"$cache/cri-tools.version"
  rm -rf "$build"
  say "crictl and critest are in $cache"
}

case ${1:-run} in
  run) need_for_run ;;
  test)
    need_for_run
    need_for_test
    ;;
  cri-tools) need_for_run ;;
  *) fail "unknown argument '$1'." "Use: sh scripts/setup.sh [run|test|cri-tools]" ;;
esac
[ "$(uname -s)" = Linux ] || fail "scribe runs on Linux only."
npm_dependencies
debian_packages
warm_up
case ${1:-run} in
  cri-tools) cri_tools ;;
  test)
    if usable_go || has_cri_tools; then
      cri_tools
    else
      say "no Go 1.21 or later: tests that need crictl or critest will fail ('sh scripts/setup.sh cri-tools' says more)"
    fi
    ;;
esac
