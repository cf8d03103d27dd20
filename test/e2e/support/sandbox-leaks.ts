import { readdirSync } from 'node:fs'
import { eventually, readProcessCounts } from '@sandwire/testing'
import { readShell, runShell } from './attached.ts'
import type { Deployment } from './deployment.ts'

/** Concurrent sandboxes. */
const LANES = 4
/** Sandboxes after which the programs have opened what they keep open. */
const WARM_UP = 5
/** Idle connections that a program may keep. */
const SPARE_FDS = 16
const MEBIBYTE = 1024 ** 2

/** Creates and destroys one sandbox through the API; `index` selects how it ends. */
async function runLifecycle(deployment: Deployment, index: number): Promise<void> {
  const name = `leak-${index}`
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
      const unkillable = `setsid -f sh -c 'trap "" TERM HUP; while :; do sleep 600; done' </dev/null >/dev/null 2>&1`
      const client = runShell(server, `${unkillable}; echo up; trap '' TERM HUP; while :; do sleep 1; done`)
      // The sandbox is destroyed while it is attached.
      client.exit.catch(() => undefined)
      await client.waitFor('up')
      client.handle.detach()
    }
  }
  await deployment.destroy(name)
}

async function runLifecycles(deployment: Deployment, first: number, count: number): Promise<void> {
  let next = first
  const lane = async (): Promise<void> => {
    while (next < first + count) await runLifecycle(deployment, next++)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** Open descriptors of the host and workerd. */
function openFiles(deployment: Deployment): number {
  return (
    readProcessCounts(deployment.host.pid).fds +
    readProcessCounts(deployment.workerd ?? deployment.host.pid).fds
  )
}

/** Files of the data folder except databases, whose files vary. */
function listFiles(deployment: Deployment): string[] {
  const all = readdirSync(deployment.data, { recursive: true, encoding: 'utf8' })
  return all.filter((name) => !/\.sqlite(-wal|-shm)?$/.test(name)).toSorted()
}

/**
 * Creates and destroys sandboxes and returns what is left of them: processes, mounts, control groups, loop devices, sockets, files,
 * and descriptors and zombies of the host and workerd.
 */
export async function findLeaks(deployment: Deployment, count: number): Promise<string[]> {
  await runLifecycles(deployment, 0, WARM_UP)
  const before = {
    files: listFiles(deployment),
    fds: openFiles(deployment),
    zombies: readProcessCounts(deployment.host.pid).zombies,
  }
  await runLifecycles(deployment, WARM_UP, count)
  const ids = [...deployment.ids]
  const left = (): string[] => [
    ...ids.flatMap((id) => deployment.leftovers(id)),
    ...listFiles(deployment).filter((file) => !before.files.includes(file)),
    ...(openFiles(deployment) > before.fds + SPARE_FDS
      ? [`${openFiles(deployment)} descriptors, before ${before.fds}`]
      : []),
    ...(readProcessCounts(deployment.host.pid).zombies > before.zombies ? ['zombies of the host'] : []),
  ]
  await eventually(() => left().length === 0, { what: 'no leftovers' }).catch(() => undefined)
  return left()
}
