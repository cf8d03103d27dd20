import { readdirSync } from 'node:fs'
import { eventually, readProcessCounts } from '@sandwire/testing'
import { readShell, runShell } from './attached.ts'
import type { FrontDoor } from './front-door.ts'

/** Sandboxes at a time. */
const LANES = 4
/** What the programs open once and keep is open after these. */
const WARM_UP = 8
const WAIT = { timeoutMs: 30_000 }
/** Connections that a program keeps for the next request. */
const SPARE_FDS = 16
const MEBIBYTE = 1024 ** 2

/** One sandbox from create to destroy through the API, in one of several ways. */
async function live(door: FrontDoor, index: number): Promise<void> {
  const name = `life-${index}`
  const network = index % 5 === 4 ? { network: { policy: 'allowlist', allow: ['registry.example'] } } : {}
  const { id } = await door.create(name, { limits: { diskBytes: 64 * MEBIBYTE }, ...network })
  const server = door.sandbox(name)
  switch (index % 4) {
    case 0:
      break
    case 1:
      await readShell(server, 'echo x > x')
      await door.fetch(`/api/sandboxes/${name}/stop`, { method: 'POST' })
      break
    case 2:
      process.kill(door.supervisor(id), 'SIGKILL')
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
  await door.destroy(name)
}

async function liveMany(door: FrontDoor, first: number, count: number): Promise<void> {
  let next = first
  const lane = async (): Promise<void> => {
    while (next < first + count) await live(door, next++)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** What the host and workerd hold open. */
function openFiles(door: FrontDoor): number {
  return readProcessCounts(door.host.pid).fds + readProcessCounts(door.workerd ?? door.host.pid).fds
}

/** Files of the data folder but for databases' own, which come and go. */
function listFiles(door: FrontDoor): string[] {
  const all = readdirSync(door.data, { recursive: true, encoding: 'utf8' })
  return all.filter((name) => !/\.sqlite(-wal|-shm)?$/.test(name)).toSorted()
}

/**
 * Makes and destroys sandboxes, and says what is left of them: processes, mounts, control groups, loop devices, sockets, files,
 * descriptors and dead children of the programs that run on. Nothing, when all is well.
 */
export async function findLeaks(door: FrontDoor, count: number): Promise<string[]> {
  await liveMany(door, 0, WARM_UP)
  const before = {
    files: listFiles(door),
    fds: openFiles(door),
    zombies: readProcessCounts(door.host.pid).zombies,
  }
  await liveMany(door, WARM_UP, count)
  const ids = [...door.ids]
  const left = (): string[] => [
    ...ids.flatMap((id) => door.traces(id)),
    ...listFiles(door).filter((file) => !before.files.includes(file)),
    ...(openFiles(door) > before.fds + SPARE_FDS
      ? [`${openFiles(door)} descriptors, before ${before.fds}`]
      : []),
    ...(readProcessCounts(door.host.pid).zombies > before.zombies ? ['dead children of the host'] : []),
  ]
  await eventually(() => left().length === 0, { what: 'nothing to be left', ...WAIT }).catch(() => undefined)
  return left()
}
