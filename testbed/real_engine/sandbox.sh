#!/bin/sh
# sandbox.sh ROOT ENVIRONMENT PYTHON WEIGHTS WORDS TLS HOME COMMAND...: runs the command as a restricted pod would be run.
# To be started in new mount, process, IPC and host name namespaces, and in a network namespace that leads nowhere.
# The root file system is read-only, as are the weights; what is writable is what the pod has as emptyDir.
set -eu
root=$1 environment=$2 python=$3 weights=$4 words=$5 tls=$6 home=$7
shift 7

read_only() {
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
}

mount --make-rprivate /
mount -t tmpfs -o size=16m,mode=755 none "$root"
mkdir -p "$root/etc" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/opt/bin" "$root/home/hermetic"
for name in bin sbin lib lib64; do [ -e "/usr/$name" ] && ln -s "usr/$name" "$root/$name"; done
read_only /usr /usr
read_only "$python" "$python"
read_only "$environment" /opt/venv
read_only "$weights" /weights
[ -z "$tls" ] || read_only "$tls" /tls
for name in ld.so.cache ld.so.conf nsswitch.conf alternatives; do
    [ -e "/etc/$name" ] && cp -a "/etc/$name" "$root/etc/"
done
echo 'root:x:0:0::/root:/bin/sh' > "$root/etc/passwd"
echo 'root:x:0:' > "$root/etc/group"
printf '127.0.0.1 localhost\n10.244.1.5 pod\n' > "$root/etc/hosts"
printf 'nameserver 10.0.0.10\nsearch inference.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n' \
    > "$root/etc/resolv.conf"
cat > "$root/opt/bin/vllm" <<'PROGRAM'
#!/opt/venv/bin/python
import sys
from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
PROGRAM
chmod 755 "$root/opt/bin/vllm"
mount -t tmpfs -o mode=1777 none "$root/tmp"
if [ -n "$home" ]; then
    mount --bind "$home" "$root/home/hermetic"
else
    mount -t tmpfs -o mode=777 none "$root/home/hermetic"
fi
mount -t proc none "$root/proc"
mount -t sysfs -o ro none "$root/sys"
mount -t tmpfs -o mode=755 none "$root/dev"
for name in null zero full random urandom; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
touch "$root/dev/termination-log"
mount --bind "$words" "$root/dev/termination-log"
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
mount -t tmpfs -o size=1g,mode=1777 none "$root/dev/shm"
mount -o remount,ro "$root"
hostname pod
cd /
exec chroot "$root" /usr/bin/setpriv --reuid "$USER_ID" --regid "$GROUP_ID" --clear-groups --no-new-privs \
    --inh-caps=-all --bounding-set=-all /usr/bin/env -i "$@"
