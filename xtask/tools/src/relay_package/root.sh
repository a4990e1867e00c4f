# Installs a package into a separate root, starts and stops the relay, and removes the package. Runs in its own mount
# namespace, so that no mounts remain. Waits for a line on standard input before each step.
set -eu
package=$1
root=$2
listen=$3
admin=$4
guide=$5
game=$6

mount -t tmpfs -o mode=0755 tmpfs "$root"
cd "$root"
mkdir -p .upper .work usr etc var/lib/dpkg/info var/lib/dpkg/updates var/log run tmp root proc dev
chmod 1777 tmp
# The root has the programs of this machine, and none of its other files.
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$root/.upper,workdir=$root/.work" usr
for name in bin sbin lib lib64; do
    [ ! -L "/$name" ] || ln -s "usr/$name" "$name"
done
mount --rbind /proc proc
mount --rbind /dev dev
cp -a /etc/alternatives etc/ 2>/dev/null || true
cp /usr/share/base-passwd/passwd.master etc/passwd
cp /usr/share/base-passwd/group.master etc/group
: > etc/shadow
: > etc/gshadow
: > var/lib/dpkg/available
# The packages on which the relay's package may depend, as installed on this machine.
for name in libc6 libgcc-s1 ca-certificates passwd procps; do
    dpkg-query --status "$name"
    echo
done > var/lib/dpkg/status
rm -f usr/bin/rakwire-relay

inside() {
    PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"
}

cp "$package" tmp/package.deb
inside dpkg --install /tmp/package.deb
inside rakwire-relay --version
inside getent passwd rakwire-relay
[ "$(inside stat -c '%U:%G %a' /etc/rakwire-relay)" = "root:rakwire-relay 750" ]
inside rakwire-relay check --config /etc/rakwire-relay/relay.toml
inside systemd-analyze verify --man=no /usr/lib/systemd/system/rakwire-relay.service \
    /usr/lib/systemd/system/rakwire-relay.socket
inside systemd-analyze security --offline=true --threshold=20 --no-pager \
    /usr/lib/systemd/system/rakwire-relay.service > run/exposure
tail -n 1 run/exposure

# Runs a command as the unit does: as another user, without a way to gain privileges.
unprivileged() {
    PATH=/usr/sbin:/usr/bin:/sbin:/bin exec chroot "$root" setpriv --reuid rakwire-relay --regid rakwire-relay --clear-groups \
        --no-new-privs --bounding-set -all "$@"
}

# Runs the relay as the unit does, until the next line on standard input.
run_until_line() {
    # shellcheck disable=SC2046 # The command has several words.
    unprivileged $(sed -n 's/^ExecStart=//p' usr/lib/systemd/system/rakwire-relay.service) > run/stdout &
    relay=$!
    trap 'kill -KILL "$relay"' EXIT
    read -r _
    kill -TERM "$relay"
    wait "$relay"
    trap - EXIT
    echo drained
}

sed -i "s/127.0.0.1:8080/$listen/; s/127.0.0.1:9464/$admin/; s/^drain_timeout.*/drain_timeout = \"1s\"/" \
    etc/rakwire-relay/relay.toml
run_until_line

# The steps of the guide for operators.
cp "$guide" etc/rakwire-relay/relay.toml
inside rakwire-relay keygen --out /tmp/token.key
inside install -o root -g rakwire-relay -m 640 /tmp/token.key.pub /etc/rakwire-relay/token.key.pub
inside install -o root -g rakwire-relay -m 640 /dev/null /etc/rakwire-relay/bans
(unprivileged rakwire-relay check --config /etc/rakwire-relay/relay.toml)
# Adapts addresses, and removes TLS, because a certificate for the guide's host name cannot be obtained here.
sed -i "s/\[::\]:443/$listen/; s/127.0.0.1:9464/$admin/; s/127.0.0.1:19132/$game/" etc/rakwire-relay/relay.toml
sed -i 's/^drain_timeout.*/drain_timeout = "1s"/; /^\[tls\]/,/^$/d' etc/rakwire-relay/relay.toml
# The expiry is long enough for the start of the relay.
inside rakwire-relay token --key /tmp/token.key --target game --expires 10m > "$root.token"
run_until_line

inside dpkg --remove rakwire-relay
[ ! -e usr/bin/rakwire-relay ]
[ ! -e usr/lib/systemd/system/rakwire-relay.service ]
# The operator's configuration stays until the package is purged.
[ -e etc/rakwire-relay/relay.toml ]
inside dpkg --purge rakwire-relay
[ ! -e etc/rakwire-relay/relay.toml ]
# Keys and bans belong to the operator.
[ -e etc/rakwire-relay/token.key.pub ]
echo removed
