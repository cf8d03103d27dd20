import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { codeIn, JWT_SECRET, linkIn, ApiClient } from './support/api-client.ts'
import { RealSandboxes } from './support/real-sandboxes.ts'
import { helloText, mintHex, Wire } from './support/wire.ts'

/** Prints every line, resize and signal it receives. */
const WITNESS = [
  'stty -echo',
  'for s in INT TERM HUP QUIT; do trap "echo SIGNAL-$s" $s; done',
  'trap "echo RESIZED" WINCH',
  'echo READY',
  'while read -r line; do echo "READ $line $(stty size)"; done',
  'echo OVER',
].join('; ')

let sandboxes: RealSandboxes
let control: RunningControl
let driver: Wire
let session: string
beforeAll(async () => {
  sandboxes = new RealSandboxes()
  control = await startControl({ runner: sandboxes, bindings: { JWT_SECRET } })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})
beforeEach(async () => {
  const query = new URLSearchParams({ sandbox: 'dev', mode: 'pty', cmd: 'bash' })
  for (const arg of ['-c', WITNESS]) query.append('arg', arg)
  driver = new Wire(control, `/attach?${query}`, TOKEN)
  await driver.hello({ name: 'owner' })
  session = String((await driver.next('welcome'))['session'])
  await driver.waitFor('READY')
})
afterEach(() => driver[Symbol.asyncDispose]())

/** A service token user with a grant. */
async function invite(name: string, request: object): Promise<ApiClient> {
  const owner = new ApiClient(control, TOKEN)
  const made = await owner.post('/api/grants', { sandbox: 'dev', ...request })
  expect(made.status).toBe(201)
  const caller = await ApiClient.named(control, name)
  expect((await caller.post('/api/grants/redeem', { link: linkIn(made) })).status).toBe(200)
  return caller
}

function open({ bearer = '' }: ApiClient, path = `/terminal/${session}`): Wire {
  return new Wire(control, path, bearer)
}

/** The output of the process, after it has echoed a line of its driver. */
async function witnessed(): Promise<string> {
  await driver.send(new TextEncoder().encode('end\n'))
  await driver.waitFor('READ end')
  return driver.text.replaceAll('\r', '')
}
const NOTHING = 'READY\nREAD end 24 80\n'

describe('a viewer (threat T5)', () => {
  const stdin = new TextEncoder().encode('evil\n')
  const resize = { type: 'resize', at: 0, seq: 1, cols: 33, rows: 11 }
  const signal = { type: 'signal', at: 0, seq: 1, signal: 'SIGINT' }
  const eof = { type: 'eof', at: 0, seq: 1 }
  /** Frames to send in order, and the code that closes the connection; undefined: it stays open. */
  const attacks: readonly (readonly [
    string,
    readonly (object | string | Uint8Array<ArrayBuffer>)[],
    string?,
  ])[] = [
    ['input', ['HELLO', stdin], 'role_refused'],
    ['a resize', ['HELLO', resize], 'role_refused'],
    ['a signal', ['HELLO', signal], 'role_refused'],
    ['an end of input', ['HELLO', eof], 'role_refused'],
    ['a role', ['HELLO', { type: 'role', role: 'driver' }, stdin], 'bad_frame'],
    ['a prototype', ['HELLO', '{"__proto__":{"role":"driver"}}', stdin], 'bad_frame'],
    ['a take', ['HELLO', { type: 'take' }, stdin]],
    ['a gift', ['HELLO', { type: 'give', to: 'a2' }, stdin]],
    ['a hello as driver', [helloText({ role: 'driver' }), stdin], 'forbidden'],
    ['a hello as collaborator', [helloText({ role: 'collaborator' }), stdin], 'forbidden'],
    ['a hello with a prototype', [helloText().replace('{', '{"__proto__":{"role":"driver"},'), stdin]],
    ['input before hello', [stdin], 'bad_frame'],
    ['a resize before hello', [resize], 'bad_frame'],
    ['a signal before hello', [signal], 'bad_frame'],
    ['another hello', ['HELLO', helloText({ role: 'driver' }), stdin], 'bad_frame'],
  ]

  test('cannot reach the process with any frame', async () => {
    for (const [grant, name] of [
      [{}, 'vera'],
      [{ session }, 'sue'],
    ] as const) {
      const viewer = await invite(name, grant)
      for (const [what, frames, code] of attacks) {
        await using wire = open(viewer)
        for (const frame of frames) {
          if (frame === 'HELLO') {
            await wire.hello()
            expect(await wire.next('welcome')).toMatchObject({ role: 'viewer', authority: 'viewer' })
          } else await wire.send(frame)
        }
        // At the latest the last frame is refused, because it is input.
        const refusal = await wire.refusal()
        expect([what, refusal]).toEqual([what, code ?? refusal])
      }
    }
    expect(await witnessed()).toBe(NOTHING)
  })

  test('gets no other role by requesting it in the URL', async () => {
    const viewer = await invite('vic', {})
    for (const query of ['role=driver', 'role=collaborator', 'role=driver&take=1']) {
      await using wire = open(viewer, `/terminal/${session}?${query}`)
      await wire.hello()
      expect([query, await wire.refusal()]).toEqual([query, 'forbidden'])
    }
    await using taker = open(viewer, `/terminal/${session}?take=1`)
    await taker.hello()
    expect(await taker.next('welcome')).toMatchObject({ role: 'viewer', authority: 'viewer' })
    expect(await witnessed()).toBe(NOTHING)
  })
})

