#!/usr/bin/env bash
# docs/watch/image.sh DIR: the image of docs/watch as an OCI layout in DIR, without a container engine.
#
# Needs root, mmdebstrap and umoci (Debian packages), and the wheel in dist/ (`make image` builds it first). Base system
# and JRE are Debian's, dependencies those of requirements.lock by their hashes.
set -euo pipefail
layout=$1
version=$(.venv/bin/python -c 'import status_tool; print(status_tool.__version__)')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/pip wheel -q --disable-pip-version-check --no-deps --require-hashes -w "$work/wheels" -r requirements.lock
cp "dist/status_tool-$version-py3-none-any.whl" "$work/wheels"
mmdebstrap --quiet --variant=minbase --include=python3-venv,openjdk-17-jre-headless \
  --setup-hook='mkdir -p "$1/usr/share/man/man1"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --customize-hook="cp -r '$work/wheels' \"\$1/wheels\"" \
  --customize-hook='chroot "$1" python3 -m venv /opt/status-tool' \
  --customize-hook='chroot "$1" /opt/status-tool/bin/pip install -q --no-index --find-links /wheels status-tool' \
  --customize-hook='rm -r "$1/wheels"' \
  --customize-hook='chroot "$1" useradd --system --uid 10001 --create-home --home-dir /var/lib/status-tool status-tool' \
  --customize-hook='ln -s /opt/status-tool/bin/status-tool "$1/usr/local/bin/status-tool"' \
  bookworm "$work/layer.tar"

rm -rf "$layout"
umoci init --layout "$layout"
umoci new --image "$layout:$version"
umoci raw add-layer --image "$layout:$version" "$work/layer.tar"
umoci config --image "$layout:$version" --config.user 10001 --config.workingdir /var/lib/status-tool \
  --config.entrypoint status-tool --config.cmd --help --config.env PATH=/usr/local/bin:/usr/bin:/bin
echo "$layout:$version"
