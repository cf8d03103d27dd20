import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually, isAlive, rejectionOf } from '@sandwire/testing'
import { Attached, endSession, runShell } from './support/attached.ts'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { readFileLines } from './support/lines.ts'

const MODES = ['pipe', 'pty'] as const
let sandboxd: RunningSandboxd

beforeAll(async () => {
  sandboxd = await startSandboxd()
})
afterAll(() => sandboxd.stop())

interface View {
  readonly state: string
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null
}

async function view(session: string): Promise<View | undefined> {
  const response = await sandboxd.fetch(`/sessions/${session}`)
  return response.status === 200 ? ((await response.json()) as View) : undefined
}

async function isGone(session: string): Promise<boolean> {
  return (await view(session)) === undefined
}

/** Reads the pids that a script wrote into a file, one per line. */
async function pidsOf(file: string, count: number): Promise<number[]> {
  const lines = await eventually(
    async () => {
      const found = await readFileLines(file)
      return found.length >= count ? found : undefined
    },
    { what: `${count} pids` },
  )
  return lines.map(Number)
}

const pidFile = () => join(sandboxd.workspace, `pids-${crypto.randomUUID()}`)
const allDead = (pids: readonly number[]) => () => !pids.some(isAlive)

/** A leader with a child in its group, one that ignores SIGTERM, one in its own session, and a double fork. */
function family(file: string): string {
  return [
    `echo $$ >>${file}`,
    `sh -c 'echo $$ >>${file}; exec sleep 600' &`,
    `sh -c 'trap "" HUP TERM INT; echo $$ >>${file}; while :; do sleep 1; done' &`,
    `setsid sh -c 'echo $$ >>${file}; exec sleep 600' &`,
    `(setsid sh -c 'trap "" HUP TERM; echo $$ >>${file}; while :; do sleep 1; done' &) &`,
    `nohup sh -c 'echo $$ >>${file}; exec sleep 600' >/dev/null 2>&1 &`,
    'wait; sleep 600',
  ].join('\n')
}

describe('a signal', () => {
  test.concurrent.each(MODES)('[T2] reaches the whole process group (%s)', async (mode) => {
    const file = pidFile()
    const script = `sh -c 'trap "echo child >>${file}; exit" TERM; echo up >>${file}; while :; do sleep 0.05; done' &
      trap 'echo leader >>${file}; wait; exit 9' TERM; echo up >>${file}; while :; do sleep 0.05; done`
    await using client = runShell(sandboxd, script, { mode })
    await pidsOf(file, 2)
    client.handle.signal('SIGTERM')
    expect(await client.exit).toMatchObject({ code: 9 })
    expect((await readFileLines(file)).filter((line) => line !== 'up').sort()).toEqual(['child', 'leader'])
  })

  test.concurrent.each(['SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGKILL'])(
    '%s ends a process that does not handle it',
    async (signal) => {
      await using client = runShell(sandboxd, 'echo up; exec sleep 600')
      await client.waitFor('up')
      client.handle.signal(signal)
      expect(await client.exit).toMatchObject({ code: null, signal })
    },
  )

  test.concurrent('can be sent over HTTP', async () => {
    await using client = runShell(sandboxd, 'echo up; exec sleep 600')
    await client.waitFor('up')
    const response = await sandboxd.fetch(`/sessions/${client.session}/signal`, {
      method: 'POST',
      body: JSON.stringify({ signal: 'SIGTERM' }),
    })
    expect(response.status).toBe(200)
    expect(await client.exit).toMatchObject({ signal: 'SIGTERM' })
  })

  test.concurrent('stops and continues a process', async () => {
    await using client = runShell(sandboxd, 'echo up; exec cat')
    await client.waitFor('up')
    client.handle.signal('SIGSTOP')
    await client.send('text\n')
    client.handle.signal('SIGCONT')
    await client.waitFor('text')
  })
})

describe('ending a session', () => {
  test.concurrent.each(MODES)('[X11] leaves no descendant process (%s)', async (mode) => {
    const file = pidFile()
    await using client = runShell(sandboxd, family(file), { mode })
    const pids = await pidsOf(file, 6)
    await endSession(sandboxd, client.session)
    await eventually(allDead(pids), { what: 'every process to end' })
    expect(await client.exit).toMatchObject({ code: null })
  })

  test.concurrent('[X1] sends attached clients the actual exit', async () => {
    const script = `trap 'echo bye; exit 12' HUP TERM; echo up; while :; do sleep 0.05; done`
    await using driver = runShell(sandboxd, script)
    await driver.waitFor('up')
    await using viewer = new Attached(sandboxd, { session: driver.session, role: 'viewer' })
    await viewer.isAttached()
    await endSession(sandboxd, driver.session)
    expect(await driver.exit).toMatchObject({ code: 12 })
    expect(await viewer.exit).toMatchObject({ code: 12 })
    expect([driver.text, viewer.text]).toEqual(['up\nbye\n', 'up\nbye\n'])
    await eventually(() => isGone(driver.session), { what: 'the session to be gone' })
  })

  test.concurrent('[X11] reports the signal when the process had to be killed', async () => {
    await using client = runShell(sandboxd, `trap '' HUP TERM; echo up; while :; do sleep 0.05; done`)
    await client.waitFor('up')
    await endSession(sandboxd, client.session)
    expect(await client.exit).toMatchObject({ code: null, signal: 'SIGKILL' })
  })

  test.concurrent('that has exited removes it', async () => {
    await using client = runShell(sandboxd, 'true')
    await client.exit
    const { session } = client
    expect((await view(session))?.state).toBe('exited')
    await endSession(sandboxd, session)
    await eventually(() => isGone(session), { what: 'the session to be gone' })
  })
})

