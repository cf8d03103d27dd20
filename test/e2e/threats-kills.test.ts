import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  eventually,
  isAlive,
  openRawTcp,
  Random,
  readDescendants,
  readProcessCounts,
} from '@sandwire/testing'
import { startCli } from './cli-runner.ts'
import { type Attached, readShell, runShell } from './support/attached.ts'
import { commandOf, Deployment } from './support/deployment.ts'

/** How soon a dead sandbox is told to be one, and how soon nothing is left of what ends with it. */
const SOON = { timeoutMs: 5_000 }
/** Bounds "never". */
const WAIT = { timeoutMs: 30_000 }

/** Processes that will not go: in a session of their own, forked twice, deaf to signals. */
const STUBBORN = [
  'setsid -f sleep MARK',
  '(nohup sleep MARK >/dev/null 2>&1 &)',
  '(sh -c "(sleep MARK &)" &)',
  `setsid -f sh -c 'trap "" TERM HUP INT QUIT; while :; do sleep MARK; done'`,
]

let deployment: Deployment
beforeEach(async () => {
  deployment = await Deployment.open()
})
afterEach(async () => {
  await deployment.clear()
  await deployment.waitUntilGone()
  await deployment[Symbol.asyncDispose]()
})

/** A sandbox full of what does not want to go; answers everything that its supervisor holds. */
async function fill(name: string): Promise<{ readonly id: string; readonly pids: readonly number[] }> {
  const { id } = await deployment.create(name)
  const mark = `86${String(Math.random()).slice(2, 8)}`
  const script = STUBBORN.map((line) => line.replaceAll('MARK', mark)).join('; ')
  // The session goes on, because its end takes everything along that it began.
  const client = runShell(
    deployment.sandbox(name),
    `{ ${script}; } </dev/null >/dev/null 2>&1; echo done; exec sleep 1000`,
  )
  await client.waitFor('done')
  client.handle.detach()
  const sleepers = (): number =>
    readDescendants(deployment.supervisor(id)).filter(({ pid }) => commandOf(pid) === `sleep\0${mark}\0`)
      .length
  await eventually(() => sleepers() >= STUBBORN.length, { what: 'the stubborn processes', ...WAIT })
  return { id, pids: await settled(deployment.supervisor(id)) }
}

/** Everything below a process, once nothing has come or gone there for a while: what only starts others ends by itself. */
async function settled(supervisor: number): Promise<readonly number[]> {
  let last = ''
  let same = 0
  return eventually(
    () => {
      const pids = readDescendants(supervisor).map(({ pid }) => pid)
      same = pids.join() === last ? same + 1 : 0
      last = pids.join()
      return same >= 20 ? pids : undefined
    },
    { what: 'processes that stay', ...WAIT },
  )
}

/** A client that counts aloud what it is told, so that a byte lost or doubled shows. */
function count(name: string): Attached {
  return runShell(
    deployment.sandbox(name),
    'n=0; while read line; do n=$((n+1)); echo "$n $line"; done; exit 7',
  )
}

class Counted {
  readonly client: Attached
  #expected = ''
  #lines = 0

  constructor(name: string) {
    this.client = count(name)
  }

