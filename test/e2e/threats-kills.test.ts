import { statSync } from 'node:fs'
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

/** Time to report a dead sandbox as stopped and to remove everything of it. */
const SOON = { timeoutMs: 5_000 }
/** Upper bound for everything else. */
/** Time for an attachment to end. */
const END_MS = 60_000

/** Processes that are hard to end: in their own session, forked twice, or ignoring signals. */
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

/** Starts a sandbox with processes that are hard to end, and returns all descendants of its supervisor. */
async function fill(name: string): Promise<{ readonly id: string; readonly pids: readonly number[] }> {
  const { id } = await deployment.create(name)
  const mark = `86${String(Math.random()).slice(2, 8)}`
  const script = STUBBORN.map((line) => line.replaceAll('MARK', mark)).join('; ')
  // The session keeps running, because its end would end its processes.
  const client = runShell(
    deployment.sandbox(name),
    `{ ${script}; } </dev/null >/dev/null 2>&1; echo done; exec sleep 1000`,
  )
  await client.waitFor('done')
  client.handle.detach()
  const sleepers = (): number =>
    readDescendants(deployment.supervisor(id)).filter(({ pid }) => commandOf(pid) === `sleep\0${mark}\0`)
      .length
  await eventually(() => sleepers() >= STUBBORN.length, { what: 'the stubborn processes' })
  return { id, pids: await settled(deployment.supervisor(id)) }
}

/** The descendants of a process, once they have not changed for a while: launchers exit by themselves. */
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
    { what: 'a stable process tree' },
  )
}

/** Attaches to a program that numbers its input lines, so that a lost or repeated byte shows. */
function runCounter(name: string): Attached {
  return runShell(
    deployment.sandbox(name),
    'n=0; while read line; do n=$((n+1)); echo "$n $line"; done; exit 7',
  )
}

class CounterSession {
  readonly client: Attached
  #expected = ''
  #lines = 0

  constructor(name: string) {
    this.client = runCounter(name)
  }

  async continues(): Promise<void> {
    this.#lines += 1
    const line = `line ${this.#lines}`
    this.#expected += `${this.#lines} ${line}\n`
    await this.client.send(`${line}\n`)
    await eventually(() => this.client.stdout.length >= this.#expected.length, { what: 'the echo' })
    expect(this.client.text).toBe(this.#expected)
  }

  async ends(): Promise<void> {
    this.client.handle.eof()
    expect((await this.client.exit).code).toBe(7)
    expect(this.client.text).toBe(this.#expected)
  }
}

/** How an attachment ends: with an exit, or with an error code. */
async function failureOf(client: Attached): Promise<string> {
  const outcome = client.exit.then(
    ({ code, signal }) => `exit ${code} ${signal}`,
    (error: unknown) => String(Reflect.get(Object(error), 'code')),
  )
  return Promise.race([outcome, Bun.sleep(END_MS).then(() => 'nothing')])
}

describe('kill -9 (threat T40)', () => {
  test('of sandboxd stops its sandbox, which is reported, and starts again with its files', async () => {
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
      { what: 'the sandbox to be reported as stopped', ...SOON },
    )
    expect(stopped.reason).not.toBeNull()
    await eventually(() => !pids.some(isAlive), { what: 'every process to be gone', ...SOON })
    expect(await failureOf(client)).toBe('sandbox_stopped')
    expect(await cli.exited).toBe(255)
    expect(await readShell(deployment.sandbox('dev'), 'cat file')).toBe('kept\n')
  })

  test('of sandboxd is reported without attachments, too', async () => {
    const { id } = await fill('dev')
    process.kill(deployment.sandboxd(id), 'SIGKILL')
    await eventually(async () => (await deployment.describe('dev')).state === 'stopped', {
      what: 'the sandbox to be reported as stopped',
      ...SOON,
    })
    expect(await deployment.list()).toEqual([expect.objectContaining({ state: 'stopped' })])
  })

  test('of a supervisor stops its sandbox, which is reported, and starts again with its files', async () => {
    const { id, pids } = await fill('dev')
    await readShell(deployment.sandbox('dev'), 'echo kept > file; sync')
    const client = runShell(deployment.sandbox('dev'), 'echo ready; sleep 1000')
    await client.waitFor('ready')
    process.kill(deployment.supervisor(id), 'SIGKILL')
    await eventually(() => !pids.some(isAlive), { what: 'every process to be gone', ...SOON })
    await eventually(async () => (await deployment.describe('dev')).state === 'stopped', {
      what: 'the sandbox to be reported as stopped',
      ...SOON,
    })
    expect(await failureOf(client)).toBe('sandbox_stopped')
    expect(await readShell(deployment.sandbox('dev'), 'cat file')).toBe('kept\n')
  })

  test('of workerd and of the host, in any order, loses nothing of an attached client', async () => {
    await deployment.create('dev')
    const counted = new CounterSession('dev')
    await counted.continues()
    const random = new Random(40)
    for (const what of random.shuffle(['workerd', 'host', 'both', 'workerd', 'host'])) {
      if (what !== 'host') await deployment.killWorkerd()
      if (what !== 'workerd') {
        await deployment.killHost()
        // Input sent meanwhile is delivered exactly once.
        const sent = counted.continues()
        await deployment.restart()
        await sent
      }
      await counted.continues()
    }
    await counted.ends()
  })

  test.each([1, 2, 3])(
    'of all programs at once, in random order %d, leaves only the sandbox that was not killed',
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
          // Already ended with one of the others.
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

test('workerd recovers from running out of descriptors without loss to an attached client (threat T31)', async () => {
  await deployment.create('dev')
  const counted = new CounterSession('dev')
  await counted.continues()
  const workerd = await eventually(() => deployment.workerd, { what: 'workerd' })
  const limit = `--nofile=${readProcessCounts(workerd).fds + 20}`
  // As its own user: root needs CAP_SYS_RESOURCE for another user's process.
  const { uid } = statSync(`/proc/${workerd}`)
  const become =
    uid === process.getuid?.() ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--']
  expect(Bun.spawnSync([...become, 'prlimit', '--pid', String(workerd), limit]).exitCode).toBe(0)
  const greedy = await Promise.all(
    Array.from({ length: 200 }, () => openRawTcp(deployment.host).catch(() => undefined)),
  )
  await counted.continues()
  for (const tcp of greedy) tcp?.reset()
  await counted.continues()
  await counted.ends()
})
