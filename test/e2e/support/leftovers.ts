import { existsSync, readdirSync, readFileSync } from 'node:fs'

const CGROUPS = '/sys/fs/cgroup'

/** Mounts, unix sockets, control groups and loop devices whose entry contains a text. */
export function findLeftovers(text: string): string[] {
  const lines = (file: string): string[] => readFileSync(file, 'utf8').split('\n')
  const groups = existsSync(CGROUPS) ? readdirSync(CGROUPS, { recursive: true, encoding: 'utf8' }) : []
  const loops = Bun.spawnSync(['losetup', '-a']).stdout.toString().split('\n')
  return [...lines('/proc/self/mountinfo'), ...lines('/proc/net/unix'), ...groups, ...loops].filter((line) =>
    line.includes(text),
  )
}
