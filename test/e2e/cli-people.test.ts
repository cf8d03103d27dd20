import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { eventually } from '@sandwire/testing'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { type CliRun, finish, runCli, startCli } from './cli-runner.ts'
import { type RunningHost, startHost } from './support/control.ts'

const MAIN = resolve(import.meta.dir, '../../apps/cli/src/main.ts')
/** A cold start, and an issuer that is asked every five seconds. */
const TIMEOUT_MS = 90_000

/** The command line of somebody with a home of their own. */
class Person {
  readonly name: string
  readonly #env: Record<string, string | undefined>

  constructor(name: string) {
    this.name = name
    const home = join(folder, name)
    this.#env = { XDG_CONFIG_HOME: home, HOME: home, USER: name, SBX_URL: undefined, npm_command: undefined }
  }

  run(argv: readonly string[], input = ''): Promise<CliRun> {
    return runCli([process.execPath, MAIN, ...argv], { env: this.#env, input })
  }

  start(argv: readonly string[]) {
    return startCli([process.execPath, MAIN, ...argv], this.#env)
  }

  async login(): Promise<void> {
    const child = this.start(['login', host.url])
    await child.stdin.end()
    let shown = ''
    const following = (async () => {
      for await (const chunk of child.stderr) shown += new TextDecoder().decode(chunk)
    })()
    const find = (): string | undefined => /and type {2}(\S+)/.exec(shown)?.[1]
    await eventually(() => find() !== undefined, { what: 'a code is shown' })
    await issuer.approveDevice(find() ?? '', this.name)
    await Promise.all([following, child.exited])
    if (child.exitCode !== 0) throw new Error(shown)
  }
}

let folder: string
let issuer: TestIssuer
let host: RunningHost
let ann: Person
let bob: Person

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cli-people-'))
  issuer = await startIssuer()
  host = await startHost({
    env: {
      SANDWIRE_ISSUER: issuer.url,
      SANDWIRE_ISSUER_CLIENT_ID: issuer.clientId,
      SANDWIRE_ISSUER_AUDIENCE: issuer.audience,
    },
  })
  ann = new Person('ann')
  bob = new Person('bob')
  await Promise.all([ann.login(), bob.login()])
}, TIMEOUT_MS)
afterAll(async () => {
  await host?.stop()
  await issuer?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
}, TIMEOUT_MS)

/** Follows what a process prints. */
function follow(child: ReturnType<Person['start']>) {
  let output = ''
  const [mine, rest] = child.stdout.tee()
  void (async () => {
    for await (const chunk of mine) output += new TextDecoder().decode(chunk)
  })()
  Object.defineProperty(child, 'stdout', { value: rest })
  return { output: () => output, done: finish(child) }
}

test(
  'people sign in, and each has their own',
  async () => {
    expect((await ann.run(['whoami'])).stdout.toString()).toBe('Ann Archer\n')
    expect((await bob.run(['whoami'])).stdout.toString()).toBe('Bob Baker\n')
    expect(await ann.run(['create', 'dev'])).toMatchObject({ code: 0 })
    expect((await ann.run(['list'])).stdout.toString()).toContain('dev')
    expect((await bob.run(['list'])).stderr).toContain('no sandboxes yet')
  },
  TIMEOUT_MS,
)

test(
  'a session is shared, watched, and withdrawn',
  async () => {
    const driver = ann.start([
      host.url,
      '--sandbox',
      'dev',
      '--',
      'sh',
      '-c',
      'while read x; do echo got $x; done',
    ])
    const driven = follow(driver)
    void driver.stdin.write('one\n')
    await eventually(() => driven.output().includes('got one'), { what: 'output', timeoutMs: 20_000 })
    const { sessions } = JSON.parse((await ann.run(['sessions', '--json'])).stdout.toString()) as {
      sessions: { id: string; cmd: string }[]
    }
    const session = sessions.find(({ cmd }) => cmd.includes('sh'))?.id ?? ''
    const shared = await ann.run(['share', '--session', session])
    expect(shared.code).toBe(0)
    const joined = await bob.run(['join'], shared.stdout.toString())
    expect(joined.stderr).toContain('Ann Archer shares a session with you; you are a viewer')
    expect((await bob.run(['join'], shared.stdout.toString())).code).toBe(0)

    const viewer = bob.start([host.url, '--session', session, '--role', 'viewer'])
    const watched = follow(viewer)
    await eventually(() => watched.output().includes('got one'), {
      what: 'what was there',
      timeoutMs: 20_000,
    })
    void driver.stdin.write('two\n')
    await eventually(() => watched.output().includes('got two'), { what: 'what comes', timeoutMs: 20_000 })
    expect(
      (await bob.run([host.url, '--sandbox', session.slice(0, 32), '--no-create', '--', 'id'])).code,
    ).toBe(255)

    const { grants } = JSON.parse((await ann.run(['grants', 'dev', '--json'])).stdout.toString()) as {
      grants: { grant: string; name: string }[]
    }
    expect(grants.map(({ name }) => name)).toEqual(['Bob Baker'])
    expect(await ann.run(['revoke', grants[0]?.grant ?? ''])).toMatchObject({ code: 0 })
    const cut = await watched.done
    expect(cut.code).toBe(255)
    expect(cut.stderr).toContain('hint: ask the owner for a new link')
    await driver.stdin.end()
    expect(await driven.done).toMatchObject({ code: 0 })
  },
  TIMEOUT_MS,
)

test(
  'what is shared is left by who holds it',
  async () => {
    const shared = await ann.run(['share', 'dev', '--role', 'collaborator'])
    expect((await bob.run(['join'], shared.stdout.toString())).code).toBe(0)
    const held = await bob.run(['grants'])
    const [grant = ''] = /^[0-9a-z]{32}\.[0-9a-z]+/m.exec(held.stdout.toString()) ?? []
    const worker = bob.start([
      host.url,
      '--sandbox',
      grant.slice(0, 32),
      '--no-create',
      '--',
      'sh',
      '-c',
      'echo ready; cat',
    ])
    const working = follow(worker)
    await eventually(() => working.output().includes('ready'), { what: 'the attach', timeoutMs: 20_000 })
    expect(await bob.run(['leave', grant])).toMatchObject({ code: 0 })
    expect((await working.done).code).toBe(255)
    expect((await bob.run(['grants'])).stderr).toContain('nothing is shared with you')
    expect((await bob.run(['leave', grant])).code).toBe(255)
  },
  TIMEOUT_MS,
)

test(
  'what was done is written down',
  async () => {
    const { rows } = JSON.parse(
      (await ann.run(['audit', '--sandbox', 'dev', '--json'])).stdout.toString(),
    ) as {
      rows: { action: string; actorName: string }[]
    }
    expect(rows.map(({ action }) => action)).toContain('grant.create')
    expect(rows.map(({ actorName }) => actorName)).toContain('Bob Baker')
  },
  TIMEOUT_MS,
)

test(
  'signing in again cuts what is attached with the earlier sign-in, and is good itself',
  async () => {
    const attached = ann.start([host.url, '--sandbox', 'dev', '--', 'sh', '-c', 'echo ready; cat'])
    const followed = follow(attached)
    await eventually(() => followed.output().includes('ready'), { what: 'the attach', timeoutMs: 20_000 })
    await ann.login()
    expect((await followed.done).code).toBe(255)
    expect((await ann.run(['whoami'])).stdout.toString()).toBe('Ann Archer\n')
    const again = await ann.run([host.url, '--sandbox', 'dev', '--', 'echo', 'here'])
    expect(again.stdout.toString()).toBe('here\n')
  },
  TIMEOUT_MS,
)

test(
  'signing out cuts what is attached with the sign-in',
  async () => {
    const attached = ann.start([host.url, '--sandbox', 'dev', '--', 'sh', '-c', 'echo ready; cat'])
    const followed = follow(attached)
    await eventually(() => followed.output().includes('ready'), { what: 'the attach', timeoutMs: 20_000 })
    const out = await ann.run(['logout', host.url])
    expect(out).toMatchObject({ code: 0, stderr: `sbx-stdio: Signed out of ${new URL(host.url).host}\n` })
    expect((await followed.done).code).toBe(255)
    expect((await ann.run(['list', '--url', host.url])).stderr).toContain('or sign in: ')
  },
  TIMEOUT_MS,
)
