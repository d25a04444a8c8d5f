#!/bin/busybox sh
# The first process of a machine of `cargo xtask vm`: mounts the host's root, and runs /command in it. What that
# prints and its exit code are files in /mnt, which is a folder of the host.

b=/bin/busybox
# CGROUP (v1 or v2), PERF_EVENT_PARANOID (a number, or empty for the kernel's own) and WORKSPACE (its folder, or
# empty if the root has it).
. /settings
end() {
    echo "init: $1"
    $b poweroff -f
}

$b mount -t proc proc /proc
$b mount -t devtmpfs devtmpfs /dev
while read -r module; do
    $b insmod "/modules/$module" || echo "init: $module was not loaded"
done < /modules/order

mount_9p() {
    $b mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$3" "$1" "$2"
}
mount_9p host /machine ro,cache=loose || end "the host's root is not there"
cd /machine || end "the host's root is not a folder"
mount_9p output mnt cache=none || end "the folder for the output is not there"
[ -z "$WORKSPACE" ] || mount_9p workspace "$WORKSPACE" ro,cache=loose || end "the workspace is not there"
$b mount -t proc proc proc
$b mount -t sysfs sysfs sys
$b mount -t devtmpfs devtmpfs dev
$b mkdir -p dev/pts dev/shm
$b mount -t devpts devpts dev/pts
$b mount -t tmpfs tmpfs dev/shm
$b mount -t tmpfs -o mode=1777 tmpfs tmp
$b mount -t tmpfs tmpfs run
exec >> mnt/output 2>&1
$b mount -t tracefs tracefs sys/kernel/tracing || echo "init: no tracefs"
$b ip link set lo up

# The program is in a group of its own, as a service or a container is.
groups=sys/fs/cgroup
if [ "$CGROUP" = v1 ]; then
    $b mount -t tmpfs tmpfs $groups
    for controller in cpu,cpuacct memory pids cpuset freezer perf_event devices; do
        $b mkdir $groups/$controller
        if $b mount -t cgroup -o $controller cgroup $groups/$controller; then
            $b mkdir $groups/$controller/program
            # Groups of processors and memory nodes begin empty.
            for set in cpus mems; do
                parent=$groups/$controller/cpuset.$set
                [ -e $parent ] && $b cat $parent > $groups/$controller/program/cpuset.$set
            done
            echo $$ > $groups/$controller/program/cgroup.procs
        else
            echo "init: no controller $controller of cgroup v1"
            $b rmdir $groups/$controller
        fi
    done
else
    $b mount -t cgroup2 cgroup2 $groups
    echo "+cpu +memory +pids" > $groups/cgroup.subtree_control
    $b mkdir $groups/program
    echo $$ > $groups/program/cgroup.procs
fi
[ -n "$PERF_EVENT_PARANOID" ] && echo "$PERF_EVENT_PARANOID" > proc/sys/kernel/perf_event_paranoid

$b cp /command run/command
# User namespaces, and runtimes of containers, want a root that is not a folder of another.
$b mount --move . /
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TMPDIR=/tmp OUTPUT=/mnt
$b chroot . /bin/sh /run/command < /dev/null
echo $? > mnt/status
$b sync
$b poweroff -f
