import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { findServer, tokenSources } from './find-server.ts'
import { readKnownServers, serversFile } from './known-servers.ts'
import { CredentialStore } from '../sign-in/credential-store.ts'
import { UsageError } from '../errors/errors.ts'

let folder: string
let env: Record<string, string>
const NOTHING = { url: undefined, token: undefined, tokenFile: undefined }

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'known-'))
  mkdirSync(path.join(folder, 'sandwire'), { mode: 0o700 })
  env = { XDG_CONFIG_HOME: folder, HOME: '/nonexistent' }
})
afterEach(() => rmSync(folder, { recursive: true }))

function tokenFile(name: string, mode = 0o600): string {
  const file = path.join(folder, name)
  writeFileSync(file, `${name}-token\n`)
  chmodSync(file, mode)
  return file
}

function know(...servers: (readonly [url: string, tokenFile: string])[]): void {
  const listed = servers.map(([url, file]) => ({ url, tokenFile: file }))
  writeFileSync(serversFile(env), JSON.stringify({ servers: listed }), { mode: 0o600 })
}

/** The server that is found, with the token for it. */
async function find(...args: Parameters<typeof findServer>) {
  const { bearer, ...found } = await findServer(...args)
  return { ...found, token: await bearer() }
}

const runs =
  (...urls: readonly string[]) =>
  (url: string): Promise<boolean> =>
    Promise.resolve(urls.includes(url))

async function wrong(act: () => unknown): Promise<{ message: string; hint: string | undefined }> {
  try {
    await act()
  } catch (error) {
    if (error instanceof UsageError) return { message: error.message, hint: error.hint }
    throw error
  }
  throw new Error('Nothing was wrong')
}

test('serversFile follows XDG, else the home folder', async () => {
  expect(serversFile({ XDG_CONFIG_HOME: '/c', HOME: '/h' })).toBe('/c/sandwire/servers.json')
  expect(serversFile({ XDG_CONFIG_HOME: 'relative', HOME: '/h' })).toBe('/h/.config/sandwire/servers.json')
  expect(serversFile({ HOME: '/h' })).toBe('/h/.config/sandwire/servers.json')
})

describe('findServer', () => {
  test('uses the only known server and its token', async () => {
    know(['http://localhost:8787', tokenFile('a')])
    expect(await find(NOTHING, env)).toEqual({
      origin: 'http://localhost:8787',
      address: 'http://localhost:8787',
      isDefault: true,
      isLocal: true,
      credential: 'local',
      token: 'a-token',
    })
  })

  test('treats two addresses with the same token file as one server', async () => {
    const file = tokenFile('a')
    know(['http://localhost:8787', file], ['http://127.0.0.1:8787', file])
    expect((await find(NOTHING, env)).origin).toBe('http://localhost:8787')
  })

  test('uses the only running server, at an address that responds', async () => {
    const [a, b] = [tokenFile('a'), tokenFile('b')]
    know(['http://localhost:1', a], ['http://localhost:2', b], ['http://[::1]:2', b])
    expect(await find(NOTHING, env, runs('http://localhost:2', 'http://[::1]:2'))).toMatchObject({
      origin: 'http://localhost:2',
      token: 'b-token',
    })
    expect(await find(NOTHING, env, runs('http://[::1]:2'))).toMatchObject({
      origin: 'http://[::1]:2',
      token: 'b-token',
    })
  })

  test('lists the servers when there are several, and hints how to start one when there is none', async () => {
    const [a, b, c] = ['http://localhost:1', 'http://localhost:2', 'http://localhost:3']
    know([a, tokenFile('a')], [b, tokenFile('b')], [c, tokenFile('c')])
    expect(await wrong(() => find(NOTHING, env, runs(a, c)))).toEqual({
      message: 'Several servers are running: http://localhost:1, http://localhost:3',
      hint: 'choose one with --url URL or SBX_URL',
    })
    expect(await wrong(() => find(NOTHING, env, runs()))).toEqual({
      message: `No server is running on this machine (tried ${a}, ${b}, ${c})`,
      hint: 'start one with npm start, name one with --url URL, or sign in: sbx-stdio login URL',
    })
    know()
    expect((await wrong(() => find(NOTHING, env))).hint).toContain('npm start')
    rmSync(serversFile(env))
    expect((await wrong(() => find(NOTHING, env))).hint).toContain('npm start')
  })

  test('uses the only server with a sign-in when none is running on this machine', async () => {
    const store = new CredentialStore(env)
    store.write({ version: 1, origin: 'https://far.example', bearer: 'far-token' })
    expect(await find(NOTHING, env)).toEqual({
      origin: 'https://far.example',
      address: 'https://far.example',
      isDefault: true,
      isLocal: false,
      credential: 'guest',
      renew: expect.any(Function),
      token: 'far-token',
    })
    know(['http://localhost:1', tokenFile('a')])
    expect((await find(NOTHING, env, runs())).origin).toBe('https://far.example')
    expect(await wrong(() => find(NOTHING, env, runs('http://localhost:1')))).toEqual({
      message: 'There are several servers: http://localhost:1, https://far.example',
      hint: 'choose one with --url URL or SBX_URL',
    })
  })

  test('prefers a given token to a sign-in, and a sign-in to the token file', async () => {
    know(['http://localhost:1', tokenFile('a')])
    new CredentialStore(env).write({ version: 1, origin: 'http://localhost:1', bearer: 'mine' })
    expect(await find(NOTHING, env)).toMatchObject({ credential: 'guest', token: 'mine', isLocal: true })
    expect(await find({ ...NOTHING, token: 't' }, env)).toMatchObject({ credential: 'given', token: 't' })
    expect(await find({ ...NOTHING, isAnonymous: true }, env)).toMatchObject({
      credential: 'none',
      token: undefined,
    })
  })

  test('prefers --url, then SBX_URL; the path of an address is not used', async () => {
    know(['http://localhost:1', tokenFile('a')], ['http://localhost:2', tokenFile('b')])
    const named = { ...env, SBX_URL: 'http://localhost:2/attach' }
    expect(await find(NOTHING, named)).toMatchObject({
      origin: 'http://localhost:2',
      token: 'b-token',
      isDefault: true,
    })
    expect(await find({ ...NOTHING, url: 'ws://localhost:1' }, named)).toMatchObject({
      origin: 'http://localhost:1',
      token: 'a-token',
      isDefault: false,
    })
    expect((await wrong(() => find({ ...NOTHING, url: 'nope' }, env))).message).toContain('must begin with')
  })
})

