#!/bin/sh
# Runs a program like a container does, in the network namespace of the caller:
#
#   launch.sh FOLDER UID GID READ_ONLY WORKDIR [NAME=value]... PROGRAM [ARGUMENT]...
#
# The root filesystem is that of the machine, with a layer in memory for what is written, and with the mounts of
# FOLDER/mounts: lines of KIND (folder, bind, tmpfs), SOURCE, TARGET and OPTIONS, separated by tabs.
# FOLDER/etc/* replace files of /etc. The program has no capabilities and cannot gain any, and it is killed when
# the thread that started it ends.
set -eu
folder=$1 uid=$2 gid=$3 read_only=$4 workdir=$5
shift 5

mount --make-rprivate /
layer=$folder/layer
mkdir -p "$layer"
mount -t tmpfs -o mode=755 layer "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
# A whiteout for each folder of the machine that a container does not have.
for name in home mnt root run srv tmp; do mknod "$layer/upper/$name" c 0 0; done
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
root=$layer/root
mkdir "$root/home" "$root/mnt" "$root/root" "$root/run" "$root/srv"
mkdir -m 1777 "$root/tmp" "$root/run/lock"
cp "$folder"/etc/* "$root/etc/"
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777,size=64m shm "$root/dev/shm"
mount --bind -o ro /sys "$root/sys"

tab=$(printf '\t')
while IFS="$tab" read -r kind source target options; do
    # Links such as /var/run are relative to the root of the container.
    target=$root$(chroot "$root" realpath --canonicalize-missing "$target")
    if [ -f "$source" ]; then
        mkdir -p "$(dirname "$target")"
        : >"$target"
    else
        mkdir -p "$target"
    fi
    case $kind in
        folder) chown "$options" "$target" ;;
        tmpfs) mount -t tmpfs -o "$options" tmpfs "$target" ;;
        bind)
            mount --bind "$source" "$target"
            if [ "$options" = ro ]; then mount -o remount,bind,ro "$target"; fi
            ;;
    esac
done <"$folder/mounts"
if [ "$read_only" = true ]; then mount -o remount,ro "$root"; fi
# As container engines set it.
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start

exec chroot "$root" setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs --inh-caps=-all \
    --bounding-set=-all --pdeathsig KILL -- env -i --chdir="$workdir" "$@"
