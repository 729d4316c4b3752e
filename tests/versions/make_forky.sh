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
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends g++ libc6-dev \
    python3.14-dev python3.15-dev python3.14-venv python3.15-venv python3-torch python3-numpy python3-memray python3-pytest python3-setuptools \
    python3-rich python3-psutil python3-pip python3-sklearn python3-jsonschema python3-networkx python3-hypothesis python3-tqdm \
    python3-greenlet python3-jinja2 python3-pytest-xdist python3-pytest-asyncio python3-pytest-cov python3-pytest-rerunfailures mkdocs-material
# Debian's plotly has no plotly.js.
rm -rf "$root/wheels"
python3 -m pip download -q --no-deps -d "$root/wheels" plotly narwhals
chroot "$root" python3.14 -m pip install -q --break-system-packages --no-index --no-deps --find-links /wheels plotly narwhals
# Both versions look into one folder for packages, but torch and memray are built for 3.14 only: 3.15 gets a folder without them.
packages=/opt/python3.15/lib/python3.15/site-packages
chroot "$root" python3.15 -m venv --without-pip /opt/python3.15
for package in "$root"/usr/local/lib/python3.15/dist-packages/* "$root"/usr/local/lib/python3.14/dist-packages/{plotly,narwhals,_plotly}* \
        "$root"/usr/lib/python3/dist-packages/*; do
    case ${package##*/} in torch* | functorch | memray* | __pycache__ | "*") continue ;; esac
    [ ! -e "$package" ] || [ -L "$root$packages/${package##*/}" ] || ln -s "${package#"$root"}" "$root$packages/"
done
