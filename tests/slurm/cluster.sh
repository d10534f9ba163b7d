#!/usr/bin/env bash
# A real Slurm of one node, without systemd: 2 slots, 4 GPUs that are only counted, and a partition whose jobs preempt
# those of the other. As root: cluster.sh start FOLDER, and cluster.sh stop FOLDER. Its ports, configuration and state,
# below the folder, are its own; what is installed or up already is used.
set -euo pipefail
home=$2
export SLURM_CONF=$home/slurm.conf

up() {
  local pid
  pid=$(cat "$home/$1.pid" 2>/dev/null) && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}

stop() {
  for daemon in slurmd slurmctld; do
    up $daemon || continue
    kill "$(cat "$home/$daemon.pid")"
    while up $daemon; do sleep 0.1; done
  done
}

if [ "$1" = stop ]; then
  up slurmctld && scancel --me
  stop
  exit
fi

for command in slurmctld slurmd munged; do
  command -v $command >/dev/null && continue
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
done

mkdir -p /run/munge /var/log/munge /var/lib/munge
chown munge: /run/munge /var/log/munge /var/lib/munge /etc/munge
if [ ! -s /etc/munge/munge.key ]; then
  head -c 1024 /dev/urandom > /etc/munge/munge.key
  chown munge: /etc/munge/munge.key
  chmod 400 /etc/munge/munge.key
fi
munge -n >/dev/null 2>&1 || su -s /bin/sh munge -c 'munged --force'

ready() {
  sinfo -h -o %T | grep -q 'idle\|mixed\|allocated'
}

if up slurmctld && up slurmd && ready; then
  scancel --me  # of tests that were killed
  exit
fi
stop

host=$(hostname -s)
rm -rf "$home"
mkdir -p "$home"/{state,spool}
touch "$home"/gpu{0..3}
echo "Name=gpu File=$home/gpu[0-3]" > "$home/gres.conf"
cat > "$SLURM_CONF" <<CONF
ClusterName=tests
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
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
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=10
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF MaxTime=INFINITE State=UP
CONF

slurmctld
slurmd
for _ in $(seq 100); do
  if ready; then exit; fi
  sleep 0.1
done
echo "Slurm does not come up; $home/slurmctld.log and slurmd.log tell why." >&2
exit 1
