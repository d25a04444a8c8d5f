# Containers of the trials of `cargo xtask vm`, as Docker makes them, by runc of $packages: a configuration
# for each.

runc() { LD_LIBRARY_PATH=$packages/libseccomp2/usr/lib/x86_64-linux-gnu "$packages/runc/usr/sbin/runc" "$@"; }

# The capabilities of a container's root, of Docker's documentation.
docker_capabilities="CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP
    NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE"

# The calls that Docker's profile for seccomp leaves out, if the capability in front of them is missing: `-`
# is for none. The profile is a list of what is permitted; here is the rest, as Linux 6.12 has it. Not here:
# arguments of `clone`, `personality` and `socket`, of which some are refused.
refused_calls="
    SYS_ADMIN bpf clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr
    SYS_ADMIN move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog
    SYS_ADMIN umount2 unshare
    SYS_PTRACE kcmp pidfd_getfd process_madvise
    SYS_NICE get_mempolicy mbind set_mempolicy set_mempolicy_home_node
    SYS_MODULE delete_module init_module finit_module
    SYS_TIME settimeofday clock_settime
    SYS_BOOT reboot
    SYS_RAWIO iopl ioperm
    DAC_READ_SEARCH open_by_handle_at
    SYS_PACCT acct
    SYS_TTY_CONFIG vhangup
    - add_key request_key keyctl userfaultfd move_pages migrate_pages swapon swapoff kexec_load kexec_file_load
    - io_uring_setup io_uring_enter io_uring_register nfsservctl sysfs uselib ustat _sysctl query_module
    - get_kernel_syms create_module vserver
"

# json PREFIX WORDS...: the words as strings of JSON.
json() {
    prefix=$1
    shift
    for word; do printf '%s"%s%s"' "$comma" "$prefix" "$word"; comma=,; done
    comma=
}

# refused CAPABILITIES...: the calls that the profile refuses to a container with these capabilities.
refused() {
    echo "$refused_calls" | while read -r needed calls; do
        for call in $calls; do
            case " $* " in *" $needed "*) continue ;; esac
            # These have capabilities of their own, too. The profile denies that there is a clone3.
            case "$call $*" in
                clone3*) continue ;;
                bpf*\ BPF* | perf_event_open*\ PERFMON* | syslog*\ SYSLOG*) continue ;;
            esac
            echo "$call"
        done
    done
}

# The settings of a container, which each call of `container` takes and sets back.
defaults() {
    # The user, and the capabilities next to those of Docker (or `capabilities=`, which are all).
    uid=0 added= capabilities=$docker_capabilities
    # The file of the pid namespace to join; a folder of the machine at `/tmp` or at `/diagnostics`.
    pid_of= tmp= diagnostics=
    # `yes`: the container's root is another user outside.
    is_mapped=no
    # `no`: no filter.
    is_filtered=yes
    profile= variables=
    # A folder with another root than the machine's.
    root=
}
defaults

# mount_of FOLDER SOURCE [rw]: a folder or file of the machine in the container.
mount_of() {
    printf ',{"destination":"%s","type":"bind","source":"%s","options":["rbind","%s"]}' "$1" "$2" "${3:-ro}"
}

# container NAME WORDS...: starts the container, which runs the program, with standard input and output of
# this call. Its process id is then in the variable pid.
container() {
    container=$1
    shift
    folder=/run/containers/$container
    mkdir -p "$folder/rootfs"
    # Another user's root cannot make them.
    for entry in app dev diagnostics etc mnt proc runtimes sys tmp; do mkdir -p "$folder/rootfs/$entry"; done
    touch "$folder/rootfs/dipc"
    # What is mounted there gets its mode.
    chmod 1777 "$folder/rootfs/tmp"
    if [ -n "$root" ]; then
        system=$(for entry in "$root"/*; do mkdir -p "$folder/rootfs/${entry##*/}"; mount_of "/${entry##*/}" "$entry"; done)
    else
        for entry in bin lib lib64 sbin; do ln -s "usr/$entry" "$folder/rootfs/$entry"; done
        mkdir "$folder/rootfs/usr"
        system=$(mount_of /usr /usr)
    fi
    capabilities="$capabilities $added"
    set_of="[$(json CAP_ $capabilities)]"
    # Docker gives them only to root.
    if [ $uid = 0 ]; then effective=$set_of; else effective='[]'; fi
    mounts=$system$(mount_of /etc /etc; mount_of /runtimes "$runtimes"; mount_of /app "$workloads"
        mount_of /dipc "$dipc"
        mount_of "$OUTPUT" "$OUTPUT" rw
        if [ -n "$tmp" ]; then mount_of /tmp "$tmp" rw; else
            printf ',{"destination":"/tmp","type":"tmpfs","source":"tmpfs","options":["mode=1777"]}'
        fi
        [ -z "$diagnostics" ] || mount_of /diagnostics "$diagnostics" rw)
    namespaces='{"type":"mount"},{"type":"ipc"},{"type":"uts"},{"type":"network"},{"type":"cgroup"}'
    namespaces="$namespaces,{\"type\":\"pid\"${pid_of:+,\"path\":\"/proc/$pid_of/ns/pid\"}}"
    mappings=
    if [ $is_mapped = yes ]; then
        namespaces="$namespaces,{\"type\":\"user\"}"
        mapping='[{"containerID":0,"hostID":100000,"size":65536}]'
        mappings="\"uidMappings\":$mapping,\"gidMappings\":$mapping,"
    fi
    filter=
    if [ $is_filtered = yes ]; then
        filter="\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"syscalls\":[
            {\"names\":[$(json '' $(refused $capabilities))],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1},
            {\"names\":[\"clone3\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":38}]},"
    fi
    cat > "$folder/config.json" << CONFIGURATION
{"ociVersion":"1.0.2","hostname":"$container","root":{"path":"rootfs","readonly":true},
"process":{"terminal":false,"cwd":"/","user":{"uid":$uid,"gid":$uid},"noNewPrivileges":true,"args":[$(json '' "$@")],
  ${profile:+"\"apparmorProfile\":\"$profile\","}
  "capabilities":{"bounding":$set_of,"effective":$effective,"permitted":$effective,"inheritable":[],"ambient":[]},
  "env":[$(json '' PATH=/usr/bin:/bin DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 $variables)]},
"mounts":[{"destination":"/proc","type":"proc","source":"proc"},
  {"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755"]},
  {"destination":"/dev/shm","type":"tmpfs","source":"shm","options":["nosuid","noexec","mode=1777"]},
  {"destination":"/sys","type":"sysfs","source":"sysfs","options":["nosuid","noexec","ro"]}
  $mounts],
"linux":{"cgroupsPath":"/containers/$container",$mappings$filter"namespaces":[$namespaces],
  "maskedPaths":["/proc/kcore","/proc/keys","/proc/sched_debug","/proc/scsi","/proc/timer_list","/sys/firmware"],
  "readonlyPaths":["/proc/bus","/proc/fs","/proc/irq","/proc/sys","/proc/sysrq-trigger"]}}
CONFIGURATION
    defaults
    runc run --detach --bundle "$folder" --pid-file "$folder/pid" "$container" || return
    pid=$(cat "$folder/pid")
}

# inside NAME WORDS...: a program in a container.
inside() {
    container=$1
    shift
    runc exec "$container" "$@"
}
