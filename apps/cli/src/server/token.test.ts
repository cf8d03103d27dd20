import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { readToken } from './token.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'token-'))
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  writeFileSync(path.join(folder, name), text)
  return path.join(folder, name)
}

const NOTHING = { token: undefined, tokenFile: undefined, environment: undefined }

describe('readToken', () => {
  test('prefers the command line over the environment', () => {
    expect(readToken({ ...NOTHING, token: 'a', environment: 'b' })).toEqual({ isOk: true, token: 'a' })
    expect(readToken({ ...NOTHING, tokenFile: file('t', ' filed\n'), environment: 'b' })).toEqual({
      isOk: true,
      token: 'filed',
    })
    expect(readToken({ ...NOTHING, environment: 'b' })).toEqual({ isOk: true, token: 'b' })
  })

  test('returns none without a source', () => {
    expect(readToken(NOTHING)).toEqual({ isOk: true, token: undefined })
    expect(readToken({ ...NOTHING, environment: '' })).toEqual({ isOk: true, token: undefined })
  })

  test('reports why a file cannot be read', () => {
    expect(readToken({ ...NOTHING, tokenFile: path.join(folder, 'absent') })).toMatchObject({
      message: expect.stringContaining('no such file'),
    })
    expect(readToken({ ...NOTHING, tokenFile: folder })).toMatchObject({
      message: expect.stringContaining('a folder'),
    })
  })

  test('refuses a token that does not fit into a header, and does not repeat it', () => {
    for (const text of ['', 'two words', 'a\r\nx: y', 'é'])
      expect(readToken({ ...NOTHING, tokenFile: file('bad', text) })).toMatchObject({ isOk: false })
    expect(JSON.stringify(readToken({ ...NOTHING, token: 'hunter 2' }))).not.toContain('hunter')
  })
})
