import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { identifyProcess } from './process-identity.ts'
import { addServer, publishServer, serversFile, withdrawServer } from './servers-file.ts'

const one = { url: 'http://localhost:1', tokenFile: '/one' }
const two = { url: 'http://localhost:2', tokenFile: '/two' }
const all = (): boolean => true

const publishedOne = { urls: [one.url], tokenFile: one.tokenFile }
const publishedTwo = { urls: [two.url], tokenFile: two.tokenFile }

describe('addServer', () => {
  test('keeps other servers and puts the newest last', () => {
    expect(addServer([one], publishedTwo, all)).toEqual([one, two])
    expect(addServer([one, two], publishedOne, all)).toEqual([two, one])
  })

  test('has an entry for every address that is served', () => {
    const urls = ['http://localhost:3', 'http://127.0.0.1:3', 'http://[::1]:3']
    expect(addServer([one], { urls, tokenFile: '/three' }, all)).toEqual([
      one,
      ...urls.map((url) => ({ url, tokenFile: '/three' })),
    ])
  })

  test('has one entry for an address, with the latest token', () => {
    const latest = { ...one, tokenFile: '/new' }
    expect(addServer([one], { ...publishedOne, tokenFile: '/new' }, all)).toEqual([latest])
  })

  test('drops former URLs of a server', () => {
    expect(addServer([one], { urls: [two.url], tokenFile: one.tokenFile }, all)).toEqual([
      { ...two, tokenFile: one.tokenFile },
    ])
  })

  test('drops servers that have ended', () => {
    expect(addServer([one], publishedTwo, (file) => file !== '/one')).toEqual([two])
  })

  test('stays bounded', () => {
    const many = Array.from({ length: 70 }, (_, index) => ({
      url: `http://localhost:${index + 10}`,
      tokenFile: '/t',
    }))
    expect(addServer(many, publishedOne, all)).toHaveLength(64)
  })
})

test.each([
  [{ XDG_CONFIG_HOME: '/cfg' }, '/cfg/sandwire/servers.json'],
  [{ XDG_CONFIG_HOME: 'relative' }, '/home/me/.config/sandwire/servers.json'],
  [{}, '/home/me/.config/sandwire/servers.json'],
])('with %j the servers are in %s', (env, file) => {
  expect(serversFile(env, '/home/me')).toBe(file)
})

/** A data folder that this process holds; its token. */
function openServer(folder: string, name: string): string {
  mkdirSync(path.join(folder, name))
  writeFileSync(path.join(folder, name, 'lock'), JSON.stringify(identifyProcess(process.pid)))
  return path.join(folder, name, 'local-token')
}

function readList(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8')).servers
}

describe('publishServer', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'servers-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('creates a private file, and replaces a malformed one', () => {
    const file = path.join(folder, 'sandwire/servers.json')
    const first = openServer(folder, 'first')
    const second = openServer(folder, 'second')
    publishServer(file, { urls: [one.url], tokenFile: first })
    publishServer(file, { urls: [two.url], tokenFile: second })
    expect(readList(file)).toEqual([
      { url: one.url, tokenFile: first },
      { url: two.url, tokenFile: second },
    ])
    expect([statSync(file).mode & 0o777, statSync(path.dirname(file)).mode & 0o777]).toEqual([0o600, 0o700])
    writeFileSync(file, 'not json')
    publishServer(file, { urls: [one.url], tokenFile: first })
    expect(readList(file)).toHaveLength(1)
  })

  test('drops a server whose host crashed', () => {
    const file = path.join(folder, 'sandwire/servers.json')
    const gone = openServer(folder, 'gone')
    publishServer(file, { urls: [one.url], tokenFile: gone })
    rmSync(path.join(folder, 'gone/lock'))
    const other = openServer(folder, 'other')
    publishServer(file, { urls: [two.url], tokenFile: other })
    expect(readList(file)).toEqual([{ url: two.url, tokenFile: other }])
  })

  test('removes only the server that ends', () => {
    const file = path.join(folder, 'sandwire/servers.json')
    const first = openServer(folder, 'first')
    const second = openServer(folder, 'second')
    withdrawServer(file, first)
    publishServer(file, { urls: [one.url, 'http://127.0.0.1:1'], tokenFile: first })
    publishServer(file, { urls: [two.url], tokenFile: second })
    withdrawServer(file, first)
    expect(readList(file)).toEqual([{ url: two.url, tokenFile: second }])
  })
})
