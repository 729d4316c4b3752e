#!/usr/bin/env bash
# Makes a Debian forky root with CPython 3.14 and 3.15, torch and numpy in .forky/ (git-ignored), to test
# versions that this machine does not have.  Needs root, debootstrap and a Debian mirror, which is read from
# apt's own configuration.  Usage: tests/versions/make_forky.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${1:-.forky}
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
    awk '!found && $1 == "URIs:" {print $2; found = 1} !found && $1 == "deb" {print $2; found = 1}')
[ -n "$mirror" ] || { echo "no mirror in apt's configuration" >&2; exit 1; }
if [ ! -e "$root/etc/debian_version" ]; then
    debootstrap --variant=minbase --no-check-gpg forky "$root" "$mirror" /usr/share/debootstrap/scripts/sid
fi
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
chroot "$root" apt-get update -qq
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends gcc libc6-dev \
    python3.14-dev python3.15-dev python3-torch python3-numpy python3-memray python3-pytest python3-setuptools \
    python3-rich python3-psutil python3-pip
