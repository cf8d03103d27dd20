import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@sandwire/testing'
import { startIssuer, type TestIssuer } from '@sandwire/testing/issuer'
import { type CommandRun, runInProcess, startCommand } from '../../apps/cli/test/in-process.ts'
import { type CliRun, finish, MAIN, runCli, startCli } from './cli-runner.ts'
import { type RunningHost, startHost } from './support/control.ts'
import { waitForUserCode } from './support/sign-in-fixture.ts'

/** A cold start on a busy machine. */
const TIMEOUT_MS = 180_000

/** A user with a home folder and an account. */
class Person {
  readonly name: string
  readonly #env: Record<string, string | undefined>

  constructor(name: string) {
    this.name = name
    const home = join(folder, name)
    this.#env = { XDG_CONFIG_HOME: home, HOME: home, USER: name, SBX_URL: undefined, npm_command: undefined }
  }

  /** Runs a command in this process. */
  run(argv: readonly string[], input = ''): Promise<CommandRun> {
    return runInProcess(argv, { env: this.#env, input })
  }

  /** Attaches in a process of its own, to the end. */
  attach(argv: readonly string[]): Promise<CliRun> {
    return runCli([process.execPath, MAIN, host.url, ...argv], { env: this.#env, input: '' })
  }

  start(argv: readonly string[]) {
    return startCli([process.execPath, MAIN, ...argv], this.#env)
  }

  async login(): Promise<void> {
    const { stderr, done } = startCommand(['login', host.url], { env: this.#env })
    await issuer.approveDevice(await waitForUserCode(stderr), this.name)
    if ((await done).code !== 0) throw new Error(stderr())
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
  'users sign in and see their own sandboxes',
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
  'users cannot request more than a part of the machine',
  async () => {
    const asked = [
      ['--memory', '1T', 'of memory'],
      ['--cpus', '999', 'CPUs'],
      ['--disk', '900T', 'of disk space'],
      ['--network', 'open', 'may be none or allowlist'],
      ['--sleep-after', 'never', 'must stop after at most 86400 s'],
    ] as const
    for (const [option, value, reason] of asked) {
      const { code, stderr } = await bob.run(['create', 'huge', option, value])
      expect(code).toBe(255)
      expect(stderr).toContain('Cannot create the sandbox: ')
      expect(stderr).toContain(reason)
      expect(stderr).toContain('hint: see what you use and may use: ')
    }
    expect((await bob.run(['list'])).stderr).toContain('no sandboxes yet')
    expect((await ann.run(['usage'])).stdout.toString()).toMatch(/^running sandboxes +1 +\d+ /m)
    const { account } = JSON.parse((await bob.run(['usage', '--json'])).stdout.toString()) as {
      account: { memoryBytes: { used: number; limit: number } }
    }
    expect(account.memoryBytes.used).toBe(0)
    // Half of what may be promised, which is twice the memory of the machine, or of the control group of the host.
    expect(account.memoryBytes.limit).toBeWithin(1, totalmem() + 1)
  },
  TIMEOUT_MS,
)

test(
  'a session is shared, watched and revoked',
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
    await eventually(() => driven.output().includes('got one'), { what: 'output' })
    const { sessions } = JSON.parse((await ann.run(['sessions', '--json'])).stdout.toString()) as {
      sessions: { id: string; cmd: string }[]
    }
    const session = sessions.find(({ cmd }) => cmd.includes('sh'))?.id ?? ''
    const shared = await ann.run(['share', '--session', session])
    expect(shared.code).toBe(0)
    const joined = await bob.run(['join'], shared.stdout.toString())
    expect(joined.stderr).toContain('Ann Archer shared a session with you (role: viewer)')
    expect((await bob.run(['join'], shared.stdout.toString())).code).toBe(0)

    const viewer = bob.start([host.url, '--session', session, '--role', 'viewer'])
    const watched = follow(viewer)
    await eventually(() => watched.output().includes('got one'), {
      what: 'what was there',
    })
    void driver.stdin.write('two\n')
    await eventually(() => watched.output().includes('got two'), { what: 'what comes' })
    expect((await bob.attach(['--sandbox', session.slice(0, 32), '--no-create', '--', 'id'])).code).toBe(255)

    const { grants } = JSON.parse((await ann.run(['grants', 'dev', '--json'])).stdout.toString()) as {
      grants: { grant: string; name: string }[]
    }
    expect(grants.map(({ name }) => name)).toEqual(['Bob Baker'])
    const revoked = await ann.run(['revoke', grants[0]?.grant ?? '', '--end-sessions'])
    expect(revoked.code).toBe(0)
    expect(revoked.stderr).toContain('its sessions ended')
    const cut = await watched.done
    expect(cut.code).toBe(255)
    expect(cut.stderr).toContain('hint: ask the owner for a new link')
    await driver.stdin.end()
    expect(await driven.done).toMatchObject({ code: 0 })
  },
  TIMEOUT_MS,
)

test(
  'a holder gives up a grant',
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
    await eventually(() => working.output().includes('ready'), { what: 'the attach' })
    expect(await bob.run(['leave', grant])).toMatchObject({ code: 0 })
    expect((await working.done).code).toBe(255)
    expect((await bob.run(['grants'])).stderr).toContain('nothing is shared with you')
    expect((await bob.run(['leave', grant])).code).toBe(255)
  },
  TIMEOUT_MS,
)

test(
  'the audit log has the actions of both users',
  async () => {
    // Sandboxes deliver their entries in the background.
    await eventually(
      async () => {
        const { stdout } = await ann.run(['audit', '--sandbox', 'dev', '--json'])
        const { rows } = JSON.parse(stdout.toString()) as { rows: { action: string; actorName: string }[] }
        return (
          rows.some(({ action }) => action === 'grant.create') &&
          rows.some(({ actorName }) => actorName === 'Bob Baker')
        )
      },
      { what: 'the entries of both users' },
    )
  },
  TIMEOUT_MS,
)

function factsOf(folder: string): string {
  const find = ['find', '.', '-mindepth', '1', '-printf', '%P\\t%y%m\\t%TY-%Tm-%Td %TT\\t%l\\0']
  return Bun.spawnSync(find, { cwd: folder }).stdout.toString('latin1').split('\0').toSorted().join('\n')
}

/** Runs something in Ann's sandbox "box". */
function inBox(...command: string[]): Promise<CliRun> {
  return ann.attach(['--sandbox', 'box', '--', ...command])
}

test(
  'copies files and folders to a sandbox of a real server and back',
  async () => {
    const here = mkdtempSync(join(folder, 'copy-'))
    const tree = join(here, 'tree')
    mkdirSync(join(tree, 'sub/empty'), { recursive: true })
    writeFileSync(join(tree, 'sub/run'), '#!/bin/sh\necho ran\n')
    chmodSync(join(tree, 'sub/run'), 0o755)
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0x0a, 0x62])]), 'odd')
    writeFileSync(join(tree, 'large'), Buffer.alloc(20_000_000, 'large '))
    symlinkSync('../large', join(tree, 'sub/link'))
    for (const path of ['sub/run', 'large', 'sub/empty', 'sub', ''])
      utimesSync(join(tree, path), 1_600_000_000, 1_600_000_000)
    expect((await ann.run(['create', 'box', '--no-start'])).code).toBe(0)

    const up = await ann.run(['cp', tree, 'box:'])
    expect([up.stderr, up.code]).toEqual(['sbx-stdio: starting box\n', 0])
    const listed = await ann.run(['ls', 'box:tree/sub'])
    expect([listed.stdout.toString(), listed.code]).toEqual(['empty\nlink\nrun\n', 0])
    const ran = await inBox('sh', '-c', 'tree/sub/run; id -u; stat -c %u tree/large; wc -c < tree/sub/link')
    const [said, uid, owner, size] = ran.stdout.toString().trim().split('\n')
    expect([said, owner === uid, size]).toEqual(['ran', true, '20000000'])

    const down = await ann.run(['cp', 'box:tree', join(here, 'back')])
    expect([down.stderr, down.code]).toEqual(['', 0])
    expect(Bun.spawnSync(['diff', '-r', tree, join(here, 'back')]).stdout.toString()).toBe('')
    expect(factsOf(join(here, 'back')).replaceAll(/\.[0-9]+/g, '')).toBe(
      factsOf(tree).replaceAll(/\.[0-9]+/g, ''),
    )
    // Once more, into folders that are as they were copied.
    chmodSync(join(tree, 'sub'), 0o555)
    expect((await ann.run(['cp', `${tree}/.`, 'box:tree'])).code).toBe(0)
    writeFileSync(join(tree, 'sub/run'), 'other')
    expect((await ann.run(['cp', `${tree}/.`, 'box:tree'])).code).toBe(0)
    const seen = await inBox('sh', '-c', 'cat tree/sub/run; stat -c %a tree/sub')
    expect(seen.stdout.toString()).toBe('other555\n')
    const missing = await ann.run(['cp', 'box:nothing', here])
    expect([missing.stderr.split('\n')[0], missing.code]).toEqual([
      'sbx-stdio: Cannot copy "nothing": no such file in the sandbox',
      2,
    ])
    expect((await ann.run(['ls', 'nowhere:'])).stderr.split('\n')[0]).toContain('sandbox')
  },
  TIMEOUT_MS,
)

test(
  'the interface of an agent is refused with what the operator must set',
  async () => {
    const refused = await ann.attach(['--sandbox', 'dev', '--', 'claude'])
    expect(refused).toMatchObject({ code: 255, stdout: Buffer.alloc(0) })
    expect(refused.stderr.split('\n')[0]).toContain(
      'Cannot start the agent: no key of the model API is configured; set ANTHROPIC_API_KEY',
    )
  },
  TIMEOUT_MS,
)

test(
  'signing in again closes connections of the earlier sign-in, and is valid itself',
  async () => {
    const attached = ann.start([host.url, '--sandbox', 'dev', '--', 'sh', '-c', 'echo ready; cat'])
    const followed = follow(attached)
    await eventually(() => followed.output().includes('ready'), { what: 'the attach' })
    await ann.login()
    expect((await followed.done).code).toBe(255)
    expect((await ann.run(['whoami'])).stdout.toString()).toBe('Ann Archer\n')
    const again = await ann.attach(['--sandbox', 'dev', '--', 'echo', 'here'])
    expect(again.stdout.toString()).toBe('here\n')
  },
  TIMEOUT_MS,
)

test(
  'signing out closes the connections of the sign-in',
  async () => {
    const attached = ann.start([host.url, '--sandbox', 'dev', '--', 'sh', '-c', 'echo ready; cat'])
    const followed = follow(attached)
    await eventually(() => followed.output().includes('ready'), { what: 'the attach' })
    const out = await ann.run(['logout', host.url])
    expect(out).toMatchObject({ code: 0, stderr: `sbx-stdio: Signed out of ${new URL(host.url).host}\n` })
    expect((await followed.done).code).toBe(255)
    expect((await ann.run(['list', '--url', host.url])).stderr).toContain('or sign in: ')
  },
  TIMEOUT_MS,
)
