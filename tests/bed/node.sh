#!/bin/bash
# PID 1 of one node of the bed. Called as: node.sh FOLDER HOSTNAME, by root, inside the node's network namespace and
# new mount, UTS, IPC and PID namespaces. FOLDER holds disk.img, fstab and the empty folders disk and root.
# Everything that the node runs lives below this process: ending it ends daemons, containers, mounts and loop device.
set -eu
folder=$1
hostname "$2"
# /proc is still the machine's own one, so this is the pid that the outside knows.
read -r pid _ < /proc/self/stat
exec 3> "$folder/pid.new" 4>&2
mount -o loop "$folder/disk.img" "$folder/disk"
# The whole machine is the lower layer, less what the upper one hides. The upper layer has to lie on another file
# system than the machine's root, hence the disk image.
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/disk/upper,workdir=$folder/disk/work" "$folder/root"
mount -a -T "$folder/fstab"
cd "$folder/root"
pivot_root . mnt
umount -l /mnt
cd /
echo "$pid" >&3
exec 3>&- 4>&- > /dev/null 2>&1 < /dev/null
trap '' HUP TERM INT
while :; do  # adopts and reaps what daemons leave behind
    sleep 3600 &
    wait $! || true
done