  async goesOn(): Promise<void> {
    this.#lines += 1
    const line = `line ${this.#lines}`
    this.#expected += `${this.#lines} ${line}\n`
    await this.client.send(`${line}\n`)
    await eventually(() => this.client.stdout.length >= this.#expected.length, { what: 'the echo', ...WAIT })
    expect(this.client.text).toBe(this.#expected)
  }

  async ends(): Promise<void> {
    this.client.handle.eof()
    expect((await this.client.exit).code).toBe(7)
    expect(this.client.text).toBe(this.#expected)
  }
}

/** How an attachment whose process is gone ends: never as if the process had ended by itself. */
async function failureOf(client: Attached): Promise<string> {
  const outcome = client.exit.then(
    ({ code, signal }) => `exit ${code} ${signal}`,
    (error: unknown) => String(Reflect.get(Object(error), 'code')),
  )
  return Promise.race([outcome, Bun.sleep(WAIT.timeoutMs).then(() => 'nothing')])
}

describe('kill -9 (threat T40)', () => {
  test('of sandboxd ends its sandbox, which is told, and starts again with its files', async () => {
    const { id, pids } = await fill('dev')
    await readShell(deployment.sandbox('dev'), 'echo kept > file; sync')
    const client = runShell(deployment.sandbox('dev'), 'echo ready; sleep 1000')
    await client.waitFor('ready')
    const cli = startCli([...deployment.cli('dev'), '--cmd', 'cat'], deployment.env)
    void cli.stdin.write('typed\n')
    await cli.stdout.getReader().read()
    process.kill(deployment.sandboxd(id), 'SIGKILL')
    const stopped = await eventually(
      async () => {
        const { state, reason } = await deployment.describe('dev')
        return state === 'stopped' ? { reason } : undefined
      },
      { what: 'the sandbox to be told stopped', ...SOON },
    )
    expect(stopped.reason).not.toBeNull()
    await eventually(() => !pids.some(isAlive), { what: 'every process to be gone', ...SOON })
    expect(await failureOf(client)).toBe('sandbox_stopped')
    expect(await cli.exited).toBe(255)
    expect(await readShell(deployment.sandbox('dev'), 'cat file')).toBe('kept\n')
  })

  test('of sandboxd is told when nobody is attached, too', async () => {
    const { id } = await fill('dev')
    process.kill(deployment.sandboxd(id), 'SIGKILL')
    await eventually(async () => (await deployment.describe('dev')).state === 'stopped', {
      what: 'the sandbox to be told stopped',
      ...SOON,
    })
    expect(await deployment.list()).toEqual([expect.objectContaining({ state: 'stopped' })])
  })

  test('of a supervisor takes its sandbox along, which is told, and starts again with its files', async () => {
    const { id, pids } = await fill('dev')
    await readShell(deployment.sandbox('dev'), 'echo kept > file; sync')
    const client = runShell(deployment.sandbox('dev'), 'echo ready; sleep 1000')
    await client.waitFor('ready')
    process.kill(deployment.supervisor(id), 'SIGKILL')
    await eventually(() => !pids.some(isAlive), { what: 'every process to be gone', ...SOON })
    await eventually(async () => (await deployment.describe('dev')).state === 'stopped', {
      what: 'the sandbox to be told stopped',
      ...SOON,
    })
    expect(await failureOf(client)).toBe('sandbox_stopped')
    expect(await readShell(deployment.sandbox('dev'), 'cat file')).toBe('kept\n')
  })

  test('of workerd and of the host, in any order, costs an attached client nothing', async () => {
    await deployment.create('dev')
    const counted = new Counted('dev')
    await counted.goesOn()
    const random = new Random(40)
    for (const what of random.shuffle(['workerd', 'host', 'both', 'workerd', 'host'])) {
      if (what !== 'host') await deployment.killWorkerd()
      if (what !== 'workerd') {
        await deployment.killHost()
        // What is sent meanwhile is neither lost nor sent twice.
        const sent = counted.goesOn()
        await deployment.restart()
        await sent
      }
      await counted.goesOn()
    }
    await counted.ends()
  }, 120_000)

  test.each([1, 2, 3])(
    'of everything at once, in random order %d, leaves what is to live on and nothing else',
    async (seed) => {
      const { id, pids } = await fill('killed')
      const kept = await fill('kept')
      const kills: readonly (() => void)[] = [
        () => process.kill(deployment.sandboxd(id), 'SIGKILL'),
        () => process.kill(deployment.supervisor(id), 'SIGKILL'),
        () => process.kill(deployment.workerd ?? 0, 'SIGKILL'),
        () => deployment.host.kill('SIGKILL'),
      ]
      for (const kill of new Random(seed).shuffle(kills))
        try {
          kill()
        } catch {
          // One of the others took it along.
        }
      await deployment.host.exited
      await eventually(() => !pids.some(isAlive), { what: 'every process to be gone', ...SOON })
      expect(kept.pids.filter((pid) => !isAlive(pid))).toEqual([])
      await deployment.restart()
      expect((await deployment.describe('kept')).state).toBe('running')
      expect((await deployment.describe('killed')).state).toBe('stopped')
      await deployment.destroy('kept')
      await eventually(() => !kept.pids.some(isAlive), { what: 'every process to be gone', ...SOON })
      await deployment.waitUntilGone(kept.id)
    },
  )
})

test('workerd that ran out of descriptors is back when they are free, and costs an attached client nothing (threat T31)', async () => {
  await deployment.create('dev')
  const counted = new Counted('dev')
  await counted.goesOn()
  const workerd = await eventually(() => deployment.workerd, { what: 'workerd', ...WAIT })
  const limit = `--nofile=${readProcessCounts(workerd).fds + 20}`
  expect(Bun.spawnSync(['prlimit', '--pid', String(workerd), limit]).exitCode).toBe(0)
  const greedy = await Promise.all(
    Array.from({ length: 200 }, () => openRawTcp(deployment.host).catch(() => undefined)),
  )
  await counted.goesOn()
  for (const tcp of greedy) tcp?.reset()
  await counted.goesOn()
  await counted.ends()
})
