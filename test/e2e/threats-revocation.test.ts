import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import { finish, startCli } from './cli-runner.ts'
import { Attached, runShell } from './support/attached.ts'
import { Deployment } from './support/deployment.ts'
import { USERS_ENV, TestUser, mintToken } from './support/test-user.ts'

const CLI = resolve(import.meta.dir, '../../apps/cli/src/main.ts')
/** Revocation takes at most five seconds; the rest is for a loaded machine. */
const REVOKED_WITHIN = { timeoutMs: 6_000 }
/** Prints until it is ended. */
const ENDLESS = 'n=0; while :; do n=$((n+1)); echo "$n"; sleep 0.01; done'
const BLOCKS = 250
/** Prints numbers over several seconds. */
const COUNT = `i=0; while [ $i -lt ${BLOCKS} ]; do seq $((i*500)) $((i*500+499)); i=$((i+1)); sleep 0.03; done`

function countedSha256(): string {
  const hash = new Bun.CryptoHasher('sha256')
  for (let number = 0; number < BLOCKS * 500; number += 1) hash.update(`${number}\n`)
  return hash.digest('hex')
}

/** The error code of a failed attachment. */
function failure({ handle }: Attached): string | undefined {
  const status = handle.status.get()
  return status.kind === 'failed' ? status.error.code : undefined
}

let deployment: Deployment
let owner: TestUser
let bob: TestUser
beforeAll(async () => {
  deployment = await Deployment.open({ env: USERS_ENV })
  owner = new TestUser(deployment, deployment.host.token)
  bob = new TestUser(deployment, mintToken('bob'))
})
afterAll(() => deployment[Symbol.asyncDispose](), 120_000)

/** Log events of control about a sandbox. */
function eventsOf(sandbox: string): string[] {
  const lines = readFileSync(join(deployment.data, 'host.log'), 'utf8').split('\n')
  return lines
    .filter((line) => line.includes(`"sandbox":"${sandbox}"`))
    .map((line) => /"event":"([a-z_]+)"/.exec(line)?.[1] ?? '')
}

/** Joins a session and waits for its output. */
async function follow(user: TestUser, session: string): Promise<Attached> {
  const client = new Attached(user.server(), { session }, { output: 'digest', retryForMs: 60_000 })
  await eventually(() => client.stdout.length > 0, { what: 'output' })
  return client
}

async function stream(user: TestUser, sandbox: string): Promise<Attached> {
  const client = runShell(user.server(sandbox), ENDLESS, { output: 'digest', overflow: 'trim' })
  await eventually(() => client.stdout.length > 0, { what: 'output' })
  return client
}

async function expectMoreOutput(client: Attached): Promise<void> {
  const before = client.stdout.length
  await eventually(() => client.stdout.length > before, { what: 'more output' })
}

async function expectFailure(client: Attached, code: string): Promise<void> {
  await eventually(() => failure(client) !== undefined, { what: 'the disconnect', ...REVOKED_WITHIN })
  expect(failure(client)).toBe(code)
}

describe('while output streams', () => {
  test.concurrent('revoking a grant disconnects its client library and CLI, and no one else (threat T6)', async () => {
    await deployment.create('revoked')
    await using driver = await stream(owner, 'revoked')
    const grant = await owner.shareWith(bob, { sandbox: 'revoked' })
    await using guest = await follow(bob, driver.session)
    const url = `http://localhost:${deployment.host.port}/attach`
    const cli = startCli([process.execPath, CLI, url, '--session', driver.session], { SBX_TOKEN: bob.token })
    const first = await cli.stdout.getReader().read()
    expect(first.value?.byteLength).toBeGreaterThan(0)
    await owner.send('DELETE', `/api/grants/${grant}`)
    await expectFailure(guest, 'revoked')
    await eventually(() => cli.exitCode !== null, { what: 'the CLI to exit', ...REVOKED_WITHIN })
    expect(cli.exitCode).toBe(255)
    await expectMoreOutput(driver)
    expect(driver.reconnections).toBe(0)
    await using again = new Attached(bob.server(), { session: driver.session })
    await expectFailure(again, 'session_not_found')
  })

  test.concurrent('a sign-out disconnects its own clients, not other sign-ins of the account (threat T6)', async () => {
    await deployment.create('signed')
    await using driver = await stream(owner, 'signed')
    const laptop = new TestUser(deployment, mintToken('ada', { jti: 'laptop' }))
    const phone = new TestUser(deployment, mintToken('ada', { jti: 'phone' }))
    await owner.shareWith(laptop, { sandbox: 'signed' })
    await using revoked = await follow(laptop, driver.session)
    await using unaffected = await follow(phone, driver.session)
    await laptop.send('POST', '/api/signout')
    await expectFailure(revoked, 'revoked')
    await expectMoreOutput(unaffected)
    await expectMoreOutput(driver)
    await using again = new Attached(laptop.server(), { session: driver.session })
    await expectFailure(again, 'unauthorized')
  })

  test.concurrent('deleting an account disconnects all clients of its sandboxes, and it from others (threat T6)', async () => {
    const carol = new TestUser(deployment, mintToken('carol'))
    await deployment.create('kept')
    await using driver = await stream(owner, 'kept')
    await owner.shareWith(carol, { sandbox: 'kept' })
    const { id } = await carol.send('POST', '/api/sandboxes', { name: 'hers' })
    deployment.ids.add(String(id))
    await using home = await stream(carol, 'hers')
    await carol.shareWith(bob, { sandbox: String(id) })
    await using guest = await follow(bob, home.session)
    await using away = await follow(carol, driver.session)
    expect(await carol.send('DELETE', '/api/account', { confirm: 'carol' })).toEqual({ left: 0 })
    await expectFailure(away, 'revoked')
    // Disconnected, or the session's exit was sent first.
    for (const { handle } of [home, guest])
      await eventually(() => ['failed', 'exited'].includes(handle.status.get().kind), {
        what: 'the end',
        ...REVOKED_WITHIN,
      })
    await expectMoreOutput(driver)
    expect((await carol.fetch('/api/sandboxes')).status).toBe(401)
    await deployment.waitUntilGone(String(id))
  })
})

