#!/bin/sh
# Installs what is missing and nothing else: the npm dependencies of this clone, and the Debian packages whose programs
# scribe, its tests or the CRI tools need. Runs before node_modules exists, so it is plain POSIX sh and needs no Node
# of ours. Doing it again installs nothing.
#
#   sh scripts/setup.sh run        npm dependencies, and what running pods needs
#   sh scripts/setup.sh test       the same, and what the tests need, crictl, critest and kubelet among it where Go is at hand
#   sh scripts/setup.sh cri-tools  as run, and builds crictl and critest into the cache directory, or fails
#   sh scripts/setup.sh bench      what bench/compare.ts needs beside the npm dependencies: what running pods needs, a registry,
#                                  and containerd, CNI plugins and the benchmark's client, built into the cache directory
#                                  (SCRIBE_BENCH_BIN: into that one; SCRIBE_BENCH_CONTAINERD=v2.3.7: another containerd)
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
# What services and cloud-init start has none; Go and npm need it, too.
[ -n "${HOME:-}" ] || HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
export HOME
# As scripts/lib/cache-dir.ts: what is empty or relative is as none.
case ${XDG_CACHE_HOME:-} in /*) cache_home=$XDG_CACHE_HOME ;; *) cache_home=$HOME/.cache ;; esac
cache=$cache_home/scribe/bin
bench_bin=${SCRIBE_BENCH_BIN:-$cache_home/scribe/bench/bin}
cri_tools_version=v1.36.0
# What critest's NRI specs, newer than that release, are built with: test/support/critest-nri.
nri_version=v0.12.1
containerd_version=${SCRIBE_BENCH_CONTAINERD:-v2.4.2}
cni_plugins_version=v1.9.1
node=$top/node_modules/.bin/node
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
  # npm ci would empty what a link leads to, under the feet of whoever it belongs to.
  [ ! -L "$top/node_modules" ] || return 0
  installed=$top/node_modules/.package-lock.json
  [ ! -e "$installed" ] || [ "$top/package-lock.json" -nt "$installed" ] || return 0
  has npm || fail "npm is not installed." "Install Node.js with npm (apt-get install nodejs npm, or from nodejs.org)."
  quietly "installing npm dependencies" npm ci --ignore-scripts --no-audit --no-fund --loglevel=warn --loglevel=error ||
    fail "npm ci failed (its output is above)." "Is the package registry reachable? Then run 'npm ci --ignore-scripts' in $top."
  # npm keeps the time stamps of an unchanged tree, so the comparison above needs a fresh one.
  touch "$installed"
}

# Makes sure of a Node 24, which all that follows runs on. npm 9, which Debian 12 has, takes the link to the one that it has
# installed away again, with the package for another kind of machine that it leaves out: both call their program the same.
node_24() {
  # What lies behind a link is others' to mend.
  [ ! -L "$top/node_modules" ] || return 0
  for program in "$node" "$top"/node_modules/node-linux-*/bin/node; do
    "$program" --version >/dev/null 2>&1 || continue
    [ "$program" = "$node" ] || ln -sf "../${program#"$top/node_modules/"}" "$node"
    return 0
  done
  node=node
  major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || major=0
  [ "$major" -lt 24 ] || return 0
  fail "npm has installed no Node 24 for this kind of machine ($(uname -m)), and there is none in PATH." \
    "On x86-64 and arm64: npm ci --ignore-scripts --include=optional, in $top. Elsewhere: install Node 24."
}

