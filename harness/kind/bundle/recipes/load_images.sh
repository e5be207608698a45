# Loads an archive of images into the containerd of a node that is being made, unpacked, and leaves their compressed layers out.
# Runs in a container of the node image with a volume at /unpack: overlay does not stack on overlay, so the store is filled there and copied.
# An image that is not unpacked here is unpacked at its first use, in every node, when a test waits for it.
set -eu

mkdir -p /unpack/store
if [ -d /var/lib/containerd/io.containerd.metadata.v1.bolt ]; then cp -a /var/lib/containerd/. /unpack/store/; fi
containerd --root /unpack/store --log-level error > /unpack/containerd.log 2>&1 &
containerd=$!
tries=0
until ctr version > /dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -gt 100 ]; then cat /unpack/containerd.log; exit 1; fi
  sleep 0.1
done
ctr --namespace k8s.io images import --digests - > /dev/null
for image in "$@"; do ctr --namespace k8s.io images list --quiet | grep -q "/$image\$"; done
# As discard_unpacked_layers does for pulled images: what is not a small JSON document is a layer. The record goes, then, when no one serves it, the file.
layers=$(find /unpack/store/io.containerd.content.v1.content/blobs -type f -size +64k)
for layer in $layers; do ctr --namespace k8s.io content rm "sha256:${layer##*/}" > /dev/null; done
kill "$containerd"
wait "$containerd" || true
rm -f $layers
rm -rf /var/lib/containerd
cp -a /unpack/store /var/lib/containerd
