#!/usr/bin/env bash
# A real Slurm on this machine alone, without systemd: a node of 2 slots and 4 GPUs that it only counts, and a partition
# whose jobs those of another preempt. Run as root. What is there already is used; Slurm stays up, and keeps its
# configuration and state below the folder named.
set -euo pipefail
mkdir -p "$1"
home=$(cd "$1" && pwd)

command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null || {
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
}

export SLURM_CONF=$home/slurm.conf
ready() { sinfo -h -o %T | grep -q 'idle\|mixed\|allocated'; }
[ -f "$SLURM_CONF" ] && pgrep -F "$home/slurmctld.pid" >/dev/null 2>&1 && ready && exit

mkdir -p /run/munge /var/log/munge /var/lib/munge "$home/state" "$home/spool"
chown munge: /run/munge /var/log/munge /var/lib/munge /etc/munge
if [ ! -s /etc/munge/munge.key ]; then
  head -c 1024 /dev/urandom > /etc/munge/munge.key
  chown munge: /etc/munge/munge.key
  chmod 400 /etc/munge/munge.key
fi
munge -n >/dev/null 2>&1 || su -s /bin/sh munge -c 'munged --force'

host=$(hostname -s)
cat > "$SLURM_CONF" <<CONF
ClusterName=tests
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd.pid
SlurmctldLogFile=$home/slurmctld.log
SlurmdLogFile=$home/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF MaxTime=INFINITE State=UP
CONF
touch "$home"/gpu{0..3}
echo "Name=gpu File=$home/gpu[0-3]" > "$home/gres.conf"

slurmctld
slurmd
for _ in $(seq 100); do
  ready && exit
  sleep 0.1
done
echo "Slurm does not come up; see $home/slurmctld.log and slurmd.log." >&2
exit 1
