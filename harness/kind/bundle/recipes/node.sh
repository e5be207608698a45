# Makes a node out of a Debian root file system over which kind's base files were copied: what kind's own base Dockerfile does, with Debian's
# containerd, runc and network plugins. Runs in the root (chroot).
set -eu

chmod 0755 /kind /kind/bin /kind/bin/* /usr/local/bin/entrypoint
echo "$1" > /kind/version
chmod 0755 /usr/bin/kubeadm /usr/bin/kubelet /usr/bin/kubectl

# Services that a container cannot run, or that would reach for the host's devices.
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* /lib/systemd/system/local-fs.target.wants/*
rm -f /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl* /lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >> /etc/systemd/journald.conf
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service

# kind's units look for the runtime below /usr/local.
for program in containerd ctr containerd-shim-runc-v2; do ln -sf "/usr/bin/$program" "/usr/local/bin/$program"; done
ln -sf /usr/sbin/runc /usr/local/sbin/runc
mkdir -p /etc/kubernetes/manifests /opt/cni/bin
for plugin in host-local loopback ptp portmap bridge; do cp "/usr/lib/cni/$plugin" /opt/cni/bin/; done
ctr oci spec \
  | jq '.hooks.createContainer[.hooks.createContainer | length] |= . + {"path": "/kind/bin/mount-product-files.sh"} | del(.process.rlimits)' \
  > /etc/containerd/cri-base.json

# A node may not lower oom_score_adj where CAP_SYS_RESOURCE is missing; and the sandbox is the image that lies in the node.
sed -i -e 's|restrict_oom_score_adj = false|restrict_oom_score_adj = true|' -e "s|sandbox_image = .*|sandbox_image = \"$2\"|" /etc/containerd/config.toml
grep -q 'restrict_oom_score_adj = true' /etc/containerd/config.toml
grep -q "sandbox_image = \"$2\"" /etc/containerd/config.toml