describe('while sandboxd is stopped', () => {
  // Killing control interrupts every other test, so that one runs alone.
  for (const kills of [false, true]) {
    const also = kills ? ' and control is killed' : ''
    const run = kills ? test : test.concurrent
    run(
      `revoking a grant still disconnects its clients${also}, and others lose nothing (threat T6)`,
      async () => {
        const name = kills ? 'killed' : 'still'
        const { id } = await deployment.create(name)
        await using driver = runShell(owner.server(name), COUNT, { output: 'digest', retryForMs: 120_000 })
        await eventually(() => driver.stdout.length > 0, { what: 'output' })
        const grant = await owner.shareWith(bob, { sandbox: name })
        await using guest = await follow(bob, driver.session)
        const daemon = deployment.sandboxd(id)
        process.kill(daemon, 'SIGSTOP')
        try {
          await owner.send('DELETE', `/api/grants/${grant}`)
          if (kills) await deployment.killWorkerd()
          await eventually(() => guest.reconnections > 0 || failure(guest) !== undefined, {
            what: 'the disconnect',
            ...REVOKED_WITHIN,
          })
          await eventually(() => failure(guest) !== undefined, { what: 'the refusal' })
          expect(failure(guest)).toBe('session_not_found')
        } finally {
          process.kill(daemon, 'SIGCONT')
        }
        expect((await driver.exit).code).toBe(0)
        expect(driver.stdout.sha256).toBe(countedSha256())
        expect(driver.gaps).toEqual([])
        expect(driver.reconnections).toBeGreaterThan(0)
        // Control stores the revocation and retries, across restarts, until sandboxd confirms it.
        await eventually(() => eventsOf(id).includes('disconnected'), { what: 'the confirmation' })
      },
      180_000,
    )
  }
})

describe('a collaborator that drives', () => {
  for (const how of ['starts it', 'takes it'] as const) {
    test.concurrent(`still drives after another account was disconnected: ${how} (threat T6)`, async () => {
      const name = how === 'starts it' ? 'begun' : 'taken'
      const { id } = await deployment.create(name)
      const ada = new TestUser(deployment, mintToken('ada'))
      await owner.shareWith(ada, { sandbox: name })
      const script = `${COUNT}; cat >&2`
      const options = { output: 'digest', retryForMs: 120_000 } as const
      await using starter = runShell((how === 'starts it' ? ada : owner).server(id), script, options)
      await eventually(() => starter.stdout.length > 0, { what: 'output' })
      const { session } = starter
      await using taker =
        how === 'starts it' ? undefined : new Attached(ada.server(), { session, take: true }, options)
      const driver = taker ?? starter
      await eventually(() => driver.handle.role === 'driver', { what: 'the lease' })
      const grant = await owner.shareWith(bob, { sandbox: name })
      await using guest = await follow(bob, session)
      const daemon = deployment.sandboxd(id)
      process.kill(daemon, 'SIGSTOP')
      try {
        await owner.send('DELETE', `/api/grants/${grant}`)
        await eventually(() => failure(guest) !== undefined, { what: 'the refusal' })
      } finally {
        process.kill(daemon, 'SIGCONT')
      }
      await eventually(() => driver.reconnections > 0, { what: 'the disconnect' })
      await expectMoreOutput(driver)
      expect(driver.handle.role).toBe('driver')
      driver.handle.resize(100, 30)
      await driver.send('last line')
      driver.handle.eof()
      expect((await driver.exit).code).toBe(0)
      expect(driver.stderr.sha256).toBe(new Bun.CryptoHasher('sha256').update('last line').digest('hex'))
      expect(starter.stdout.sha256).toBe(countedSha256())
      expect(driver.gaps).toEqual([])
    }, 180_000)
  }
})

test('the CLI prints that access was revoked (threat T6)', async () => {
  await deployment.create('reported')
  await using driver = await stream(owner, 'reported')
  const grant = await owner.shareWith(bob, { sandbox: 'reported' })
  const url = `http://localhost:${deployment.host.port}/attach`
  const cli = startCli([process.execPath, CLI, url, '--session', driver.session], { SBX_TOKEN: bob.token })
  const done = finish(cli)
  await eventually(() => driver.presences.at(-1)?.attachments.length === 2, { what: 'the guest' })
  await owner.send('DELETE', `/api/grants/${grant}`)
  const { code, stderr } = await done
  expect(code).toBe(255)
  expect(stderr).toContain('revoked')
})