# What bin/scribe starts, bundled anew when a source is newer.
bundle() {
  [ -e scripts/build.ts ] || return 0
  [ ! -e dist/main.js ] || [ -n "$(find src scripts/build.ts package-lock.json -newer dist/main.js -print -quit)" ] || return 0
  "$node" scripts/build.ts || fail "the bundle could not be built (npm run build; its output is above)."
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
  need containernetworking-plugins /opt/cni/bin/bridge /usr/lib/cni/bridge /usr/libexec/cni/bridge
  need busybox-static busybox
  need iproute2 ip
  need iptables iptables
  need util-linux setpriv
  # Without it gzip layers are inflated by what Node brings along, and elsewhere than in Debian it has other names.
  ! has apt-get || need libisal2 /usr/lib/*-linux-gnu/libisal.so.2
}

need_for_test() {
  need docker-registry docker-registry
  need nginx-light nginx
  need crun crun
  need apparmor apparmor_parser
  # The page of scribe ui is tested in it.
  need chromium chromium
  need openssh-client ssh-agent
}

# Whether apt could install what is missing, by the package lists that it has.
# shellcheck disable=SC2086 # a list of package names
can_install() { apt-get install --simulate --no-install-recommends $missing >/dev/null 2>&1; }

# A list that can't be had is no error to apt unless it is told so.
update_lists() { quietly "updating the package lists" apt-get update -o APT::Update::Error-Mode=any; }

# A machine that has just begun to run updates itself: apt waits for that.
# shellcheck disable=SC2086
install_missing() {
  DEBIAN_FRONTEND=noninteractive quietly "installing$missing" \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 $missing
}

# Those of our packages' daemons that are not on this machine yet.
absent_daemons() {
  for unit in containerd docker-registry nginx; do
    [ -e "/lib/systemd/system/$unit.service" ] || echo "$unit"
  done
}

# Packages have their daemons run from the next boot on: all that is wanted is their programs. An upgrade leaves it so.
disable_daemons() {
  for unit in "$@"; do
    rm -f "/etc/systemd/system/multi-user.target.wants/$unit.service"
  done
}

debian_packages() {
  [ -n "$missing" ] || return 0
  if ! has apt-get; then
    fail "these programs are missing:$missing_programs" \
      "This is not a Debian system: install them with its package manager (Debian calls the packages:$missing)."
  fi
  [ "$(id -u)" -eq 0 ] || fail "missing Debian packages:$missing" "Run this as root, or: sudo apt-get install --no-install-recommends$missing"
  # Nor may they be started now.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  absent=$(absent_daemons)
  lists=old
  if ! can_install; then
    lists=new
    # One of several mirrors may be gone without being needed.
    update_lists || can_install || fail "the package lists can't be had (apt-get's output is above)." \
      "Is the network there, and a Debian mirror in /etc/apt?"
  fi
  # Lists of long ago name versions that the mirror has no more.
  install_missing || { [ "$lists" = old ] && update_lists && install_missing; } ||
    fail "apt-get install failed (its output is above)." "Mend that, or install by hand:$missing"
  # shellcheck disable=SC2086 # a list of names
  disable_daemons $absent
  if [ -n "${policy:-}" ]; then
    rm -f "$policy"
    policy=
  fi
  missing=
  missing_programs=
}

# Go before 1.21 cannot fetch the newer compiler that the tools ask for.
usable_go() {
  has go || return 1
  minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  [ "${minor:-0}" -ge 21 ]
}

usable_go_in_apt() {
  has apt-cache || return 1
  minor=$(apt-cache policy golang-go 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}1\.\([0-9]*\).*/\2/p')
  [ "${minor:-0}" -ge 21 ]
}

has_cri_tools() {
  [ -x "$cache/crictl" ] && [ -x "$cache/critest" ] && [ -x "$cache/critest-nri" ] && [ "$(cat "$cache/cri-tools.version")" = "$cri_tools_version" ]
}

# Makes sure of a Go that can build what is named.
need_go() {
  if ! usable_go && usable_go_in_apt; then
    need golang-go golang-go
    debian_packages
  fi
  usable_go || fail "building $1 needs Go 1.21 or later, and there is $(go version 2>/dev/null || echo none)." \
    "Install Go from go.dev/dl or your distribution's backports, and run: sh scripts/setup.sh $2"
}

# Copies the source of a Go module (name, path@version) to where it can be built: $build/source.
fetch_source() {
  build=$(mktemp -d)
  quietly "fetching the source of $1" sh -c "cd '$build' && go mod download -json '$2' >module.json" ||
    fail "the Go module proxy did not deliver $2 (output above)." "Is it reachable (go env GOPROXY)?"
  cp -r "$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p' "$build/module.json")" "$build/source"
  chmod -R u+w "$build"
}

# Builds one program of the fetched source: file, go build's further arguments.
build_program() {
  file=$1
  shift
  quietly "building $(basename "$file")" env -C "$build/source" go build -o "$file.new" "$@" ||
    fail "building $(basename "$file") failed (output above)." "The sources are in $build"
  mv "$file.new" "$file"
}

# Builds critest of the fetched source under this name.
build_critest() {
  quietly "building $1" env -C "$build/source" GOFLAGS=-mod=mod go test -c -ldflags '-s -w' -o "$cache/$1.new" ./cmd/critest ||
    fail "building $1 failed (output above)." "The sources are in $build"
  mv "$cache/$1.new" "$cache/$1"
}