describe('a collaborator', () => {
  test('joins as collaborator by default, and as driver on request', async () => {
    const carl = await invite('carl', { role: 'collaborator' })
    await using helper = open(carl)
    await helper.hello()
    expect(await helper.next('welcome')).toMatchObject({ role: 'collaborator', authority: 'driver' })
    await helper.send(new TextEncoder().encode('from carl\n'))
    await driver.waitFor('READ from carl')
    await using taker = open(carl, `/terminal/${session}?role=driver&take=1`)
    await taker.hello()
    expect(await taker.next('welcome')).toMatchObject({ role: 'driver' })
  })

  test('has the name of their sign-in, whatever name they send', async () => {
    const carl = await invite('carl-2', { role: 'collaborator' })
    await using wire = open(carl)
    await wire.hello({ name: 'owner' })
    await wire.next('welcome')
    const names = await eventually(
      () => {
        const last = driver.of('presence').at(-1)
        const found = JSON.stringify(last ?? {})
        return found.includes('carl-2') ? found : undefined
      },
      { what: 'the presence of a collaborator' },
    )
    expect(names).not.toContain('local')
  })
})

describe('one shared session', () => {
  test('shows its presence and no other session (threat T4)', async () => {
    const query = 'sandbox=dev&cmd=cat'
    await using other = new Wire(control, `/attach?${query}`, TOKEN)
    await other.hello()
    const second = String((await other.next('welcome'))['session'])
    const sue = await invite('sue-2', { session })
    await using wire = open(sue)
    await wire.hello()
    await wire.next('welcome')
    expect(JSON.stringify(await wire.next('presence'))).toContain('owner')
    await driver.send(new TextEncoder().encode('shown\n'))
    await wire.waitFor('READ shown')
    await using elsewhere = open(sue, `/terminal/${second}`)
    await elsewhere.hello()
    expect(await elsewhere.refusal()).toBe('session_not_found')
    const output = (id: string) => sue.get(`/api/sandboxes/${id.split('.')[0] ?? ''}/sessions/${id}/output`)
    expect((await output(session)).status).toBe(200)
    expect(codeIn(await output(second))).toBe('404 session_not_found')
    expect(codeIn(await sue.delete(`/api/account/sessions/${session}`))).toBe('403 forbidden')
  })
})

describe("another's attachment (threat T42)", () => {
  test('cannot be resumed with its secret by another account, and continues', async () => {
    const identity = mintHex()
    const carl = await invite('carl-3', { role: 'collaborator' })
    await using mine = open(carl)
    await mine.hello({ identity })
    await mine.next('welcome')
    const dora = await invite('dora', { role: 'collaborator' })
    for (const resuming of [true, false]) {
      await using thief = open(dora, `/terminal/${session}?role=driver&take=1`)
      await thief.hello({ identity, resuming })
      expect([resuming, await thief.refusal()]).toEqual([resuming, 'resume_lost'])
    }
    await mine.send(new TextEncoder().encode('still me\n'))
    await driver.waitFor('READ still me')
    // Its own account can still resume it.
    await using back = open(carl)
    await back.hello({ identity, resuming: true })
    expect(await back.next('welcome')).toMatchObject({ role: 'collaborator' })
  })
})
