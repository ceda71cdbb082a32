// Two network namespaces that stand for two machines.
#pragma once
#include <unistd.h>

#include <string>

#include "command.hpp"

namespace rondo::test {

// The beginning of a shell script for `unshare -n -m`. This machine (which has docker0 and an interface with nothing but
// a link-local address too, both of which come before eth0) and another with a cable between them, gone when their processes are; $NET1 and $NET2 are their addresses, $there runs a command over there.
// The name of rank 0's machine means 127.0.1.1 on itself, as on Debian.
inline const std::string two_machines = R"sh(set -e
ip link set lo up
ip link add docker0 type bridge; ip addr add 172.30.0.1/24 dev docker0; ip link set docker0 up
ip link add auto0 type bridge; ip addr add 169.254.7.1/16 dev auto0; ip link set auto0 up
unshare -n -m sleep 60 >/dev/null 2>&1 & other=$!
there="nsenter -t $other -n -m"
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
ip link add eth0 type veth peer name eth1
ip link set eth1 netns $other
ip addr add $NET1 dev eth0 $FLAGS; ip link set eth0 up
$there ip addr add $NET2 dev eth1 $FLAGS; $there ip link set eth1 up; $there ip link set lo up
mount -t tmpfs none /mnt; echo '127.0.1.1 first' >/mnt/hosts; mount --bind /mnt/hosts /etc/hosts
$there sh -c "mount -t tmpfs none /mnt; echo '${NET1%/*} first' >/mnt/hosts; mount --bind /mnt/hosts /etc/hosts"
export RONDO_ROOT=first:29777 RONDO_SECRET=s RONDO_INIT_TIMEOUT=10
)sh";

struct Cable {
  std::string here, there, flags;  // addresses and what `ip addr add` needs besides
};
inline const Cable ipv4{"10.77.0.1/24", "10.77.0.2/24", ""}, ipv6{"fd77::1/64", "fd77::2/64", "nodad"};

inline bool has_networks() {
  return ::geteuid() == 0 &&
         run({"unshare", "-n", "-m", "sh", "-c",
              "ip link add eth0 type veth peer name eth1 && "
              "ip link add docker0 type bridge && command -v nsenter && mount -t tmpfs none /mnt"})
                 .code == 0;
}

}  // namespace rondo::test