cri_tools() {
  ! has_cri_tools || return 0
  need_go "crictl and critest" cri-tools
  mkdir -p "$cache"
  fetch_source "cri-tools $cri_tools_version" "sigs.k8s.io/cri-tools@$cri_tools_version"
  build_program "$cache/crictl" -ldflags "-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=$cri_tools_version" ./cmd/crictl
  build_critest critest
  cp test/support/critest-nri/*.go "$build/source/pkg/validate"
  sed -i 's/framework\.TestContext\.NRISocketPath/nriSocketPath/' "$build"/source/pkg/validate/nri_*linux.go
  quietly "fetching NRI's stub" env -C "$build/source" GOFLAGS=-mod=mod go get "github.com/containerd/nri@$nri_version" ||
    fail "the Go module proxy did not deliver NRI $nri_version (output above)." "Is it reachable (go env GOPROXY)?"
  build_critest critest-nri
  echo "$cri_tools_version" >"$cache/cri-tools.version"
  rm -rf "$build"
  say "crictl and critest are in $cache"
}

# Whether a version of something has been built into the benchmark's directory.
has_built() { [ "$(cat "$bench_bin/$1.version" 2>/dev/null)" = "$2" ]; }

bench_containerd() {
  ! has_built containerd "$containerd_version" || return 0
  need_go containerd bench
  fetch_source "containerd $containerd_version" "github.com/containerd/containerd/v2@$containerd_version"
  version_flag="-X github.com/containerd/containerd/v2/version.Version=$containerd_version"
  build_program "$bench_bin/containerd-shim-runc-v2" -ldflags "-s -w $version_flag" ./cmd/containerd-shim-runc-v2
  build_program "$bench_bin/containerd" -tags "no_btrfs no_zfs no_devmapper" -ldflags "-s -w $version_flag" ./cmd/containerd
  rm -rf "$build"
  echo "$containerd_version" >"$bench_bin/containerd.version"
}

bench_cni_plugins() {
  ! has_built cni-plugins "$cni_plugins_version" || return 0
  need_go "the CNI plugins" bench
  fetch_source "CNI plugins $cni_plugins_version" "github.com/containernetworking/plugins@$cni_plugins_version"
  version_flag="-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=$cni_plugins_version"
  for plugin in main/bridge main/loopback ipam/host-local meta/portmap; do
    build_program "$bench_bin/cni/$(basename $plugin)" -ldflags "-s -w $version_flag" "./plugins/$plugin"
  done
  rm -rf "$build"
  echo "$cni_plugins_version" >"$bench_bin/cni-plugins.version"
}

bench_client() {
  client=$bench_bin/bench-client
  [ ! -x "$client" ] || [ -n "$(find "$top/bench/client" -newer "$client")" ] || return 0
  need_go "the benchmark's client" bench
  quietly "building the benchmark's client" env -C "$top/bench/client" go build -o "$client.new" . ||
    fail "building bench/client failed (output above)."
  mv "$client.new" "$client"
}

# kubelet, client-go and a shim, for tests: each is in the cache directory once it has been built.
go_programs() {
  quietly "building the Go programs of the tests, kubelet among them" "$node" scripts/go-programs.ts ||
    fail "building a Go program of the tests failed (output above)." "Is the Go module proxy reachable (go env GOPROXY)?"
}

case ${1:-run} in
  run) need_for_run ;;
  test)
    need_for_run
    need_for_test
    ;;
  cri-tools) need_for_run ;;
  bench)
    need_for_run
    need docker-registry docker-registry
    ;;
  *) fail "unknown argument '$1'." "Use: sh scripts/setup.sh [run|test|cri-tools|bench]" ;;
esac
[ "$(uname -s)" = Linux ] || fail "scribe runs on Linux only."
# Whoever runs the benchmark runs on the npm dependencies already: they are not replaced under it.
[ "${1:-run}" = bench ] || npm_dependencies
node_24
debian_packages
bundle
case ${1:-run} in
  cri-tools) cri_tools ;;
  bench)
    mkdir -p "$bench_bin/cni"
    bench_containerd
    bench_cni_plugins
    bench_client
    ;;
  test)
    if usable_go || has_cri_tools; then
      cri_tools
      go_programs
    else
      say "no Go 1.21 or later: tests that need crictl, critest or kubelet will fail ('sh scripts/setup.sh cri-tools' says more)"
    fi
    ;;
esac
