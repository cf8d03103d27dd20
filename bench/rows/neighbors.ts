import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openParts } from '../competitors.ts'
import { ATTACKED_ENV, Attacker, sendSmallRequest, timeEach, typeKey } from '../peers/attacker.ts'
import { createSandbox, destroySandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { attachStream } from '../peers/sandwire.ts'
import { awaitText } from '../peers/stream.ts'
import { atMost, below, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

const SANDBOX = 'home'
/** Sandboxes of the attacker, with one CPU each. */
const ATTACKING = ['attack-0', 'attack-1', 'attack-2', 'attack-3']
const FILE = `/api/workspaces/${SANDBOX}/file?path=small.bin`
const FILE_BYTES = 16 * 1024
/** More than any user has, within the limit of connections. */
const CONNECTIONS = 5_000
/** Time for an attack to begin, and duration of a measurement. */
const BEGIN_MS = 1_000
const MEASURE_MS = 3_000
/** Measurements take long enough that three are enough. */
const ROUNDS = 3

/** How the prompt of a login shell ends. */
const PROMPT = '$ '

/** In each sandbox of the attacker. */
const SPIN = 'for i in 1 2 3 4; do (while :; do :; done) & done; wait'
const WRITE = 'while :; do dd if=/dev/zero of=fill bs=1M count=256 conv=fsync; done'

/** What the attacker does; undone when disposed. */
type Attack = (attacker: Attacker) => Promise<AsyncDisposable>

/** Runs a script in every sandbox of the attacker, and restarts them at the end. */
function runEverywhere(script: string): Attack {
  const each = (attacker: Attacker, tail: string, body?: object): Promise<unknown> =>
    Promise.all(ATTACKING.map((name) => attacker.send('POST', `/api/sandboxes/${name}/${tail}`, body)))
  return async (attacker) => {
    await each(attacker, 'sessions', { cmd: 'sh', args: ['-c', script], overflow: 'trim' })
    return {
      [Symbol.asyncDispose]: async () => {
        await each(attacker, 'stop')
        await each(attacker, 'start')
      },
    }
  }
}

function flood(path: string, connections?: number): Attack {
  return async (attacker) => {
    const flooding = attacker.flood({
      path,
      credential: path === '' ? 'none' : 'account',
      ...(connections !== undefined && { connections }),
    })
    return { [Symbol.asyncDispose]: async () => flooding[Symbol.dispose]() }
  }
}

const ATTACKS = {
  idle: async () => ({ [Symbol.asyncDispose]: async () => undefined }),
  CPU: runEverywhere(SPIN),
  disk: runEverywhere(WRITE),
  requests: flood('/api/whoami'),
  connections: flood('', CONNECTIONS),
} as const satisfies Record<string, Attack>

type AttackName = keyof typeof ATTACKS
const NAMES = Object.keys(ATTACKS) as AttackName[]
const OTHERS = NAMES.filter((name) => name !== 'idle')

type Part = `${AttackName}, p${50 | 99}`
const PARTS = NAMES.flatMap((name): Part[] => [`${name}, p50`, `${name}, p99`])

async function measureAttacks(attacker: Attacker, run: () => Promise<void>): Promise<Record<Part, number>> {
  const figures: [Part, number][] = []
  for (const name of NAMES) {
    await using _ = await ATTACKS[name](attacker)
    await Bun.sleep(BEGIN_MS)
    const times = await timeEach(run, MEASURE_MS)
    figures.push([`${name}, p50`, quantile(times, 0.5)], [`${name}, p99`, quantile(times, 0.99)])
  }
  return Object.fromEntries(figures) as Record<Part, number>
}

/** A host with a sandbox of the local account, and an attacker beside it; `open` returns what is timed. */
function openNeighbors(open: (host: RunningHost) => Promise<() => Promise<void>>): Row['open'] {
  return async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: 'idle, p50', absent: problem }]
    return openHost(
      async (host) => {
        const attacker = new Attacker(host)
        for (const name of ATTACKING) await attacker.send('POST', '/api/sandboxes', { name })
        await createSandbox(host, SANDBOX)
        const run = await open(host)
        await run()
        return openParts({ parts: PARTS, measure: () => measureAttacks(attacker, run), close: host.stop })
      },
      { env: ATTACKED_ENV },
    )
  }
}

const common = { unit: 'ms', digits: 1, rounds: ROUNDS } as const
/** Half of the requests take as long as on an idle machine, give or take, and few are felt. */
const TARGETS = OTHERS.flatMap((name) => [
  atMost(`${name}, p50`, 'idle, p50', 3),
  below(`${name}, p99`, 100, 'ms'),
])

export const neighborRequest: Row = {
  ...common,
  id: 'neighbor-request',
  title: 'small request beside a noisy neighbor',
  about: '`GET /api/whoami` every 20 ms.',
  targets: TARGETS,
  open: openNeighbors(async (host) => () => sendSmallRequest(host)),
}

export const neighborEcho: Row = {
  ...common,
  id: 'neighbor-echo',
  title: 'echo beside a noisy neighbor',
  about: 'One byte through `cat` and back every 20 ms, through control.',
  targets: TARGETS,
  open: openNeighbors(async (host) => {
    const stream = await attachStream({ ...host, sandbox: SANDBOX }, { argv: ['cat'], mode: 'pipe' })
    return () => typeKey(stream)
  }),
}

export const neighborFile: Row = {
  ...common,
  id: 'neighbor-file',
  title: 'read of a small file beside a noisy neighbor',
  about: '16 KiB by `GET /api/workspaces/…/file` every 20 ms.',
  targets: TARGETS,
  open: openNeighbors(async (host) => {
    const body = crypto.getRandomValues(new Uint8Array(FILE_BYTES))
    const written = await host.fetch(FILE, { method: 'PUT', body })
    if (!written.ok) throw new Error(`Cannot write the file: ${written.status}`)
    return async () => {
      const { byteLength } = await (await host.fetch(FILE)).arrayBuffer()
      if (byteLength !== FILE_BYTES) throw new Error(`The file has ${byteLength} bytes`)
    }
  }),
}

export const neighborPrompt: Row = {
  ...common,
  digits: 0,
  id: 'neighbor-prompt',
  title: 'create a sandbox, see a prompt, beside a noisy neighbor',
  about: 'As `prompt`, and the removal of the sandbox.',
  targets: OTHERS.map((name) => atMost(`${name}, p50`, 'idle, p50', 3)),
  open: openNeighbors(async (host) => {
    let count = 0
    return async () => {
      const sandbox = `prompt-${count++}`
      const stream = await attachStream({ ...host, sandbox }, { argv: [], mode: 'pty' })
      await awaitText(stream, PROMPT)
      stream.close()
      await destroySandbox(host, sandbox)
    }
  }),
}
