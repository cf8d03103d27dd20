import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gitEnvironment, SLOT_HEADER } from '@sandwire/internal-api'
import { decodeJwt } from 'jose'
import type { GatewayGrant } from '../src/credentials/grant.ts'
import { isAgentBranch, readPushCommands } from '../src/credentials/pkt-line.ts'
import { openTokenSource } from '../src/credentials/token-source.ts'
import { type RunningControl, startControl } from './support/control.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { type GitServer, openGitServer } from './support/git-server.ts'

const TOKEN = 'ghs-canary-000000000000'
const KEY = 'rule-canary-11111111111'

describe('the gateway to git servers', () => {
  let places: FakeSandboxes
  let control: RunningControl
  let server: GitServer
  let sandbox = ''
  let base = ''
  let runs = 0

  beforeAll(async () => {
    base = mkdtempSync(path.join(tmpdir(), 'sandwire-clone-'))
    server = openGitServer(['one', 'two'], `x-access-token:${TOKEN}`)
    places = new FakeSandboxes()
    control = await startControl({
      runner: places,
      config: {
        credentials: {
          git: [{ host: 'git.example', url: server.url, secret: 'GIT_TOKEN' }],
          hosts: [{ host: 'api.example', url: server.url, secret: 'RULE_KEY', paths: ['/allowed/'] }],
        },
      },
      bindings: { GIT_TOKEN: TOKEN, RULE_KEY: KEY },
    })
    const made = await control.fetch('/api/sandboxes', { method: 'POST', json: { name: 'one' } })
    sandbox = ((await made.json()) as { id: string }).id
  })
  afterAll(async () => {
    await control[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await places[Symbol.asyncDispose]()
    rmSync(base, { recursive: true })
  })

  function grant(push: 'none' | 'agent', changes: Partial<GatewayGrant> = {}): Promise<string> {
    return control.grantGateway({
      run: `git${runs++}`,
      sandbox,
      expiresMs: Date.now() + 60_000,
      provider: 'anthropic',
      models: [],
      budgetMicroUsd: 1,
      maxOutputTokens: 1,
      hosts: [],
      git: { repository: 'https://git.example/one', push },
      ...changes,
    })
  }

  test('a wake request needs the token of the run, from its sandbox', async () => {
    const wake = async (token: string, slot: string): Promise<number> =>
      (
        await fetch(`http://127.0.0.1:${control.gatewayPort}/wake`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, [SLOT_HEADER]: slot },
        })
      ).status
    const token = await grant('none')
    expect(await wake(token, '0')).toBe(204)
    expect(await wake(token, '1')).toBe(401)
    expect(await wake('x', '0')).toBe(401)
  })

  /** Runs git as in a sandbox. The header stands for the slot, which workerd adds on a host. */
  async function git(token: string, cwd: string, ...args: string[]): Promise<{ code: number; text: string }> {
    const gateway = `http://127.0.0.1:${control.gatewayPort}`
    const env = {
      PATH: process.env['PATH'],
      HOME: base,
      GIT_CONFIG_SYSTEM: '/dev/null',
      ...gitEnvironment(gateway, token, ['git.example']),
    }
    const slot = ['-c', `http.extraHeader=${SLOT_HEADER}: 0`]
    const identity = ['-c', 'user.name=a', '-c', 'user.email=a@a']
    // More specific configuration replaces `http.extraHeader`, so that both are at the gateway's URL.
    const argv = [
      'git',
      '-c',
      `http.${gateway}/.extraHeader=${SLOT_HEADER}: 0`,
      ...slot,
      ...identity,
      ...args,
    ]
    const child = Bun.spawn(argv, { cwd, env, stdout: 'pipe', stderr: 'pipe' })
    const text = `${await new Response(child.stdout).text()}${await new Response(child.stderr).text()}`
    return { code: await child.exited, text }
  }

  test('clones and pushes agent branches with a token that the sandbox never has', async () => {
    const token = await grant('agent')
    expect(await git(token, base, 'clone', '-q', 'https://git.example/one', 'a')).toEqual({
      code: 0,
      text: '',
    })
    const work = path.join(base, 'a')
    const config = readFileSync(path.join(work, '.git/config'), 'utf8')
    expect(config).toContain('url = https://git.example/one')
    expect(config).not.toMatch(/canary|sgw_/)
    await git(token, work, 'commit', '-q', '--allow-empty', '-m', 'second')
    expect((await git(token, work, 'push', '-q', 'origin', 'HEAD:refs/heads/agent/fix')).text).toBe('')
    expect(server.refs('one')).toEqual(['refs/heads/agent/fix', 'refs/heads/main'])
  })

  test('refuses other branches, other repositories and pushes of read-only runs', async () => {
    const token = await grant('agent')
    const work = path.join(base, 'b')
    await git(token, base, 'clone', '-q', 'https://git.example/one', 'b')
    await git(token, work, 'commit', '-q', '--allow-empty', '-m', 'third')
    const before = server.refs('one')
    for (const ref of ['refs/heads/main', 'refs/tags/v1', 'refs/heads/agentx', 'refs/heads/agent'])
      expect((await git(token, work, 'push', 'origin', `HEAD:${ref}`)).text, ref).toContain('403')
    const both = ['HEAD:refs/heads/agent/ok', 'HEAD:refs/heads/main']
    expect((await git(token, work, 'push', 'origin', ...both)).code).not.toBe(0)
    expect((await git(token, work, 'push', 'origin', ':main')).code).not.toBe(0)
    expect((await git(token, base, 'clone', 'https://git.example/two', 'c')).text).toContain('403')
    const reader = await grant('none')
    expect((await git(reader, work, 'push', 'origin', 'HEAD:refs/heads/agent/x')).text).toContain('403')
    expect(server.refs('one')).toEqual(before)
    expect((await git(reader, base, 'clone', '-q', 'https://git.example/one', 'd')).code).toBe(0)
  })

  const get = (token: string, route: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${control.gatewayPort}${route}`, {
      ...init,
      redirect: 'manual',
      headers: { authorization: `Bearer ${token}`, [SLOT_HEADER]: '0' },
    })

  test('refuses what git over smart HTTP does not need, and does not follow redirects', async () => {
    const token = await grant('agent')
    const repository = '/git/git.example/one'
    for (const route of [`${repository}/HEAD`, `${repository}/info/refs`, `${repository}/objects/info/packs`])
      expect((await get(token, route)).status, route).toBe(404)
    const moved = await grant('none', { git: { repository: 'https://git.example/moved', push: 'none' } })
    const refs = 'info/refs?service=git-upload-pack'
    expect((await get(moved, `/git/git.example/moved/${refs}`)).status).toBe(404)
    const other = await grant('none', { git: { repository: 'https://evil.example/x', push: 'none' } })
    const refused = await get(other, `/git/evil.example/x/${refs}`)
    expect([refused.status, await refused.text()]).toEqual([
      403,
      'Sandwire: git server "evil.example" is not configured; add it to "credentials.git"\n',
    ])
  })

  test("adds the header of an operator's rule to allowed requests only", async () => {
    const token = await grant('none', { hosts: ['api.example'] })
    const before = server.requests.length
    await get(token, '/hosts/api.example/allowed/x?y=1')
    expect(server.requests.slice(before)).toEqual([
      { line: 'GET /allowed/x?y=1', authorization: `Bearer ${KEY}` },
    ])
    for (const route of ['/other', '/allowed/../other', '/allowed/%2e%2e/other', '/allowed/..%2fother'])
      expect((await get(token, `/hosts/api.example${route}`)).status, route).toBe(403)
    expect((await get(token, '/hosts/api.example/allowed/x', { method: 'DELETE' })).status).toBe(405)
    expect((await get(await grant('none'), '/hosts/api.example/allowed/x')).status).toBe(403)
    expect(server.requests.length).toBe(before + 1)
  })
})

describe('push commands', () => {
  const line = (text: string): string => (text.length + 4).toString(16).padStart(4, '0') + text
  const [zero, id] = ['0'.repeat(40), 'a'.repeat(40)]
  const read = (text: string) => readPushCommands(new TextEncoder().encode(text))

  test('are read up to the flush packet, and nothing else is accepted', () => {
    const update = line(`${zero} ${id} refs/heads/agent/x\0report-status`)
    expect(read(`${update}${line(`${id} ${zero} refs/heads/main`)}0000PACK`)).toEqual({
      kind: 'whole',
      updates: [
        { ref: 'refs/heads/agent/x', isDelete: false },
        { ref: 'refs/heads/main', isDelete: true },
      ],
    })
    for (const end of [0, 3, 40, update.length])
      expect(read(update.slice(0, end))).toEqual({ kind: 'partial' })
    for (const bad of ['0000', 'zzzz', '0004', line('push-cert\0x'), line(`${zero} ${id} HEAD`)])
      expect(read(`${bad}0000`), bad).toEqual({ kind: 'refused' })
  })

  test('name agent branches only by plain names', () => {
    expect(isAgentBranch('refs/heads/agent/fix-1/a.b')).toBe(true)
    for (const ref of [
      'refs/heads/agent/',
      'refs/heads/agent/../main',
      'refs/heads/agent//x',
      'refs/agent/x',
    ])
      expect(isAgentBranch(ref), ref).toBe(false)
  })
})

test('installation tokens are limited to the repository and the access, and cached', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const secrets: Record<string, string> = {
    GITHUB_APP_ID: '42',
    GITHUB_APP_PRIVATE_KEY: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  }
  let nowMs = Date.parse('2026-01-01T00:00:00Z')
  const calls: { url: string; body: unknown; issuer: unknown }[] = []
  const source = openTokenSource({
    settings: { providers: [], git: [], hosts: [], githubApiUrl: 'https://api.github.com' },
    readSecret: (name) => secrets[name],
    nowMs: () => nowMs,
    fetchUpstream: async (url, { headers, body }) => {
      const bearer = new Headers(headers).get('authorization')?.slice(7) ?? ''
      calls.push({
        url,
        body: typeof body === 'string' ? JSON.parse(body) : undefined,
        issuer: decodeJwt(bearer).iss,
      })
      const expires = new Date(nowMs + 3_600_000).toISOString()
      return Response.json({ token: `t${calls.length}`, expires_at: expires }, { status: 201 })
    },
  })
  const request = { host: 'github.com', path: 'o/r', access: 'read', installationId: 7 } as const
  expect(await source.tokenFor(request)).toEqual({ username: 'x-access-token', token: 't1' })
  expect(await source.tokenFor(request)).toMatchObject({ token: 't1' })
  expect(await source.tokenFor({ ...request, access: 'push' })).toMatchObject({ token: 't2' })
  nowMs += 45 * 60_000
  expect(await source.tokenFor(request)).toMatchObject({ token: 't3' })
  expect(calls[0]).toEqual({
    url: 'https://api.github.com/app/installations/7/access_tokens',
    body: { repositories: ['r'], permissions: { contents: 'read' } },
    issuer: '42',
  })
  expect(await source.tokenFor({ host: 'github.com', path: 'o/r', access: 'read' })).toBeUndefined()
  expect(source.tokenFor({ ...request, host: 'evil.example' })).rejects.toThrow('of github.com only')
  delete secrets['GITHUB_APP_ID']
  expect(source.tokenFor({ ...request, path: 'o/x' })).rejects.toThrow('set GITHUB_APP_ID')
})
