import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { addServer, publishServer, serversFile } from './servers-file.ts'

const one = { url: 'http://localhost:1', tokenFile: '/one' }
const two = { url: 'http://localhost:2', tokenFile: '/two' }
const all = (): boolean => true

describe('addServer', () => {
  test('keeps other servers and puts the newest last', () => {
    expect(addServer([one], two, all)).toEqual([one, two])
    expect(addServer([one, two], one, all)).toEqual([two, one])
  })

  test('has one entry for an address, with the latest token', () => {
    expect(addServer([one], { ...one, tokenFile: '/new' }, all)).toEqual([{ ...one, tokenFile: '/new' }])
  })

  test('drops servers whose token is gone', () => {
    expect(addServer([one], two, (file) => file !== '/one')).toEqual([two])
  })

  test('stays bounded', () => {
    const many = Array.from({ length: 70 }, (_, index) => ({
      url: `http://localhost:${index + 10}`,
      tokenFile: '/t',
    }))
    expect(addServer(many, one, all)).toHaveLength(64)
  })
})

test.each([
  [{ XDG_CONFIG_HOME: '/cfg' }, '/cfg/sandwire/servers.json'],
  [{ XDG_CONFIG_HOME: 'relative' }, '/home/me/.config/sandwire/servers.json'],
  [{}, '/home/me/.config/sandwire/servers.json'],
])('with %j the servers are in %s', (env, file) => {
  expect(serversFile(env, '/home/me')).toBe(file)
})

describe('publishServer', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'servers-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('makes a file for this user alone, and begins anew over a broken one', () => {
    const file = path.join(folder, 'sandwire/servers.json')
    const token = path.join(folder, 'token')
    writeFileSync(token, 'x')
    publishServer(file, { url: one.url, tokenFile: token })
    publishServer(file, { url: two.url, tokenFile: token })
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      servers: [
        { url: one.url, tokenFile: token },
        { url: two.url, tokenFile: token },
      ],
    })
    expect([statSync(file).mode & 0o777, statSync(path.dirname(file)).mode & 0o777]).toEqual([0o600, 0o700])
    writeFileSync(file, 'not json')
    publishServer(file, { url: one.url, tokenFile: token })
    expect(JSON.parse(readFileSync(file, 'utf8')).servers).toHaveLength(1)
  })
})
