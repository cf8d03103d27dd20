import { readdirSync } from 'node:fs'
import { eventually, readProcessCounts } from '@sandwire/testing'
import { readShell, runShell } from './attached.ts'
import type { Deployment } from './deployment.ts'

/** Sandboxes at a time. */
const LANES = 4
/** What the programs open once and keep is open after these. */
const WARM_UP = 8
const WAIT = { timeoutMs: 30_000 }
/** Connections that a program keeps for the next request. */
const SPARE_FDS = 16
const MEBIBYTE = 1024 ** 2

/** One sandbox from create to destroy through the API, in one of several ways. */
async function live(deployment: Deployment, index: number): Promise<void> {
  const name = `life-${index}`
  const network = index % 5 === 4 ? { network: { policy: 'allowlist', allow: ['registry.example'] } } : {}
  const { id } = await deployment.create(name, { limits: { diskBytes: 64 * MEBIBYTE }, ...network })
  const server = deployment.sandbox(name)
  switch (index % 4) {
    case 0:
      break
    case 1:
      await readShell(server, 'echo x > x')
      await deployment.fetch(`/api/sandboxes/${name}/stop`, { method: 'POST' })
      break
    case 2:
      process.kill(deployment.supervisor(id), 'SIGKILL')
      break
    default: {
      const stubborn = `setsid -f sh -c 'trap "" TERM HUP; while :; do sleep 600; done' </dev/null >/dev/null 2>&1`
      const client = runShell(server, `${stubborn}; echo up; trap '' TERM HUP; while :; do sleep 1; done`)
      // It is destroyed under its feet.
      client.exit.catch(() => undefined)
      await client.waitFor('up')
      client.handle.detach()
    }
  }
  await deployment.destroy(name)
}

async function liveMany(deployment: Deployment, first: number, count: number): Promise<void> {
  let next = first
  const lane = async (): Promise<void> => {
    while (next < first + count) await live(deployment, next++)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** What the host and workerd hold open. */
function openFiles(deployment: Deployment): number {
  return (
    readProcessCounts(deployment.host.pid).fds +
    readProcessCounts(deployment.workerd ?? deployment.host.pid).fds
  )
}

/** Files of the data folder but for databases' own, which come and go. */
function listFiles(deployment: Deployment): string[] {
  const all = readdirSync(deployment.data, { recursive: true, encoding: 'utf8' })
  return all.filter((name) => !/\.sqlite(-wal|-shm)?$/.test(name)).toSorted()
}

/**
 * Makes and destroys sandboxes, and says what is left of them: processes, mounts, control groups, loop devices, sockets, files,
 * descriptors and dead children of the programs that run on. Nothing, when all is well.
 */
export async function findLeaks(deployment: Deployment, count: number): Promise<string[]> {
  await liveMany(deployment, 0, WARM_UP)
  const before = {
    files: listFiles(deployment),
    fds: openFiles(deployment),
    zombies: readProcessCounts(deployment.host.pid).zombies,
  }
  await liveMany(deployment, WARM_UP, count)
  const ids = [...deployment.ids]
  const left = (): string[] => [
    ...ids.flatMap((id) => deployment.leftovers(id)),
    ...listFiles(deployment).filter((file) => !before.files.includes(file)),
    ...(openFiles(deployment) > before.fds + SPARE_FDS
      ? [`${openFiles(deployment)} descriptors, before ${before.fds}`]
      : []),
    ...(readProcessCounts(deployment.host.pid).zombies > before.zombies ? ['dead children of the host'] : []),
  ]
  await eventually(() => left().length === 0, { what: 'nothing to be left', ...WAIT }).catch(() => undefined)
  return left()
}
