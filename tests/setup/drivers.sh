#!/usr/bin/env bash
# Installs the Debian packages that the tests run kernels with: lavapipe (Vulkan), Chromium (Dawn and SwiftShader) and OpenGL ES; and
# those that judge kernels in other languages: spirv-val and glslangValidator. Also compilers for
# generated host code, where there are none.
# Where it may not install, it names what is missing and fails: the tests use no adapter that happens to be there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/setup/common.sh

packages=(mesa-vulkan-drivers chromium libegl1 libegl-mesa0 libgl1-mesa-dri spirv-tools glslang-tools)

is_installed() { [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

command -v g++ >/dev/null 2>&1 || packages+=(g++)
command -v rustc >/dev/null 2>&1 || packages+=(rustc)

missing=()
for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
may_apt || fail "the tests need these Debian packages, and only root may install them with apt-get:" "${missing[@]}"
apt_install "${missing[@]}"
