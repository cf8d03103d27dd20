import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connectPlain, eventually } from '@sandwire/testing'
import { findBubblewrapProblem } from '../../apps/host/src/isolation/choose-isolation.ts'
import { SandboxManagerFixture } from './support/sandbox-manager-fixture.ts'

const problem = await findBubblewrapProblem()
const isRoot = process.getuid?.() === 0

let fixture: SandboxManagerFixture
let id: string
beforeAll(async () => {
  if (problem !== undefined) return
  fixture = await SandboxManagerFixture.open('bubblewrap')
  const spec = fixture.spec({ env: { GREETING: 'hello' } })
  ;({ id } = spec)
  await fixture.manager.start(spec)
})
afterAll(async () => {
  if (problem === undefined) await fixture[Symbol.asyncDispose]()
})

/** Finds sandboxd among the processes of its sandbox. */
const FIND = `D=$(for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q -- --public-key && basename $p && break; done)`

describe.if(problem === undefined)('a process in a bubblewrap sandbox', () => {
  test('runs with the environment of the sandbox', async () => {
    expect(
      await fixture.run(id, 'echo $GREETING; id -u; tty || true; echo x >/dev/stderr; echo y >/dev/stdout'),
    ).toContain('hello\n1000\n')
  })

  test('controls its terminal, and receives resizes and key signals', async () => {
    const status = await fixture.manager.status(id)
    if (status.state !== 'running') throw new Error(status.state)
    const target = '/attach?cmd=sh&mode=pty&cols=90&rows=30'
    const client = await connectPlain(fixture.socketUrl(status.address, target), {
      headers: await fixture.headersFor(id, 'GET', target),
    })
    // The shell reports that the command is in the foreground before it is interrupted.
    const last = `sh -c 'echo begun $((6 * 7)); exec sleep 100'`
    await client.sendInput(`stat -c "owner %u" $(tty); stty size; ${last}\n`)
    await eventually(() => client.stdout.text.includes('begun 42'), { what: 'the last' })
    expect(client.stdout.text).toContain('30 90')
    expect(client.stdout.text).toContain('owner 1000')
    await client.sendInput('\u0003')
    await client.sendInput('exit 9\n')
    await client.closed
    expect(client.exit).toMatchObject({ code: 9 })
  })

  test.if(isRoot)('(threat T11) can neither inspect nor signal sandboxd', async () => {
    const probes = [
      'cat /proc/$D/environ',
      'head -c1 /proc/$D/mem',
      'cat /proc/$D/maps',
      'ls /proc/$D/fd/',
      'ls /proc/$D/root/',
      'kill -STOP $D',
      'kill -KILL $D',
      'renice 5 $D',
    ]
    const script = probes.map((probe) => `(${probe}) >/dev/null 2>&1 && echo 'reached: ${probe}'`).join('; ')
    const output = await fixture.run(id, `${FIND}; echo "sandboxd is $D"; ${script}; echo done`)
    expect(output).toMatch(/^sandboxd is \d+\ndone\n$/)
  })

  test.if(isRoot)('(threat T11) cannot open the sockets of its sandbox', async () => {
    const output = await fixture.run(
      id,
      'ls -la /run/sandwire/ 2>&1; cat /run/sandwire/*.sock 2>&1; curl -s --unix-socket /run/sandwire/sandboxd.sock http://localhost/healthz || echo refused',
    )
    expect(output).not.toContain('"status"')
    expect(output).toContain('refused')
  })

  test('(threat T40) [X11] ends with its daemons, even in their own session and without an environment', async () => {
    const daemon = `(env -i setsid sh -c 'sleep 86200 &' >/dev/null 2>&1 </dev/null &)`
    const client = await fixture.attach(
      id,
      `${daemon}; sleep 0.3; pgrep -f '^sleep 86200' | wc -l; sleep 86201`,
    )
    await eventually(() => client.stdout.text.includes('1\n'), { what: 'the daemon' })
    client.terminate()
    await eventually(async () => (await fixture.run(id, `pgrep -f '^sleep 8620' | wc -l`)).trim() === '0', {
      what: 'every process to end',
    })
    expect(await fixture.run(id, `ps -eo stat= | grep -c '^Z'`)).toBe('0\n')
  })
})