describe('the token of a known server', () => {
  test.each([
    'http://127.0.0.1:8787',
    'http://localhost:8788',
    'https://localhost:8787',
    'http://localhost.:8787',
    'http://localhost.evil.com:8787',
    'http://evil.com/http://localhost:8787',
    'http://[::1]:8787',
    'http://localhost',
  ])('is not sent to %s', async (url) => {
    know(['http://localhost:8787', tokenFile('a')])
    expect((await find({ ...NOTHING, url }, env)).token).toBeUndefined()
  })

  test.each(['http://localhost:8787/attach', 'ws://localhost:8787', 'HTTP://LOCALHOST:8787/'])(
    'is sent to %s',
    async (url) => {
      know(['http://localhost:8787', tokenFile('a')])
      expect((await find({ ...NOTHING, url }, env)).token).toBe('a-token')
    },
  )

  test.each([
    'http://localhost:8787',
    'http://127.0.0.1:8787',
    'http://[::1]:8787',
    'ws://[::1]:8787/attach',
  ])('is found for %s when the server lists that address', async (url) => {
    const file = tokenFile('a')
    know(['http://localhost:8787', file], ['http://127.0.0.1:8787', file], ['http://[::1]:8787', file])
    expect((await find({ ...NOTHING, url }, env)).token).toBe('a-token')
  })

  test('is not used when a token is given', async () => {
    know(['http://localhost:8787', tokenFile('a')])
    const url = new URL('http://localhost:8787')
    expect(tokenSources(url, { token: 't', tokenFile: undefined }, env).knownFile).toBeUndefined()
    expect(
      tokenSources(url, { token: undefined, tokenFile: undefined }, { ...env, SBX_TOKEN: 'e' }).knownFile,
    ).toBeUndefined()
    expect(
      tokenSources(url, { token: undefined, tokenFile: undefined }, { ...env, SBX_TOKEN: '' }).knownFile,
    ).toBeDefined()
  })

  test.each([0o622, 0o620, 0o602, 0o666])('is not read from a file with mode %o', async (mode) => {
    know(['http://localhost:8787', tokenFile('a', mode)])
    expect((await wrong(() => find(NOTHING, env))).message).toContain('others can write to it')
  })

  test("is not read from a file that is gone, a folder, or another user's", async () => {
    know(['http://localhost:8787', path.join(folder, 'gone')])
    expect(await wrong(() => find(NOTHING, env))).toMatchObject({
      message: expect.stringContaining('no such file'),
      hint: expect.stringContaining('npm start'),
    })
    know(['http://localhost:8787', folder])
    expect((await wrong(() => find(NOTHING, env))).message).toContain('it is not a file')
  })
})

describe('readKnownServers', () => {
  test.each([
    '',
    '[]',
    '{}',
    '{"servers":{}}',
    '{"servers":[{"url":"http://h"}]}',
    '{"servers":[{"url":1,"tokenFile":"/x"}]}',
    '{"servers":[{"url":"http://h","tokenFile":"relative"}]}',
  ])('refuses the content %j', async (text) => {
    writeFileSync(serversFile(env), text, { mode: 0o600 })
    expect(readKnownServers(env)).toMatchObject({
      isOk: false,
      message: expect.stringContaining('invalid content'),
    })
  })

  test('refuses a list that others can write to', async () => {
    know(['http://localhost:8787', tokenFile('a')])
    chmodSync(serversFile(env), 0o666)
    expect(readKnownServers(env)).toMatchObject({
      isOk: false,
      message: expect.stringContaining('others can write'),
    })
  })
})