describe('keep', () => {
  test.concurrent('[C8] ends the process of a session without a connection after its time', async () => {
    const file = pidFile()
    await using client = runShell(sandboxd, family(file), { keepSeconds: 1 })
    const pids = await pidsOf(file, 6)
    await client.isAttached()
    const { session } = client
    client.handle.detach()
    expect(pids.every(isAlive)).toBe(true)
    await eventually(allDead(pids), { what: 'every process to end' })
    await eventually(() => isGone(session), { what: 'the session to be gone' })
  })

  test.concurrent('does not expire while a client is attached', async () => {
    await using driver = runShell(sandboxd, 'cat', { keepSeconds: 1 })
    await driver.isAttached()
    await using viewer = new Attached(sandboxd, { session: driver.session, role: 'viewer' })
    await viewer.isAttached()
    driver.handle.detach()
    await Bun.sleep(1_500)
    expect((await view(driver.session))?.state).toBe('running')
  })

  test.concurrent.each(MODES)('[C9] of 0 ends the process with the connection (%s)', async (mode) => {
    const file = pidFile()
    await using client = runShell(sandboxd, family(file), { keepSeconds: 0, mode })
    const pids = await pidsOf(file, 6)
    client.handle.detach()
    await eventually(allDead(pids), { what: 'every process to end' })
  })

  test.concurrent('[X3] keeps the exit and the output for a late attachment', async () => {
    await using first = runShell(sandboxd, 'echo out; echo err >&2; exit 21')
    await first.exit
    await using late = new Attached(sandboxd, { session: first.session })
    expect(await late.exit).toMatchObject({ code: 21, outputEnd: 8 })
    expect([late.stdout.text, late.stderr.text]).toEqual(['out\n', 'err\n'])
  })

  test.concurrent('[C8] expires after an exit', async () => {
    await using client = runShell(sandboxd, 'true', { keepSeconds: 1 })
    await client.exit
    const { session } = client
    await eventually(() => isGone(session), { what: 'the session to be gone' })
    const late = new Attached(sandboxd, { session })
    expect(await rejectionOf(late.exit)).toMatchObject({ code: 'session_gone' })
  })

  test.concurrent('allows a session without attachments, created by POST and read later', async () => {
    const createId = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
    const body = JSON.stringify({
      createId,
      cmd: 'sh',
      args: ['-c', 'echo "$WORD"; exit 5'],
      env: { WORD: 'hi' },
    })
    const created = (await (await sandboxd.fetch('/sessions', { method: 'POST', body })).json()) as {
      id: string
    }
    await eventually(async () => (await view(created.id))?.exit?.code === 5, { what: 'the exit' })
    const output = await sandboxd.fetch(`/sessions/${created.id}/output`)
    expect(await output.text()).toBe('hi\n')
    expect(output.headers.get('sandwire-state')).toBe('exited')
    await endSession(sandboxd, created.id)
  })
})

describe('a plain connection', () => {
  test.concurrent.each(['close', 'terminate'] as const)(
    '[P6] that ends by %s ends its processes',
    async (how) => {
      const file = pidFile()
      const query = new URLSearchParams([
        ['cmd', 'sh'],
        ['arg', '-c'],
        ['arg', family(file)],
      ])
      const client = await connectPlain(sandboxd.socketUrl(`/attach?${query}`), { headers: sandboxd.headers })
      const pids = await pidsOf(file, 6)
      if (how === 'close') await client.close()
      else client.terminate()
      await eventually(allDead(pids), { what: 'every process to end' })
    },
  )
})

test('[C6] a session that never received hello starts no process and frees its slot', async () => {
  const before = ((await (await sandboxd.fetch('/sessions')).json()) as { sessions: unknown[] }).sessions
    .length
  const file = join(sandboxd.workspace, 'never')
  const query = new URLSearchParams([
    ['cmd', 'touch'],
    ['arg', file],
  ])
  const options: unknown = { headers: sandboxd.headers, protocols: ['sandwire.v1'] }
  const socket = new WebSocket(sandboxd.socketUrl(`/attach?${query}`), options as string[])
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  socket.close()
  await eventually(
    async () =>
      ((await (await sandboxd.fetch('/sessions')).json()) as { sessions: unknown[] }).sessions.length <=
      before,
    { what: 'the slot to be free' },
  )
  expect(await Bun.file(file).exists()).toBe(false)
})

describe('timeouts of a session', () => {
  test('[C14] [C15] end a running process, and its client learns why', async () => {
    for (const request of [{ lifetimeSeconds: 1 }, { idleSeconds: 1 }]) {
      await using client = new Attached(sandboxd, { cmd: 'sleep', args: ['600'], mode: 'pipe', ...request })
      expect(await client.handle.exit).toMatchObject({ code: null, signal: 'SIGHUP' })
      expect(client.warnings).toEqual(['timed_out'])
    }
  })

  test("[C14] [C15] are at most the operator's, also for sessions that request none", async () => {
    await using limited = await startSandboxd({ args: ['--max-lifetime-seconds', '1'] })
    await using client = new Attached(limited, { cmd: 'cat', mode: 'pty', lifetimeSeconds: 600 })
    expect(await client.handle.exit).toMatchObject({ signal: 'SIGHUP' })
    const plain = await connectPlain(limited.socketUrl('/attach?cmd=cat'), { headers: limited.headers })
    expect(await plain.closed).toMatchObject({ code: 1000 })
  })
})
