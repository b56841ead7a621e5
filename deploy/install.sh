#!/bin/sh
# Installs archie from a release: verifies the archive's checksum first, and installs nothing if it is another one.
#
#   sh install.sh                      from the folder of this script
#   sh install.sh --from FOLDER|URL    from another folder, or from a server over HTTPS
#   sh install.sh --prefix FOLDER      default: /usr/local for root, ~/.local for others
#   sh install.sh --sha256 DIGEST      the digest that the archive must have, from somewhere that you trust
#
# The digests in SHA256SUMS come from where the archive comes from. They find damage, and not a person who can change both: against
# that, compare with a digest that you got in another way.
set -eu

fail() {
    echo "error: $1" >&2
    exit 1
}

from=$(dirname -- "$0")
prefix=
expected=
while [ $# -gt 0 ]; do
    case $1 in
        --from | --prefix | --sha256)
            [ $# -ge 2 ] || fail "\`$1\` needs a value"
            ;;
    esac
    case $1 in
        --from) from=$2 ;;
        --prefix) prefix=$2 ;;
        --sha256) expected=$2 ;;
        --help | -h)
            sed -n 's/^#   //p' "$0"
            exit 0
            ;;
        *) fail "unknown argument \`$1\` (use --from, --prefix, --sha256)" ;;
    esac
    shift 2
done
if [ -z "$prefix" ]; then
    prefix=$HOME/.local
    [ "$(id -u)" -ne 0 ] || prefix=/usr/local
fi

system=$(uname -s)
machine=$(uname -m)
[ "$system" = Linux ] || fail "releases are for Linux, not for $system; build from source with cargo"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# Copies a file of the release, so that what is verified is what is installed.
get() {
    case $from in
        https://*) curl --proto '=https' --tlsv1.2 -fsSL -o "$folder/$1" "$from/$1" || fail "cannot download $from/$1" ;;
        *://*) fail "\`$from\` is not a folder or an https address" ;;
        *) cp -- "$from/$1" "$folder/$1" || fail "cannot read $from/$1" ;;
    esac
}

get SHA256SUMS
# A line is the digest, two characters, and the name.
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(archie-[0-9A-Za-z.+-]*-linux-$machine\.tar\.gz\)\$/\1/p" "$folder/SHA256SUMS")
case $archive in
    '') fail "SHA256SUMS has no archive for $machine" ;;
    *"
"*) fail "SHA256SUMS has several archives for $machine" ;;
esac
get "$archive"

recorded=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$folder/SHA256SUMS")
if command -v sha256sum > /dev/null; then
    actual=$(sha256sum "$folder/$archive")
else
    actual=$(shasum -a 256 "$folder/$archive")
fi
actual=${actual%% *}
[ "$actual" = "$recorded" ] || fail "$archive has the SHA-256 digest $actual, and SHA256SUMS says $recorded; nothing was installed"
[ -z "$expected" ] || [ "$actual" = "$expected" ] || fail "$archive has the SHA-256 digest $actual, not $expected; nothing was installed"

tar -xzf "$folder/$archive" -C "$folder"
unpacked=$folder/${archive%.tar.gz}
"$unpacked/archie" --version > /dev/null || fail "the program does not start on this machine; nothing was installed"

# Puts a file in its place at once: a program that runs keeps its old file.
put() {
    mkdir -p "$(dirname -- "$2")"
    cp -- "$1" "$2.new"
    chmod "$3" "$2.new"
    mv -f -- "$2.new" "$2"
}

for page in "$unpacked"/man/man1/*.1; do
    put "$page" "$prefix/share/man/man1/$(basename -- "$page")" 644
done
put "$unpacked/completions/archie.bash" "$prefix/share/bash-completion/completions/archie" 644
put "$unpacked/completions/_archie" "$prefix/share/zsh/site-functions/_archie" 644
put "$unpacked/completions/archie.fish" "$prefix/share/fish/vendor_completions.d/archie.fish" 644
for text in "$unpacked"/README.md "$unpacked"/CHANGELOG.md "$unpacked"/LICENSE-* "$unpacked"/licenses/*; do
    put "$text" "$prefix/share/doc/archie/${text#"$unpacked"/}" 644
done
put "$unpacked/archie" "$prefix/bin/archie" 755

echo "$("$prefix/bin/archie" --version) is installed as $prefix/bin/archie"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not in your PATH" ;;
esac
